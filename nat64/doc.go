// Package nat64 translates IP packets between IPv4 and IPv6 without state, in
// place: one packet in a caller's buffer at a time.
package nat64
