// Package softcard is an OpenPGP smart card in software, for tests: of
// programs that use cards, of this module's own client, and of gpg, which
// accepts it as a card when it is served over vpcd's protocol.
//
//	c := softcard.MustNew(softcard.Config{})
//	card, err := keycard.Open(ctx, c) // in process
//
//	err := c.ServeVPCD(ctx, "127.0.0.1:35963") // for pcscd, and so for gpg
//
// It follows version 3.4 of the specification: RSA of 2048 to 4096 bits, NIST
// curves, Ed25519 and X25519, three certificates, KDF, touch policies, PIN
// counters, resets, and an attestation key in YubiKey's manner. A [Personality]
// chooses a card without extended length or one of version 2.0; single traits
// of real cards are in [Config]. [Config.Fault] lets the card misbehave.
//
// It is a test double, not a vault: keys and PINs are readable in memory and
// in the file, nothing is done against side channels, and touches are
// whatever [Config.Touch] says.
//
// PINs are 123456 and 12345678 at first.
//
// # Units and byte order
//
// Commands and answers are the octets of ISO 7816-4. The file is JSON with
// keys in PKCS #8.
//
// # Errors
//
// The card answers with status words; an error is only returned for what no
// card could answer: commands shorter than four octets (it wraps
// keycard.ErrMalformed), an ended context, trouble with the file.
//
// # Concurrency
//
// A [Card] may be used from several goroutines; commands take turns. A real
// card has one user at a time, and so has the state of a session (selection,
// PINs, chaining): who shares a card must agree on that.
//
// # Specifications
//
//   - Functional Specification of the OpenPGP application on ISO Smart Card
//     Operating Systems, version 3.4.1
//   - ISO/IEC 7816-4
//   - vsmartcard's vpcd protocol
package softcard
