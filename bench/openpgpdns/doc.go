// Package openpgpdns compares signalbox.example/openpgpdns with its peers:
// ProtonMail/go-crypto (both APIs) in the same process, and GnuPG, Sequoia sq
// and gpg-wks-client as programs, where they are installed.
package openpgpdns
