// Package keycard is a client for OpenPGP smart cards of versions 2.0 to 3.4:
// YubiKey, Nitrokey, Gnuk, SmartPGP, CanoKey and others. It needs no cgo and
// no other module.
//
// The first lines of most programs (keycard/pcscd for a reader, keycard/scd for
// the card that gpg is using, keycard/softcard for a test):
//
//	conn, err := pcscd.Connect(ctx, "", pcscd.Shared)
//	card, err := keycard.Open(ctx, conn, keycard.WithPINs(ask))
//	defer card.Close()
//	key, err := card.Key(ctx, keycard.SlotSign, nil)
//	sig, err := key.Sign(nil, digest, crypto.SHA256) // a crypto.Signer
//
// where ask is a [PINFunc] that gets the PIN from the user and returns it by
// [NewPIN]; [StaticPIN] makes one that knows its PINs, for tests. What it returns
// is cleared after use.
//
// # What there is
//
// [Open] selects the application and reads what the card says about itself:
// [Info]. [Card.Status] adds the cardholder, URL, login and counters.
//
// [Card.Key] is a private key on the card: a [crypto.Signer] in the signature
// and authentication slots, for RSA a [crypto.Decrypter] in the decryption slot,
// with [Key.ECDH] beside it. [Card.KeyFor] makes one without asking the card,
// from a public key that is known. [Key.SignRaw], [Key.DecryptRaw] and
// [Key.ECDHRaw] give the card exactly what it gets. RSA of 2048 to 4096 bits,
// NIST P-256, P-384, P-521, Ed25519 and X25519 are computed with; brainpool and
// other curves work through the raw functions only, because the standard
// library does not have them.
//
// [Card.Generate] and [Card.Import] put keys into slots and write fingerprint
// and time; [ImportCopies] makes several cards equal and compares them.
// [Card.Check] finds what does not fit together after something went wrong.
// [Card.SetAlgorithm], [Card.SetUIF], [Card.SetCertificate], [Card.SetHolder]
// and others change the rest, [Card.Attest] proves where a key was made.
//
// [Card.Verify], [Card.ChangePIN], [Card.Unblock], [Card.SetResetCode] and
// [Card.SetKDF] handle PINs. [Reset] gives a card back its factory state, also
// one that cannot be opened any more.
//
// # PINs
//
// Operations ask for the PIN they need through the [PINFunc] of [WithPINs] (or
// of the Key) and remember that it is verified, so that a PIN is presented as
// rarely as the card allows: with [PINStatus.Multiple] unset, which is the
// cards' default, before every signature. Without a PINFunc call
// [Card.Verify]. A wrong PIN is never tried twice. With one try left nothing is
// sent unless [WithLastTry] is given: the error is [ErrLastTry].
//
// PIN octets, and the buffers of commands that carried a PIN or a private key,
// are cleared; what a transport's kernel or daemon keeps is beyond reach. Logs
// ([WithLog]) and recordings show such octets as "xx".
//
// # Commands
//
// Round trips are what costs time on a real card, so they are counted
// ([Card.Count]) and tested. [Open] takes two commands: SELECT and the
// application related data. On a card that may have a KDF it takes a third, the
// question for its settings, unless [WithKDF] tells them. After that, on every
// card, a signature or decryption with [Card.KeyFor] takes two, the PIN and the
// operation, and one while the PIN is verified; [Card.Key] takes one more for
// the public key, once. [Card.Status] directly after Open takes four. Long data
// goes in extended length or in chained parts, by what the card says; answers in
// pieces are put together. A chained command counts as one.
//
// # When to use it
//
// Use it when a Go program signs or decrypts with an OpenPGP card or looks after
// cards: without cgo, beside a running gpg, with few round trips, and with tests
// that need no card (keycard/softcard, keycard/replay). For people at a terminal
// gpg with scdaemon is the tool, and knows oddities of more cards than this
// package does. For a YubiKey's PIV application, certificates for TLS or Windows
// log-in, take github.com/go-piv/piv-go (with cgo); examples/hardware/piv puts
// both behind one crypto.Signer. ykman sets what is particular to YubiKeys
// outside of this application. For PKCS #11 and other applications take OpenSC;
// from Rust, openpgp-card. pcscd is needed, or a gpg-agent: there is no
// transport for macOS and Windows, but any [Transport] of your own will do.
//
// # Units and byte order
//
// Numbers in data objects have the highest octet first. Lengths are octets,
// RSA sizes bits, times whole seconds in UTC. Points are as the card has them:
// 32 octets for the 25519 curves, 04 X Y for the others. Octets that a method
// returns belong to the caller; those in an [Info], [PublicKey] or [KDF] are
// shared and must not be changed. Fingerprints are those of OpenPGP version 4
// keys; for ECDH they cover [KDFParams], for which gpg's choice is the default.
//
// # Errors
//
// A refusal by the card is a [*StatusError] with the status word; it unwraps to
// one of the sentinels, [ErrPIN], [ErrBlocked], [ErrNotVerified], [ErrNoKey],
// [ErrTouch] and so on. Changes of keys that stop halfway give a [*ChangeError]
// that says in what state. Malformed answers wrap [ErrMalformed]. Errors of the
// transport come back as they are: [ErrRemoved], [ErrBusy], [ErrClosed].
// Nothing that a card sends makes the package panic, wait for ever (give a
// context) or grow without bound.
//
// # Concurrency
//
// A [Card] and its Keys may be used from several goroutines, which take turns;
// each method is one transaction on the reader, and [Card.Do] makes one of
// several. Every method that talks to the card takes a context; the methods of
// crypto.Signer and crypto.Decrypter use the one of [Key.WithContext].
//
// # Specifications
//
//   - Functional Specification of the OpenPGP application on ISO Smart Card
//     Operating Systems, version 3.4.1; "section" in comments means this
//   - ISO/IEC 7816-4 (commands, status words, data objects)
//   - RFC 4880 and RFC 6637 (fingerprints, iterated and salted hashing)
//   - RFC 8017 (RSA signatures and encryption, PKCS #1 version 1.5)
package keycard
