// Package openpgpdns publishes OpenPGP keys so that every client finds them: in
// a Web Key Directory (WKD), and in DNS as OPENPGPKEY (DANE), CERT PGP and CERT
// IPGP (PKA) records. It reads key rings of any size, selects what belongs to
// each address, and writes those very octets: packets are never encoded anew,
// so the result equals what gpg publishes, octet by octet.
//
// A key ring becomes a directory that any web server can serve, and that
// [Handler] serves too:
//
//	ring, err := os.Open("keys.pgp")
//	...
//	w := openpgpdns.WKD{Root: "/srv/www", Prune: true}
//	w.Options.Filter = openpgpdns.Minimal()
//	report, err := w.Update(ctx, "example.org", openpgpdns.ReadCerts(ring))
//
// and a zone:
//
//	keys, err := openpgpdns.Collect(ctx, "example.org", openpgpdns.ReadCerts(ring), openpgpdns.Options{})
//	...
//	for entry, err := range keys.Entries() {
//		record, err := entry.OPENPGPKEY()
//		...
//		zone = record.AppendText(zone, openpgpdns.Portable, 0)
//	}
//
// # The parts
//
//	ring -> Reader -> Cert -> Filter -> octets -> Record  -> zone text, wire, package dnsrr
//	                    |                  \---> Collection -> WKD, records of a domain
//	                    \-> Verify         Client <- WKD, OPENPGPKEY, CERT, PKA
//
// [Reader] and [ReadCerts] split binary and armored rings into certificates
// ([Cert]). An unusable certificate costs an error that names it, and the ring
// goes on. Secret keys end it: they are never published.
//
// [Filter] selects packets. Its zero value suits a publication; [Minimal] is
// gpg's export-minimal; with an [Address] only the user IDs with that address
// stay, so that the file of one address does not tell the others.
//
// [Cert.Verify] checks self-signatures with go-crypto. Without it a signature
// counts as the key's own if it says so, as in gpg's export; verify rings that
// come from strangers. What does not verify is reported and not published.
//
// [Collect] groups a ring by the addresses of a domain. [WKD] writes them as a
// tree, changing only what has changed; with [WKD.State], a file outside of the
// tree, a run need not even read what has not. [Entry] makes records of them.
//
// [Check] tells before publication what GnuPG, Sequoia sq and browser clients
// will ask for, what they would get, and why they might refuse it. [Client]
// finds keys after it, by the rules and limits of GnuPG.
//
// # Choices
//
// Addresses are those that gpg sees in a user ID; only ASCII letters are
// lower-cased, as the WKD draft says. (Sequoia sq and browsers lower-case all
// letters. An upper-case letter beyond ASCII in a local part makes a key that
// one side cannot find; Check says so.) Internationalised domains are A-labels
// in names, paths and URLs.
//
// RFC 7929 keeps the case of the local part, GnuPG does not. Records go by
// GnuPG's label; [Entry.StrictOPENPGPKEY] gives the other where it differs.
//
// All keys of an address go into one file and one record, as GnuPG looks at one
// record only. Keys of version 6 (RFC 9580), post-quantum ones among them, are
// published, but not beside a version 4 key unless [Options] allow it: GnuPG
// 2.2 imports nothing from a mixture.
//
// CERT records are found by GnuPG under the address with '@' replaced by '.',
// and imported with all user IDs; prefer WKD and OPENPGPKEY. PKA records serve
// GnuPG before 2.3 only.
//
// # When to use it
//
// Use it to publish the keys of a domain from a program: many keys, repeated
// runs, octets that equal gpg's, several ways to publish at once. For one key by
// hand, gpg-wks-client --install-key writes the directory, and gpg with
// --export-options export-dane the record. Sequoia's sq wkd generate is the
// better choice where sq manages the keys anyway. sq is a complete OpenPGP
// tool, which this package is not: it neither makes keys nor signs, encrypts or
// decrypts; for that take github.com/ProtonMail/go-crypto or gopenpgp. For a
// key server that strangers upload to, run Hagrid or Hockeypuck; for the mail
// protocol by which users submit their keys, gpg-wks-server. hash-slinger makes
// and verifies OPENPGPKEY records from a shell.
//
// # Units and byte order
//
// Sizes and offsets are in octets, TTLs and signature lifetimes in seconds.
// RDATA and keys are in wire form, integers big-endian. Fingerprints are 20
// (version 4) or 32 octets (version 6). Names are absolute, in presentation
// form with a final dot; domains of addresses have none. The Append functions
// append to the slice that they are given and return it, as the built-in append
// does; after an error they return it as it was.
//
// # Errors
//
// Errors are *[Error] with the certificate, offset or input at fault, and wrap
// one of the sentinels (ErrTruncated, ErrSecretKey, ErrNoUserID, ...) or an
// error of the file system or the network. Errors of a run that stop nothing
// are listed as problems. Any octets may come in: no input makes the package
// panic, hang or use memory beyond the limits that are named at [Reader],
// [MaxKeyFile] and [ParseZone].
//
// # Concurrency
//
// [Cert] may be read by several goroutines (Verify writes). [Reader] is for
// one. [Client], [DNS], [Collection] and handlers may be shared. One [WKD] run
// at a time may work on a directory; it uses several goroutines itself.
//
// # Specifications
//
//   - WKD: draft-koch-openpgp-webkey-service,
//     https://datatracker.ietf.org/doc/draft-koch-openpgp-webkey-service/
//   - OPENPGPKEY: RFC 7929, https://www.rfc-editor.org/rfc/rfc7929
//   - CERT: RFC 4398, https://www.rfc-editor.org/rfc/rfc4398
//   - OpenPGP: RFC 9580, https://www.rfc-editor.org/rfc/rfc9580
//   - zone files: RFC 1035 section 5, https://www.rfc-editor.org/rfc/rfc1035;
//     unknown types: RFC 3597, https://www.rfc-editor.org/rfc/rfc3597
//   - z-base-32: RFC 6189 section 5.1.6, https://www.rfc-editor.org/rfc/rfc6189
//   - where these leave it open: GnuPG 2.2
package openpgpdns
