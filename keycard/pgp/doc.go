// Package pgp makes and opens OpenPGP messages, and changes certificates, with
// keys that live on a card.
package pgp
