package keycard_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"signalbox.example/keycard"
	"signalbox.example/keycard/replay"
	"signalbox.example/keycard/softcard"
)

// TestRecordedStatus reads the status of real cards in every state that was
// recorded: blank, filled in, with keys of three kinds, PIN blocked, Admin PIN
// blocked, with a KDF, after a reset. Deviations of each card are named.
func TestRecordedStatus(t *testing.T) {
	type want struct {
		pin        [3]int // tries: PIN, resetting code, Admin PIN
		multiple   bool
		name, url  string
		algorithms string
		keys       bool // fingerprints are there
		kdf        bool
	}
	blank := want{pin: [3]int{3, 0, 3}, algorithms: "rsa2048 rsa2048 rsa2048"}
	with := func(w want, f func(*want)) want { f(&w); return w }
	for _, card := range []struct {
		name   string
		major  byte
		maker  uint16
		ext    bool // extended length
		chain  bool
		uif    keycard.UIF
		origin bool // has the key information object
		cycle  byte
		steps  map[string]want
	}{
		// CanoKey: extended length but no chaining; objects outside 73 at
		// the end of 6E; its empty resetting code has 0 tries.
		{"canokey", 3, 0xf1d0, true, false, keycard.UIFOff, true, 5, map[string]want{
			"01-status-blank":         blank,
			"03-status-filled":        with(blank, func(w *want) { w.name, w.url = "Test Holder", "https://example.org/key.asc" }),
			"21-c25519-status":        with(blank, func(w *want) { w.algorithms, w.keys = "ed25519 cv25519 ed25519", true }),
			"21-p256-status":          with(blank, func(w *want) { w.algorithms, w.keys = "nistp256 nistp256 nistp256", true }),
			"21-rsa2048-status":       with(blank, func(w *want) { w.keys = true }),
			"31-status-after-reset":   blank,
			"56-status-blocked":       with(blank, func(w *want) { w.pin[0] = 0 }),
			"71-status-admin-blocked": with(blank, func(w *want) { w.pin = [3]int{0, 3, 0} }),
			"73-status":               blank,
		}},
		// SmartPGP: chaining only; 7A and 65 without the outer object; no
		// key information, no touch.
		{"smartpgp", 3, 0xafaf, false, true, keycard.UIFAbsent, false, 5, map[string]want{
			"01-status-blank":         blank,
			"03-status-filled":        with(blank, func(w *want) { w.name, w.url = "Test Holder", "https://example.org/key.asc" }),
			"21-p256-status":          with(blank, func(w *want) { w.algorithms, w.keys = "nistp256 nistp256 nistp256", true }),
			"21-rsa2048-status":       with(blank, func(w *want) { w.keys = true }),
			"56-status-blocked":       with(blank, func(w *want) { w.pin[0] = 0 }),
			"61-status-kdf":           with(blank, func(w *want) { w.pin = [3]int{0, 3, 3}; w.kdf = true }),
			"71-status-admin-blocked": with(blank, func(w *want) { w.pin = [3]int{0, 3, 0}; w.kdf = true }),
			"73-status":               blank,
		}},
		// ykneo: version 2.0, application data without 6E, fifteen historical
		// octets without life cycle.
		{"ykneo", 2, 0x0006, false, true, keycard.UIFAbsent, false, 0, map[string]want{
			"21-rsa2048-status":       with(blank, func(w *want) { w.pin[1] = 3; w.keys = true }),
			"56-status-blocked":       with(blank, func(w *want) { w.pin = [3]int{0, 3, 3}; w.keys = true }),
			"71-status-admin-blocked": with(blank, func(w *want) { w.pin = [3]int{0, 3, 0}; w.keys = true }),
		}},
		// YubiKey 5.4.3: 80 octets of fingerprints, 483 of algorithms.
		{"yubikey543", 3, 0x0006, true, true, keycard.UIFOff, true, 5, map[string]want{
			"TestApplicationRelated": with(blank, func(w *want) { w.multiple = true }),
		}},
	} {
		all := recorded(t, card.name)
		for step, w := range card.steps {
			t.Run(card.name+"/"+step, func(t *testing.T) {
				s := all[step]
				if s == nil {
					t.Fatal("no such recording")
				}
				c, err := keycard.Open(t.Context(), tolerant{s.Play(replay.Loose)})
				if err != nil {
					t.Fatal(err)
				}
				st, err := c.Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				i := st.Info
				if i.Major != card.major || i.Manufacturer != card.maker || i.Capabilities.ExtendedLength != card.ext ||
					i.Capabilities.Chaining != card.chain || i.LifeCycle != card.cycle {
					t.Errorf("info %+v", i)
				}
				if got := [3]int{i.PIN.PIN, i.PIN.ResetCode, i.PIN.Admin}; got != w.pin || i.PIN.Multiple != w.multiple {
					t.Errorf("PINs %+v, want %v", i.PIN, w.pin)
				}
				if st.Holder.Name() != w.name && !(w.name == "Test Holder" && st.Holder.Name() == "Test Holder") || st.URL != w.url {
					t.Errorf("holder %+v, URL %q", st.Holder, st.URL)
				}
				var names []string
				for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
					k := i.Keys[slot]
					names = append(names, k.Algorithm.String())
					if k.Fingerprint.IsZero() == w.keys || k.Created.IsZero() == w.keys {
						t.Errorf("%v: %+v", slot, k)
					}
					if k.UIF != card.uif {
						t.Errorf("%v: touch %v", slot, k.UIF)
					}
					if (k.Origin != keycard.OriginUnknown) != card.origin || card.origin && (k.Origin == keycard.OriginNone) == w.keys {
						t.Errorf("%v: origin %v", slot, k.Origin)
					}
				}
				if strings.Join(names, " ") != w.algorithms {
					t.Errorf("algorithms %v", names)
				}
				if st.KDF.Active() != w.kdf || st.Signatures < 0 {
					t.Errorf("KDF %+v, %d signatures", st.KDF, st.Signatures)
				}
			})
		}
	}
}

