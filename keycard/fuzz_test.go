package keycard_test

import (
	"bytes"
	"context"
	"testing"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// Objects as four real cards answered them.
var seeds = []string{
	"6e8200ff4f10d276000124010304f1d00000000000005f520a0031c573c001400590007f66080202053c0202053c7f7403810120738200cbc00a7400053c048000ff0000c106010800002002c206010800002002c306010800002002c40700404040030003c53c000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000c63c000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000cd0c000000000000000000000000de06010002000300d6020020d7020020d8020020",
	"4f10d27600012401020000060000000100005f520f0073000080000000000000000000007381b7c00af80000ff04c000ff00ffc106010800001103c206010800001103c306010800001103c407007f7f7f030303c53c1bf5c97ef3c15deb4dbfff99107f6e5ddbb960657b5d937419512818acc2f71bf71b1309ff39f9e4f6704500ec95809a7be5a2eaf97347aba0548b88c63c000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000cd0c6b0e054c6b0e054e6b0e054e",
	"6e8201374f10d27600012401030400060000000100005f520800730000e00590007f740381012073820110c00a7d000bfe080000ff0000c106010800001100c206010800001100c306010800001100da06010800001100c407017f7f7f030003c550000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000e9f5079a2003e46930c0d9c24a4e3318fdcbcf67c6500000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000cd10000000000000000000000000624d7083de0801000200030081027f660802020bfe02020bfed6020020d7020020d8020020d9020020",
	"65095b005f2d005f350139", "7a0593030000ff", "8101009000", "7f492286204f239762650afb9029f1ae05312b9277ca8f7cac23650ce4aec824e7eeccb6b5",
	"7f4943864104" + "2eaa2b69c000d261cd5154baea14d9dda50eb4f9badbf950dfc78b71ba2c9d1039f8d79dafd48745560edeb9662cb9a6b76a10e3869318d3c6a955121c7a6e58",
	"fa8201e2c106010800001100c109132a8648ce3d030107c10b162b060104019755010501c209122a8648ce3d030107c20b162b060104019755010501",
	"6e810103820108830403e00000840821c7749d1f68f0d3850813e3d46baf4af1bc86082dfd3fcab0a89fa4",
	"7f4906810101820103", "6e80", "6e830000ff", "c5ff", "6e0a73087306730473027300",
}

func addSeeds(f *testing.F) {
	for _, s := range seeds {
		f.Add(unhex(f, s))
	}
	f.Add([]byte(nil))
}

// FuzzObjects gives every parser of data objects the same octets.
func FuzzObjects(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		if i, err := keycard.ParseInfo(b); err == nil {
			i.Number()
			i.Ident()
			i.Find(0xc4)
			if i.PIN.PIN > 255 || i.CanReset() != (i.LifeCycle == 3 || i.LifeCycle == 5) {
				t.Errorf("%+v", i)
			}
		}
		keycard.ParseHolder(b)
		keycard.ParsePINStatus(b)
		keycard.ParseHistorical(b)
		keycard.ATRHistorical(b)
		keycard.ParseAttestation(b)
		if m, err := keycard.ParseAlgorithmInformation(b); err == nil {
			for slot, list := range m {
				for _, a := range list {
					if back, err := keycard.ParseAttributes(a.Attributes()); err != nil || !back.Same(a) {
						t.Errorf("%v: %+v became %+v, %v", slot, a, back, err)
					}
				}
			}
		}
		if k, err := keycard.ParseKDF(b); err == nil {
			if again, err := keycard.ParseKDF(k.Append(nil)); err != nil || again.Count != k.Count || again.Hash != k.Hash || !bytes.Equal(again.SaltUser, k.SaltUser) {
				t.Errorf("%+v became %+v, %v", k, again, err)
			}
			if k.Count < 1<<20 {
				k.Derive(keycard.PINAdmin, []byte("x"))
			}
		}
		for _, a := range []keycard.Algorithm{keycard.RSA(2048), keycard.EC(keycard.P256), keycard.EC(keycard.Ed25519), keycard.EC(keycard.P384).For(keycard.SlotDecrypt), keycard.EC(keycard.X25519)} {
			if p, err := keycard.ParsePublicKey(keycard.SlotSign, a, b); err == nil {
				p.FingerprintAt(created, keycard.KDFParams{})
				p.Params()
				p.Verify(b, b)
				if !p.Equal(p) {
					t.Error("a key does not equal itself")
				}
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("a parser changed its input")
		}
	})
}

