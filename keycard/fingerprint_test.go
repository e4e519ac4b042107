package keycard_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"signalbox.example/internal/vectors"
	"signalbox.example/keycard"
)

// Public key packet bodies that gpg 2.2.40 wrote, and the fingerprints it
// gave them. Curves longer than 256 bits show its choice of ECDH parameters.
var gpgKeys = []struct {
	slot        keycard.Slot
	fingerprint string
	body        string
}{
	{keycard.SlotSign, "62C685DB9471F91CF8CD0242AF24A7FECBE7C003", "046b0e370d13052b81040022030304b69db852d654d4ecc573a14192d6ac9ce325d6c232d67d09e32f3242d591bb7d9167a6eee06eaf692946a300273e58d001b99c80d6a7e676baf31e6435605be67c8c5011d3881e36f59594dd3bddf3a175c4db8afe70e91ec8831551dbeeabfd"},
	{keycard.SlotDecrypt, "A0A28D33D622A64716BEC162E42E79A2B46ECC11", "046b0e370e12052b8104002203030468b0754a1347984b4d34f12fc1504c6c75b947c97fa9f1b9f028f8bd0d8d645a5ad9e38326e4773a0887c9c6b6a3df504db679effc991f04599a5b2cb9e86405cf7d8d6c8d2c9b7375f0bcdc4830df938804614acecc1e8816863a79c846703203010908"},
	{keycard.SlotSign, "9B1B3F92B43093F0946D6315861C027221A15237", "046b0e370e13052b8104002304230401b690a3d12a835ef92ed7b28b3832565f5513ce3e5399fb41ad0c36a1506215cfa21d9b37633fb3d5366dee59fc3ff5cede429ef981f34b92e1a7ca5fbd6ac9a0bd00186d765ed62d0a7c0121f71bea05dcad14ea3e7056d5c763d8e2aff7288b2ca3dab72f9e5cc71251b43e65b873b811545e1080a0c1eb1d6fa71821f8e5447bec29"},
	{keycard.SlotDecrypt, "AD712F490DB2C8A5D6B78BDCA1B1CD37F0F4BBB8", "046b0e370e12052b81040023042304003f503480b2917bd4611b9aa383ac5da0bd853a12679d5a55a21bf968d0fcb1ee0d1148a5f026a8ac3806f02bd06e3ea51e771ffaf473e8a807d0a6ae003b2536bb008c2f915d19924af760ba98c8aa36831d07d7a0ea4b6dc5af9f3435e55b1d8f28fe588b435e3b30ea516753affbf1bb542b276f91a2e37c71d6603c90bd954fcef503010a09"},
	{keycard.SlotSign, "AA6EF911D54160834277BDE4A63AE5E7D54E4A6D", "046b0e370e13082a8648ce3d03010702030401ededaf46f866d3f390cd86889708594a8173fa345ef5d3e4f7b3320ac366975fe9cfc76858659019065f728d4d43809d2a7fb621256e4c7eea9b28524f9458"},
	{keycard.SlotDecrypt, "62195F6A0A2657A2FFB62876CFB52E44FC5527ED", "046b0e370e12082a8648ce3d0301070203041975d3559296a0db23389748e90bbaf9bae862d1ec4bc26d1637b04bdb62086d69f3ef063565c2148a0f390ed361ec1a0fe2287f120591094ef985c814cf507603010807"},
}

func TestFingerprintsAsGPG(t *testing.T) {
	for _, v := range gpgKeys {
		body := unhex(t, v.body)
		created := time.Unix(int64(binary.BigEndian.Uint32(body[1:])), 0)
		oid := body[7 : 7+body[6]]
		point := body[7+len(oid)+2:]
		curve, ok := keycard.CurveFromOID(oid)
		if !ok {
			t.Fatalf("curve %x", oid)
		}
		point = point[:1+2*curve.Size()]
		ec := map[keycard.Curve]elliptic.Curve{keycard.P256: elliptic.P256(), keycard.P384: elliptic.P384(), keycard.P521: elliptic.P521()}[curve]
		pub, err := ecdsa.ParseUncompressedPublicKey(ec, point)
		if err != nil {
			t.Fatal(err)
		}
		p, err := keycard.NewPublicKey(v.slot, pub)
		if err != nil {
			t.Fatal(err)
		}
		if b := p.Body(created, keycard.KDFParams{}); !bytes.Equal(b, body) {
			t.Errorf("%v %v: body\n%x, gpg\n%x", curve, v.slot, b, body)
		}
		if f := p.FingerprintAt(created, keycard.KDFParams{}); f.String() != v.fingerprint {
			t.Errorf("%v %v: %v, gpg %s", curve, v.slot, f, v.fingerprint)
		}
	}
}

