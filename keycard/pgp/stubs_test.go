package pgp_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"signalbox.example/internal/vectors"
	"signalbox.example/keycard"
	"signalbox.example/keycard/pgp"
)

var aid = [16]byte{0xd2, 0x76, 0, 1, 0x24, 1, 3, 4, 0xff, 0xfe, 0x0b, 0xad, 0xca, 0xfe, 0, 0}

// TestStubsThereAndBack writes stubs for keys of every kind and reads them.
func TestStubsThereAndBack(t *testing.T) {
	for _, cfg := range []*packet.Config{
		{RSABits: 2048, Algorithm: packet.PubKeyAlgoRSA},
		{Algorithm: packet.PubKeyAlgoECDSA, Curve: packet.CurveNistP521},
		{Algorithm: packet.PubKeyAlgoEdDSA, Curve: packet.Curve25519},
		{Algorithm: packet.PubKeyAlgoEd25519},
		{Algorithm: packet.PubKeyAlgoEd448},
	} {
		e := softEntity(t, cfg)
		var b bytes.Buffer
		if err := pgp.WriteStubs(&b, e, func(p *packet.PublicKey) ([16]byte, bool) { return aid, p.IsSubkey }); err != nil {
			t.Fatal(err)
		}
		var asc bytes.Buffer
		a, err := armor.Encode(&asc, openpgp.PrivateKeyType, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.Write(b.Bytes())
		a.Close()
		// go-crypto itself does not take them, which is why they are parsed here.
		for _, in := range [][]byte{b.Bytes(), asc.Bytes()} {
			list, stubs, err := pgp.ParseStubs(bytes.NewReader(in))
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != 1 || !bytes.Equal(list[0].PrimaryKey.Fingerprint, e.PrimaryKey.Fingerprint) || len(list[0].Subkeys) != 1 || list[0].PrivateKey != nil {
				t.Errorf("%+v", list)
			}
			if len(stubs) != 2 || stubs[0].Kind != pgp.Absent || !stubs[0].Primary || stubs[1].Kind != pgp.OnCard || stubs[1].Primary {
				t.Fatalf("%+v", stubs)
			}
			if ident, ok := stubs[1].Card(); !ok || ident != "FFFE:0BADCAFE" {
				t.Error(ident)
			}
			if _, ok := stubs[0].Card(); ok {
				t.Error("a card for a key that is elsewhere")
			}
			info := &keycard.Info{}
			copy(info.Keys[keycard.SlotDecrypt].Fingerprint[:], e.Subkeys[0].PublicKey.Fingerprint)
			if slot, ok := stubs[1].Slot(info); !ok || slot != keycard.SlotDecrypt {
				t.Error("slot not found")
			}
			if _, ok := stubs[0].Slot(info); ok {
				t.Error("slot of a key that is elsewhere")
			}
		}
	}
}

// TestSecretKeysAreNoStubs: an export with the secrets in it.
func TestSecretKeysAreNoStubs(t *testing.T) {
	for _, name := range []string{"rsa2048", "p256", "c25519"} {
		list, stubs, err := pgp.ParseStubs(bytes.NewReader(vectors.Read(t, "keycard/keys/"+name+".sec.pgp")))
		if err != nil || len(list) != 1 || len(stubs) != 3 {
			t.Fatalf("%v, %d stubs", err, len(stubs))
		}
		for _, s := range stubs {
			if s.Kind != pgp.SecretKey || s.Kind.Mark() != "" || s.Serial != nil {
				t.Errorf("%+v", s)
			}
		}
		list, stubs, err = pgp.ParseStubs(bytes.NewReader(vectors.Read(t, "keycard/keys/"+name+".pub.pgp")))
		if err != nil || len(list) != 1 || len(stubs) != 0 {
			t.Errorf("public key: %v, %d stubs", err, len(stubs))
		}
	}
}

func TestKeyFile(t *testing.T) {
	serial := string(aid[:])
	canonical := "(20:shadowed-private-key(3:ecc(5:curve7:Ed25519)(5:flags5:eddsa)(1:q3:abc)(8:shadowed5:t1-v1(16:" + serial + "9:OPENPGP.1))))"
	for name, tt := range map[string]struct {
		file string
		kind pgp.StubKind
		slot keycard.Slot
		err  error
	}{
		"canonical": {canonical, pgp.OnCard, keycard.SlotSign, nil},
		"advanced":  {"Created: 20260101T000000\nKey: (shadowed-private-key (rsa (n #00AB#)(e #010001#)\n  (shadowed t1-v1 (#" + fmt.Sprintf("%X", serial) + "# OPENPGP.3))))\n", pgp.OnCard, keycard.SlotAuth, nil},
		// gpg 2.2.40 breaks lines in the middle of a word.
		"word cut by a line end": {"Token: D276000124010304FFFE0BADCAFE0000 OPENPGP.2 - x\nKey: (shadowed-private-key (ecc (curve \"NIST P-256\")(q\n  #0461\n 62#)(shado\n wed t1-v1 (#" + fmt.Sprintf("%X", serial) + "# OPENPGP.2))))\n", pgp.OnCard, keycard.SlotDecrypt, nil},
		"CR LF":                  {"Key: (shadowed-private-key (rsa (n #00#)(shado\r\n wed t1-v1 (#" + fmt.Sprintf("%X", serial) + "# OPENPGP.1))))\r\n", pgp.OnCard, keycard.SlotSign, nil},
		"serial as text":         {"Key: (shadowed-private-key (rsa (n #00#)(shadowed t1-v1 (" + fmt.Sprintf("%X", serial) + " OPENPGP.1))))", pgp.OnCard, keycard.SlotSign, nil},
		"a secret key":           {"Key: (private-key (rsa (n #00#)))", pgp.SecretKey, 0, nil},
		"a protected key":        {"(21:protected-private-key(3:rsa(1:n1:x)))", pgp.SecretKey, 0, nil},
		"PIV":                    {"Key: (shadowed-private-key (rsa (n #00#)(shadowed t1-v1 (#00# PIV.9A))))", 0, 0, keycard.ErrUnsupported},
		"no slot 4":              {"Key: (shadowed-private-key (rsa (n #00#)(shadowed t1-v1 (#00# OPENPGP.4))))", 0, 0, keycard.ErrUnsupported},
		"a public key":           {"(10:public-key(3:rsa(1:n1:x)))", 0, 0, pgp.ErrFormat},
		"nothing":                {"", 0, 0, pgp.ErrFormat},
		"cut":                    {canonical[:80], 0, 0, pgp.ErrFormat},
		"length too long":        {"(99999:shadowed-private-key", 0, 0, pgp.ErrFormat},
		"too long":               {"Key: (" + strings.Repeat("x", 70000), 0, 0, pgp.ErrFormat},
	} {
		f, err := pgp.ParseKeyFile(strings.NewReader(tt.file))
		if tt.err != nil {
			if !errors.Is(err, tt.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || f.Kind != tt.kind || f.Slot != tt.slot {
			t.Errorf("%s: %+v, %v", name, f, err)
			continue
		}
		if ident, ok := f.Card(); ok != (tt.kind == pgp.OnCard) || ok && ident != "FFFE:0BADCAFE" {
			t.Errorf("%s: card %q", name, ident)
		}
	}
}

func FuzzParseStubs(f *testing.F) {
	e := softEntity(f, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Curve: packet.Curve25519})
	var b bytes.Buffer
	if err := pgp.WriteStubs(&b, e, func(p *packet.PublicKey) ([16]byte, bool) { return aid, p.IsSubkey }); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAAAA\n=AAAA\n-----END PGP PRIVATE KEY BLOCK-----\n"))
	f.Add([]byte{0xc5, 10, 6, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, stubs, err := pgp.ParseStubs(bytes.NewReader(b))
		if err != nil && stubs != nil {
			t.Error("stubs with an error")
		}
		for _, s := range stubs {
			if s.Public == nil || len(s.Serial) > 16 {
				t.Errorf("%+v", s)
			}
			s.Card()
		}
	})
}

func FuzzParseKeyFile(f *testing.F) {
	f.Add([]byte("(20:shadowed-private-key(3:ecc(8:shadowed5:t1-v1(16:0123456789abcdef9:OPENPGP.1))))"))
	f.Add([]byte("Key: (shadowed-private-key (rsa (n #00#)(shado\n wed t1-v1 (#00# OPENPGP.1))))"))
	f.Add([]byte(`("a\"b" 3:abc #zz#)`))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := pgp.ParseKeyFile(bytes.NewReader(b))
		if (k == nil) == (err == nil) || k != nil && k.Slot > keycard.SlotAuth {
			t.Errorf("%+v, %v", k, err)
		}
	})
}