// FuzzTLV checks that objects come out as they were written.
func FuzzTLV(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		keycard.FindTLV(b, 0x7f49)
		for rest := b; ; {
			o, next, err := keycard.NextTLV(rest)
			if err != nil {
				return
			}
			if len(next) >= len(rest) {
				t.Fatal("no progress")
			}
			again, left, err := keycard.NextTLV(keycard.AppendTLV(nil, o.Tag, o.Value))
			if err != nil || len(left) != 0 || again.Tag != o.Tag || !bytes.Equal(again.Value, o.Value) {
				t.Fatalf("%+v became %+v, %v", o, again, err)
			}
			rest = next
		}
	})
}

// FuzzCommand checks that commands come out as they were written, and that a
// log never shows a PIN.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{"00a4040006d27600012401", "0020008106313233343536", "00ca006e000000", "00da7f210002" + "00ff", "0047800002b60000", "00c00000", "002a8086000002aabb0000", "10db3ffffe"} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		keycard.MaskCommand(b)
		from, to := keycard.SecretData(b)
		if from > to || to > len(b) {
			t.Fatalf("secret [%d,%d) of %d octets", from, to, len(b))
		}
		c, ext, err := keycard.ParseCommand(b)
		if err != nil {
			return
		}
		if !ext && (len(c.Data) > 255 || c.Le > 256) || len(c.Data) > 65535 || c.Le > 65536 {
			t.Fatalf("%+v from a command of %d octets", c, len(b))
		}
		if len(c.Data) > 0 && b[1] == 0x20 && to-from < len(c.Data) {
			t.Fatalf("only [%d,%d) of a PIN is masked", from, to)
		}
		again, _, err := keycard.ParseCommand(c.Append(nil, true))
		if err != nil || again.INS != c.INS || !bytes.Equal(again.Data, c.Data) || again.Le != c.Le {
			t.Fatalf("%+v became %+v, %v", c, again, err)
		}
	})
}

// FuzzResponses lets the fuzzer be the card: its octets are cut into the
// answers to one command after the other.
func FuzzResponses(f *testing.F) {
	f.Add([]byte("\x02\x90\x00\x02\x61\x10\x03\x01\x61\x00\x02\x6c\x10"), uint8(3))
	for i, s := range seeds {
		b := unhex(f, s+"9000")
		if len(b) < 250 {
			f.Add(append(append([]byte{2, 0x90, 0, byte(len(b))}, b...), 2, 0x90, 0), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, script []byte, which uint8) {
		n := 0
		sc := softcard.MustNew(softcard.Config{Serial: 1, Fault: func(_ context.Context, k int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
			n++
			if k < 2 || len(script) == 0 {
				return process(cmd), nil
			}
			m := min(int(script[0]), len(script)-1)
			r := bytes.Clone(script[1 : 1+m])
			script = script[1+m:]
			return r, nil
		}})
		c, err := keycard.Open(t.Context(), sc, keycard.WithPINs(keycard.StaticPIN(user, adminPW)), keycard.WithMaxKDFCount(1<<16))
		if err != nil {
			t.Fatal(err)
		}
		e := everything[int(which)%len(everything)]
		e.f(t.Context(), c)
		c.Close()
		if n > 5000 {
			t.Errorf("%s: %d commands", e.name, n)
		}
	})
}