// The keys of the recordings, with the fingerprints that gpg put on the cards.
func TestFingerprintsOfRecordedKeys(t *testing.T) {
	for _, v := range []struct{ card, step string }{
		{"canokey", "21-rsa2048-status"}, {"canokey", "21-p256-status"}, {"canokey", "21-c25519-status"},
		{"canokey", "42-c25519-status"}, {"smartpgp", "21-p256-status"}, {"ykneo", "21-rsa2048-status"},
	} {
		s := recorded(t, v.card)[v.step]
		g := &guided{list: s.Exchanges}
		g.seek(0)
		c, err := keycard.Open(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := c.Check(t.Context()); err != nil || problems != nil {
			t.Errorf("%s %s: %v, %v", v.card, v.step, problems, err)
		}
		for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
			p, err := c.PublicKey(t.Context(), slot)
			if err != nil {
				t.Fatal(err)
			}
			params, ok := p.Params()
			if !ok {
				t.Errorf("%s %s %v: no parameters fit", v.card, v.step, slot)
			}
			if slot == keycard.SlotDecrypt && p.Algorithm.ID == keycard.AlgoECDH && params != (keycard.KDFParams{Hash: 8, Cipher: 7}) {
				t.Errorf("%s %s: parameters %+v", v.card, v.step, params)
			}
		}
	}
}

func TestUnusualECDHParametersAreFound(t *testing.T) {
	k, err := ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	p, err := keycard.NewPublicKey(keycard.SlotDecrypt, k.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	want := keycard.KDFParams{Hash: 10, Cipher: 9}
	p.Created, p.Fingerprint = created, p.FingerprintAt(created, want)
	if got, ok := p.Params(); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	p.Fingerprint[0] ^= 1
	if got, ok := p.Params(); ok {
		t.Errorf("a wrong fingerprint fits %+v", got)
	}
}

// The KDF object and the hashed PINs that gpg sent to a SmartPGP.
func TestKDFAsGPG(t *testing.T) {
	var k keycard.KDF
	hashed := map[string]bool{}
	for _, step := range []string{"60-kdf-setup", "61-status-kdf", "62-verify-kdf", "63-change-pin-kdf", "64-change-pin-back-kdf"} {
		for _, l := range vectors.Lines(t, "keycard/smartpgp/"+step+".apdu") {
			if v, ok := strings.CutPrefix(l, "> 00da00f96e"); ok {
				var err error
				if k, err = keycard.ParseKDF(unhex(t, v)); err != nil {
					t.Fatal(err)
				}
				if b := k.Append(nil); hex.EncodeToString(b) != v {
					t.Errorf("written again: %x, gpg %s", b, v)
				}
			}
			if v, ok := strings.CutPrefix(l, "> 0020008120"); ok {
				hashed[v] = true
			}
			if v, ok := strings.CutPrefix(l, "> 0024008140"); ok {
				hashed[v[:64]], hashed[v[64:]] = true, true
			}
		}
	}
	if !k.Active() || k.Hash != 8 || k.Count != 65011712 {
		t.Fatalf("%+v", k)
	}
	if testing.Short() {
		t.Skip("hashes 130 MB")
	}
	user := hex.EncodeToString(k.Derive(keycard.PINUser, []byte("123456")))
	if user != hex.EncodeToString(k.InitialUser) || !hashed[user] {
		t.Errorf("user %s, gpg %x and %v", user, k.InitialUser, hashed)
	}
	if admin := k.Derive(keycard.PINAdmin, []byte("12345678")); !bytes.Equal(admin, k.InitialAdmin) {
		t.Errorf("admin %x, gpg %x", admin, k.InitialAdmin)
	}
}

// What the YubiKey's own test suite sent: SHA-512 over 100,000 octets.
func TestKDFAsYubiKeyRecording(t *testing.T) {
	var k keycard.KDF
	for _, l := range vectors.Lines(t, "keycard/yubikey543/TestSetupKDF.apdu") {
		if v, ok := strings.CutPrefix(l, "> 00da00f9ae"); ok {
			var err error
			if k, err = keycard.ParseKDF(unhex(t, v)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if k.Hash != 10 || k.Count != 100000 {
		t.Fatalf("%+v", k)
	}
	if got := k.Derive(keycard.PINUser, []byte("123456")); !bytes.Equal(got, k.InitialUser) {
		t.Errorf("user %x, recorded %x", got, k.InitialUser)
	}
	if got := k.Derive(keycard.PINAdmin, []byte("12345678")); !bytes.Equal(got, k.InitialAdmin) {
		t.Errorf("admin %x, recorded %x", got, k.InitialAdmin)
	}
}