// tolerant answers what was not recorded as a card without the object would.
type tolerant struct{ *replay.Player }

func (p tolerant) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	r, err := p.Player.Transmit(ctx, cmd)
	if errors.Is(err, replay.ErrNoMatch) {
		return []byte{0x6a, 0x88}, nil
	}
	return r, err
}

func TestInfoOfMalformedObjects(t *testing.T) {
	good := "6e4e" + "4f10d2760001240103040006000000010000" + "5f520800730000e0059000" + "732f" +
		"c00a7d000bfe080000ff0000" + "c106010800001100" + "c206010800001100" + "c306010800001100" + "c407017f7f7f0300030000"
	if _, err := keycard.ParseInfo(unhex(t, good)); err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct{ what, from, to string }{
		{"no C4", "c407017f7f7f030003", "fe07017f7f7f030003"},
		{"C4 of six octets", "c407017f7f7f030003", "c406017f7f7f03000000"},
		{"no AID", "4f10", "4e10"},
		{"short AID", "4f10d2760001240103040006000000010000", "4f04d27600015f3f09000000000000000000"},
		{"indefinite length", "6e4e", "6e80"},
		{"length of three octets", "6e4e", "6e8300004e"},
		{"length beyond the end", "732f", "737f"},
	} {
		b := unhex(t, strings.Replace(good, v.from, v.to, 1))
		if _, err := keycard.ParseInfo(b); !errors.Is(err, keycard.ErrMalformed) {
			t.Errorf("%s: %v", v.what, err)
		}
	}
	// Zeros after the objects, an unknown object, a duplicate.
	i, err := keycard.ParseInfo(unhex(t, strings.TrimPrefix(good, "6e4e")+"c4070055555503030300"+"df0101aa"+"0000"))
	if err != nil || !i.PIN.Multiple || i.PIN.MaxPIN != 0x7f {
		t.Errorf("%+v, %v", i, err)
	}
	if v, ok := i.Find(0xdf01); !ok || !bytes.Equal(v, []byte{0xaa}) {
		t.Errorf("unknown object %x", v)
	}
}

