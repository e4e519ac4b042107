// Package keycard talks to OpenPGP smart cards.
package keycard
