// Package keycard compares signalbox's OpenPGP card client with its peers on
// one stack: the software card behind vpcd and pcscd. The peers are
// gballet/go-libpcsclite (the other pcscd client in Go without cgo) and gpg
// with its scdaemon. See README.md for the figures.
package keycard