func TestHolderAndObjects(t *testing.T) {
	for name, cfg := range personalities {
		c, _ := open(t, cfg)
		h := keycard.Holder{Surname: "van der Berg", Given: "Anna Maria", Language: "nlen", Salutation: '2'}
		if err := c.SetHolder(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Holder(t.Context()); err != nil || got != h || got.Name() != "Anna Maria van der Berg" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err := c.SetHolder(t.Context(), keycard.Holder{Surname: strings.Repeat("x", 40)}); !errors.Is(err, keycard.ErrTooLong) {
			t.Errorf("%s: long name: %v", name, err)
		}
		if err := c.SetLogin(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		if s, err := c.Login(t.Context()); s != "anna" || err != nil {
			t.Errorf("%s: login %q, %v", name, s, err)
		}
		for n := 1; n <= 4; n++ {
			v := []byte{byte(n), 0, 0xff}
			if err := c.SetPrivateObject(t.Context(), n, v); err != nil {
				t.Fatal(err)
			}
			if got, err := c.PrivateObject(t.Context(), n); err != nil || !bytes.Equal(got, v) {
				t.Errorf("%s: private object %d: %x, %v", name, n, got, err)
			}
		}
		if b, err := c.Challenge(t.Context(), 600); err != nil || len(b) != 600 || bytes.Count(b, []byte{0}) > 30 {
			t.Errorf("%s: challenge of %d octets, %v", name, len(b), err)
		}
		if _, err := c.Object(t.Context(), 0x1234); !errors.Is(err, keycard.ErrNotFound) {
			t.Errorf("%s: unknown object: %v", name, err)
		}
		f := keycard.Fingerprint{1, 2, 3}
		if err := c.SetCAFingerprint(t.Context(), keycard.SlotAuth, f); err != nil || c.Info().Keys[keycard.SlotAuth].CA != f {
			t.Errorf("%s: CA fingerprint: %v", name, err)
		}
	}
}

func TestFetchKey(t *testing.T) {
	c, _ := open(t, softcard.Config{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/key":
			w.Write([]byte("public key"))
		case "/long":
			w.Write(make([]byte, 100))
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	if _, err := c.FetchKey(t.Context(), nil, 50); !errors.Is(err, keycard.ErrNotFound) {
		t.Errorf("no URL: %v", err)
	}
	for _, v := range []struct {
		url  string
		want string
		err  error
	}{
		{srv.URL + "/key", "public key", nil},
		{srv.URL + "/long", "", keycard.ErrTooLong},
		{"file:///etc/passwd", "", keycard.ErrUnsupported},
		{"ldap://x", "", keycard.ErrUnsupported},
	} {
		if err := c.SetURL(t.Context(), v.url); err != nil {
			t.Fatal(err)
		}
		b, err := c.FetchKey(t.Context(), srv.Client(), 50)
		if string(b) != v.want || !errors.Is(err, v.err) {
			t.Errorf("%s: %q, %v", v.url, b, err)
		}
	}
	if err := c.SetURL(t.Context(), srv.URL+"/key"); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]string{10: "public key", math.MaxInt64: "public key", 9: "", 0: "", -1: "", math.MinInt64: ""} {
		if b, err := c.FetchKey(t.Context(), srv.Client(), limit); string(b) != want || errors.Is(err, keycard.ErrTooLong) != (want == "") {
			t.Errorf("limit %d: %q, %v", limit, b, err)
		}
	}
	if err := c.SetURL(t.Context(), srv.URL+"/none"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.FetchKey(t.Context(), srv.Client(), 50); err == nil {
		t.Error("404 gave no error")
	}
}

// Fillers at the end of a name (ISO/IEC 7501-1 pads with them) are spaces like
// those inside it.
func TestNameWithFillers(t *testing.T) {
	for name, want := range map[string]string{
		"DOE<<JOHN":            "JOHN DOE",
		"DOE<<JOHN<<<<<<<":     "JOHN DOE",
		"VAN<DER<DOE<<JOHN<Q":  "JOHN Q VAN DER DOE",
		"DOE<<JOHN<<Q":         "JOHN  Q DOE",
		"DOE":                  "DOE",
		"DOE<<":                "DOE",
		"DOE<<<JOHN":           "JOHN DOE",
		"":                     "",
		"<<<<":                 "",
		"DOE<<JOHN<<JUNIOR<<<": "JOHN  JUNIOR DOE",
	} {
		h, err := keycard.ParseHolder(keycard.AppendTLV(nil, 0x5b, []byte(name)))
		if err != nil || h.Name() != want {
			t.Errorf("%q: %q, %v, want %q", name, h.Name(), err, want)
		}
	}
}

func TestATRHistorical(t *testing.T) {
	for _, v := range []struct{ atr, want string }{
		{"3b8a010031c573c001c00590004b", "0031c573c001c0059000"},
		{"3bfd1300008131fe158073c021c057597562694b657940", "8073c021c057597562694b6579"}, // YubiKey 5
		{"3bda18ff81b1fe751f030031c573c001400090000c", "0031c573c00140009000"},           // a card of T=1 with TA1
		{"3b", ""}, {"", ""}, {"3bff", ""}, {"3bf0000000", ""}, {"3b02aa", ""},
	} {
		if got := hex.EncodeToString(keycard.ATRHistorical(unhex(t, v.atr))); got != v.want {
			t.Errorf("%s: %s, want %s", v.atr, got, v.want)
		}
	}
	for _, v := range []struct {
		hist       string
		ext, chain bool
		cycle      byte
	}{
		{"0031c573c001400590 00", true, false, 5},
		{"00c1c573c00180059000", false, true, 5},
		{"00730000e0059000", true, true, 5},
		{"8073c021c057597562694b6579", true, true, 0},
		{"80730000408103", true, false, 3},
		{"107300", false, false, 0}, {"00", false, false, 0}, {"", false, false, 0}, {"007f0000059000", false, false, 5},
	} {
		h := keycard.ParseHistorical(unhex(t, v.hist))
		if h.ExtendedLength != v.ext || h.Chaining != v.chain || h.LifeCycle != v.cycle {
			t.Errorf("%s: %+v", v.hist, h)
		}
	}
}
