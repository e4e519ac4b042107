// Package pgp makes and opens OpenPGP messages, and makes and changes
// certificates, with keys that live on a card. It is keycard for
// github.com/ProtonMail/go-crypto.
//
// The first lines of most programs, with a card of keycard.Open and the
// certificate whose keys are on it:
//
//	b, err := pgp.Bind(ctx, card, cert, nil)
//	err = b.DetachSign(ctx, out, message, nil)
//	md, err := b.Decrypt(ctx, message, friends, nil)
//
// # What there is
//
// [Bind] finds the certificate's keys on the card by their fingerprints; no
// command is needed. [Binding.DetachSign], [Binding.DetachSignText],
// [Binding.ClearSign] and [Binding.Sign] make signatures as gpg's -b, -b
// --textmode, --clearsign and -s do; [Binding.Encrypt] signs what it encrypts.
// [Decrypt] opens messages to any number of recipients with any number of
// cards and keys in memory.
//
// When the card holds the primary key, [Binding.Certify] signs others' user
// IDs, [Binding.AddUserID], [Binding.SetExpiry], [Binding.RevokeSubkey] and
// [Binding.Revocation] change the certificate. [NewCertificate] makes one of
// keys that were generated on the card, with its revocation certificate.
//
// [Import] puts software keys onto cards, as copies of each other.
// [ParseStubs] and [ParseKeyFile] read what gpg keeps in the place of a secret
// that is on a card: which card, which slot; [WriteStubs] writes such stubs.
//
// [PrivateKey] and [Binding.Entity] give go-crypto's own functions, and
// programs that use them, a private key on a card. Mind that go-crypto loses
// a card's errors; the methods here do not.
//
// # Algorithms
//
// RSA, ECDSA and ECDH with the NIST curves, EdDSA and ECDH with the 25519
// curves in both of OpenPGP's formats: algorithms 22 and 18, for which a curve
// object stands in, and 27 and 25, for which go-crypto has no place for a card.
// For those the signature packets are completed here, and messages are
// addressed anew to a key in memory before go-crypto reads them; only
// [PrivateKey], [Binding.Entity] and [Binding.Encrypt] cannot have them. Other
// curves that a card and go-crypto both know, such as brainpool's, go the same
// way as NIST's, but no card with them was at hand.
//
// Keys are of version 4, since a card stores fingerprints of 20 octets. Keys of
// version 6 are bound by comparing the public keys; this too has not met a
// real card.
//
// # Commands
//
// After keycard.Open a signature or a decryption is two commands, PIN and
// operation, or one while the PIN is verified (see package keycard). Every
// signature is verified in software before it is given out.
//
// # Units and byte order
//
// Times are whole seconds, as in OpenPGP; expiry is given as a point in time.
// Messages are octets without armor, unless a name says otherwise. The serial
// number in a stub is the card's application identifier of 16 octets.
//
// # Errors
//
// Failures of an operation are of type [*Error] with the key and the card, in
// one line, and unwrap to this package's and keycard's errors: [ErrNotOnCard]
// (together with keycard.ErrMismatch or keycard.ErrNoKey), [ErrUsage],
// [ErrNotRecipient], [ErrFormat], keycard.ErrPIN, keycard.ErrBlocked,
// keycard.ErrTouch, keycard.ErrRemoved. Errors of go-crypto about a message
// come wrapped, and unchanged from reading its body. After a wrong PIN or any
// other error that is not the message's fault nothing more is sent in that
// call. No message, key file or export makes the package panic or use the card
// without end.
//
// # Concurrency
//
// A [Binding] may be used from several goroutines while nobody changes its
// certificate; they take turns at the card. Each call ends with its context.
//
// # Specifications
//
//   - RFC 9580 (OpenPGP), RFC 4880 and RFC 6637 for keys of version 4
//   - Functional Specification of the OpenPGP application on ISO Smart Card
//     Operating Systems, version 3.4.1
//   - GnuPG's DETAILS and keyformat.txt (stubs, key files)
package pgp
