package keycard_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox.example/internal/vectors"
	"signalbox.example/keycard"
	"signalbox.example/keycard/replay"
)

// recorded loads every recording of a card, by step.
func recorded(t testing.TB, card string) map[string]*replay.Session {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectors.Path(t, "keycard/"+card), "*.apdu"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings of %s: %v", card, err)
	}
	out := map[string]*replay.Session{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s, err := replay.Parse(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".apdu")] = s
	}
	return out
}

// step is one command of a recording with its parts put together.
type step struct {
	keycard.Command
	at   int // index of its first exchange
	resp []byte
	sw   uint16
}

func steps(t testing.TB, s *replay.Session) []step {
	t.Helper()
	var out []step
	var data []byte
	at := -1
	for i, e := range s.Exchanges {
		c, _, err := keycard.ParseCommand(e.Command)
		if err != nil {
			t.Fatalf("exchange %d: %v", i, err)
		}
		n := len(e.Response) - 2
		if c.INS == 0xc0 {
			l := &out[len(out)-1]
			l.resp = append(l.resp, e.Response[:n]...)
			l.sw = binary.BigEndian.Uint16(e.Response[n:])
			continue
		}
		if at < 0 {
			at = i
		}
		data = append(data, c.Data...)
		if c.CLA&0x10 != 0 {
			continue
		}
		c.Data = data
		out = append(out, step{c, at, bytes.Clone(e.Response[:n]), binary.BigEndian.Uint16(e.Response[n:])})
		data, at = nil, -1
	}
	return out
}

// guided answers from a place in a recording onwards, or else from anywhere
// in it.
type guided struct {
	list      []replay.Exchange
	here, any *replay.Player
	last      *replay.Player // the one that answered
	failed    error
}

func (g *guided) seek(at int) {
	g.here = (&replay.Session{Exchanges: g.list[at:]}).Play(replay.Loose)
	g.any = (&replay.Session{Exchanges: g.list}).Play(replay.Loose)
	g.last, g.failed = g.here, nil
}

func (g *guided) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	if cmd[1] == 0xc0 {
		return g.last.Transmit(ctx, cmd)
	}
	g.last = g.here
	r, err := g.here.Transmit(ctx, cmd)
	if errors.Is(err, replay.ErrNoMatch) {
		g.last = g.any
		r, err = g.any.Transmit(ctx, cmd)
	}
	if err != nil {
		g.failed = err
	}
	return r, err
}

func (g *guided) Close() error { return nil }

// tally says how many recorded commands took which way.
type tally struct{ client, bare int }

// TestRecordedCards walks through every step that four real cards were
// recorded with. Each command is carried out by the method of the client that
// sends it, on a player that knows only what the card said, and the result is
// compared with the record; signatures are verified, keys and fingerprints
// computed anew. What the client would never send goes through Send.
func TestRecordedCards(t *testing.T) {
	for _, card := range []string{"canokey", "smartpgp", "ykneo", "yubikey543"} {
		t.Run(card, func(t *testing.T) {
			all := recorded(t, card)
			pubs := map[keycard.Slot]*keycard.PublicKey{}
			var n tally
			for _, name := range slices.Sorted(keys(all)) {
				t.Run(name, func(t *testing.T) { walk(t, name, all[name], pubs, &n) })
			}
			t.Logf("%d recordings, %d commands by the client's methods, %d by Send", len(all), n.client, n.bare)
			if n.client < 2*n.bare {
				t.Errorf("only %d of %d commands by the client's methods", n.client, n.client+n.bare)
			}
		})
	}
}

func keys[M map[K]V, K comparable, V any](m M) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func walk(t *testing.T, name string, s *replay.Session, pubs map[keycard.Slot]*keycard.PublicKey, n *tally) {
	g := &guided{list: s.Exchanges}
	var c *keycard.Card
	list := steps(t, s)
	for i, st := range list {
		g.seek(st.at)
		if st.INS == 0xa4 && st.P1 == 4 && bytes.HasPrefix(st.Data, []byte{0xd2, 0x76, 0, 1, 0x24, 1}) && st.P2 == 0 {
			var err error
			// PINs in the recordings of cards with a KDF are hashed already.
			if c, err = keycard.Open(t.Context(), g, keycard.WithLastTry(), keycard.WithKDF(keycard.KDF{})); err != nil {
				if !strings.Contains(name, "raw") {
					t.Fatalf("open: %v", err)
				}
				c = nil // a probe that never read the application data
			} else {
				n.client++
				continue
			}
		}
		if c == nil {
			if _, err := g.Transmit(t.Context(), s.Exchanges[st.at].Command); err != nil {
				t.Fatal(err)
			}
			n.bare++
			continue
		}
		head := fmt.Sprintf("%02x%02x%02x%02x", st.CLA, st.INS, st.P1, st.P2)
		var done bool
		var err error
		// After a failed import commands do not fit the attributes, and a
		// probe has no PIN status beside the queries.
		if !(strings.HasPrefix(name, "fail") && st.INS == 0xdb || strings.Contains(name, "raw-probe") && st.INS == 0x20) {
			done, err = method(t, c, st, list[i:], pubs)
		}
		if errors.Is(err, replay.ErrNoMatch) {
			t.Errorf("%s: our client sends something else: %v", head, err)
			continue
		}
		if !done {
			b, sw, err := c.Send(t.Context(), st.Command)
			if err != nil || sw != st.sw || !bytes.Equal(b, st.resp) {
				t.Errorf("%s by Send: %x %04x %v", head, b, sw, err)
			}
			n.bare++
			continue
		}
		n.client++
		if (err == nil) != (st.sw == 0x9000) && !harmless(st) {
			t.Errorf("%s: card said %04x, our client %v", head, st.sw, err)
		}
		var se *keycard.StatusError
		if errors.As(err, &se) && se.SW != st.sw && se.SW != 0x6983 {
			t.Errorf("%s: card said %04x, our client %v", head, st.sw, err)
		}
	}
}

// harmless reports whether a refusal is one that the client takes for an
// absent object.
func harmless(st step) bool { return st.INS == 0xca || st.INS == 0x20 && len(st.Data) == 0 }

// method carries a command out with the client's method for it. It reports
// false if there is none that would send this.
func method(t *testing.T, c *keycard.Card, st step, rest []step, pubs map[keycard.Slot]*keycard.PublicKey) (done bool, err error) {
	ctx := t.Context()
	tag := uint16(st.P1)<<8 | uint16(st.P2)
	same := func(got []byte) {
		if st.sw == 0x9000 && !bytes.Equal(got, st.resp) {
			t.Errorf("object %02X: %x, recorded %x", tag, got, st.resp)
		}
	}
	text := func(got string, err error) (bool, error) {
		if err == nil {
			same([]byte(got))
		}
		return true, err
	}
	slot := keycard.SlotSign
	switch st.INS {
	case 0x47, 0xdb:
		var ok bool
		if slot, ok = slotOf(st); !ok {
			return false, nil
		}
	}
	switch {
	case st.CLA != 0:
		return false, nil
	case st.INS == 0xca:
		switch tag {
		case 0x6e:
			i, err := c.Refresh(ctx)
			if err != nil {
				return true, err
			}
			same(i.Raw())
		case 0x65:
			_, err = c.Holder(ctx)
		case 0x7a:
			n, err := c.Signatures(ctx)
			if err == nil && n != int(st.resp[len(st.resp)-1]) {
				t.Errorf("%d signatures, recorded %x", n, st.resp)
			}
		case 0x5e:
			return text(c.Login(ctx))
		case 0x5f50:
			return text(c.URL(ctx))
		case 0x7f21:
			b, err := c.Object(ctx, tag)
			same(b)
			return true, err
		case 0xfa:
			m, err := c.Algorithms(ctx)
			if err == nil && len(m) != 4 {
				t.Errorf("algorithms of %d slots", len(m))
			}
			return true, err
		case 0xf9:
			b, err := c.Object(ctx, tag)
			if err == nil {
				_, err = keycard.ParseKDF(b)
			}
			return true, err
		case 0xc4:
			b, err := c.Object(ctx, tag)
			if err == nil {
				_, err = keycard.ParsePINStatus(b)
			}
			return true, err
		default:
			b, err := c.Object(ctx, tag)
			same(b)
			return true, err
		}
		return true, err
	case st.INS == 0x20 && len(st.Data) > 0:
		m := keycard.PINMode(st.P2 - 0x81)
		err := c.Verify(ctx, m, keycard.NewPIN(bytes.Clone(st.Data)))
		want := map[uint16]error{0x9000: nil, 0x6982: keycard.ErrPIN, 0x6983: keycard.ErrBlocked, 0x6a80: keycard.ErrPINLength}
		if w, ok := want[st.sw]; !ok || !errors.Is(err, w) {
			if !errors.Is(err, keycard.ErrBlocked) { // known blocked: not sent
				t.Errorf("VERIFY: %04x became %v", st.sw, err)
			}
		}
		return true, err
	case st.INS == 0x20 && st.P1 == 0:
		ok, _, err := c.Verified(ctx, keycard.PINMode(st.P2-0x81))
		if err == nil && ok != (st.sw == 0x9000) {
			t.Errorf("verified %v, recorded %04x", ok, st.sw)
		}
		return true, err
	case st.INS == 0x24 && len(st.Data)%2 == 0 && len(st.Data) >= 12:
		m := keycard.PINMode(st.P2 - 0x81)
		half := len(st.Data) / 2
		if m == keycard.PINAdmin && half < 8 || st.P2 == 0x81 && bytes.HasSuffix(st.Data, []byte("hallo")) {
			return false, nil
		}
		return true, c.ChangePIN(ctx, m, keycard.NewPIN(bytes.Clone(st.Data[:half])), keycard.NewPIN(bytes.Clone(st.Data[half:])))
	case st.INS == 0x2c && st.P1 == 2:
		return true, c.Unblock(ctx, nil, keycard.NewPIN(bytes.Clone(st.Data)))
	case st.INS == 0x2c:
		at := len(st.Data) - 6
		return true, c.Unblock(ctx, keycard.NewPIN(bytes.Clone(st.Data[:at])), keycard.NewPIN(bytes.Clone(st.Data[at:])))
	case st.INS == 0xda && tag == 0xd3:
		if len(st.Data) == 0 {
			return true, c.SetResetCode(ctx, nil)
		}
		return true, c.SetResetCode(ctx, keycard.NewPIN(bytes.Clone(st.Data)))
	case st.INS == 0xda && tag == 0xc4:
		return true, c.SetForceSig(ctx, st.Data[0] == 0)
	case st.INS == 0xda:
		return true, c.SetObject(ctx, tag, st.Data)
	case st.INS == 0x84:
		b, err := c.Challenge(ctx, len(st.resp))
		same(b)
		return true, err
	case st.INS == 0x47 && st.P1 == 0x81:
		p, err := c.PublicKey(ctx, slot)
		if st.sw == 0x9000 && err == nil {
			pubs[slot] = p
		}
		if st.sw == 0x9000 && len(st.resp) == 38 && st.resp[2] == 0x43 && errors.Is(err, keycard.ErrMalformed) {
			return true, nil // SmartPGP after a failed import: 32 octets where 65 are announced
		}
		return true, err
	case st.INS == 0x47 && st.P1 == 0x80 && len(st.Data) == 2:
		p, err := keycard.ParsePublicKey(slot, c.Info().Keys[slot].Algorithm, st.resp)
		if err != nil {
			return true, err
		}
		pubs[slot] = p
		return true, generated(t, c, slot, rest)
	case st.INS == 0x47 && st.P1 == 0x80:
		// Another form of the same command: only the answer is read.
		i, err := c.Refresh(ctx)
		if err != nil {
			return true, err
		}
		p, err := keycard.ParsePublicKey(slot, i.Keys[slot].Algorithm, st.resp)
		if err == nil {
			pubs[slot] = p
		}
		return false, err
	case st.INS == 0xdb && st.sw == 0x9000 && len(st.Data) > 5 && bytes.Contains(st.Data[:8], []byte{slotTemplate(slot), 0}):
		return true, imported(t, c, slot, st, rest)
	case st.INS == 0x2a && st.P1 == 0x9e && st.sw == 0x9000:
		return use(t, c, keycard.SlotSign, st, pubs)
	case st.INS == 0x88 && st.sw == 0x9000 && len(st.Data) > 0:
		return use(t, c, keycard.SlotAuth, st, pubs)
	case st.INS == 0x2a && st.P1 == 0x80 && st.sw == 0x9000:
		p := pubs[keycard.SlotDecrypt]
		if p == nil {
			return false, nil
		}
		k, err := c.KeyFor(keycard.SlotDecrypt, p.Key, nil)
		if err != nil {
			return true, err
		}
		if st.Data[0] == 0 {
			b, err := k.DecryptRaw(ctx, st.Data[1:])
			same(b)
			return true, err
		}
		point, _ := keycard.FindTLV(st.Data, 0x86)
		b, err := k.ECDHRaw(ctx, point)
		same(b)
		return true, err
	}
	return false, nil
}

func slotTemplate(s keycard.Slot) byte { return [...]byte{0xb6, 0xb8, 0xa4}[s] }

// slotOf finds the slot that a generate or import command names.
func slotOf(st step) (keycard.Slot, bool) {
	d := st.Data
	if st.INS == 0xdb {
		o, _, err := keycard.NextTLV(d)
		if err != nil {
			return 0, false
		}
		d = o.Value
	}
	if len(d) > 0 {
		for s := keycard.SlotSign; s <= keycard.SlotAuth; s++ {
			if slotTemplate(s) == d[0] {
				return s, true
			}
		}
	}
	return 0, false
}

// stored finds the creation time that was written after a key.
func stored(slot keycard.Slot, rest []step) (time.Time, bool) {
	for _, st := range rest {
		if st.INS == 0xda && st.P1 == 0 && st.P2 == 0xce+byte(slot) && len(st.Data) == 4 {
			return time.Unix(int64(binary.BigEndian.Uint32(st.Data)), 0), true
		}
	}
	return time.Time{}, false
}

// generated lets our client generate. The player answers only if the
// fingerprint we write is the one that gpg wrote.
func generated(t *testing.T, c *keycard.Card, slot keycard.Slot, rest []step) error {
	when, ok := stored(slot, rest)
	if !ok {
		t.Fatal("no creation time in the recording")
	}
	_, err := c.Generate(t.Context(), slot, c.Info().Keys[slot].Algorithm, keycard.KeyMeta{Created: when})
	return err
}

// imported takes the private key out of the recorded command and lets our
// client import it: command and fingerprint must come out the same.
func imported(t *testing.T, c *keycard.Card, slot keycard.Slot, st step, rest []step) error {
	when, ok := stored(slot, rest)
	if !ok {
		t.Fatal("no creation time in the recording")
	}
	outer, _, _ := keycard.NextTLV(st.Data)
	lengths, _ := keycard.FindTLV(outer.Value, 0x7f48)
	values, ok := keycard.FindTLV(outer.Value, 0x5f48)
	if !ok {
		t.Fatalf("import without parts: %x", st.Data)
	}
	part := map[byte][]byte{}
	for len(lengths) > 0 {
		n, w := int(lengths[1]), 2
		switch n {
		case 0x81:
			n, w = int(lengths[2]), 3
		case 0x82:
			n, w = int(lengths[2])<<8|int(lengths[3]), 4
		}
		part[lengths[0]], values = values[:n], values[n:]
		lengths = lengths[w:]
	}
	a := c.Info().Keys[slot].Algorithm
	var key crypto.PrivateKey
	switch {
	case a.ID == keycard.AlgoRSA:
		e, p, q := new(big.Int).SetBytes(part[0x91]), new(big.Int).SetBytes(part[0x92]), new(big.Int).SetBytes(part[0x93])
		one := big.NewInt(1)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		k := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: int(e.Int64())}, D: new(big.Int).ModInverse(e, phi), Primes: []*big.Int{p, q}}
		k.Precompute()
		key = k
	case a.Curve == keycard.Ed25519:
		key = ed25519.NewKeyFromSeed(part[0x92])
	case a.Curve == keycard.X25519:
		b := bytes.Clone(part[0x92])
		slices.Reverse(b)
		k, err := ecdh.X25519().NewPrivateKey(b)
		if err != nil {
			t.Fatal(err)
		}
		key = k
	default:
		k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), part[0x92])
		if err != nil {
			t.Fatal(err)
		}
		key = k
	}
	_, err := c.Import(t.Context(), slot, key, keycard.KeyMeta{Created: when})
	return err
}

// use lets our client sign and verifies the card's signature.
func use(t *testing.T, c *keycard.Card, slot keycard.Slot, st step, pubs map[keycard.Slot]*keycard.PublicKey) (bool, error) {
	p := pubs[slot]
	if p == nil {
		return false, nil
	}
	in := st.Data
	if p.Algorithm.ID == keycard.AlgoECDSA {
		if size := p.Algorithm.Curve.Size(); len(in) > size {
			// A digest longer than the field: our client cuts it first, this
			// one let the card do so.
			if err := p.Verify(in, st.resp); err != nil {
				t.Error(err)
			}
			return false, nil
		}
	}
	k, err := c.KeyFor(slot, p.Key, nil)
	if err != nil {
		return true, err
	}
	sig, err := k.SignRaw(t.Context(), in)
	if err != nil {
		return true, err
	}
	if !bytes.Equal(sig, st.resp) && len(sig) == len(st.resp) {
		t.Errorf("signature %x, recorded %x", sig, st.resp)
	}
	if err := p.Verify(in, sig); err != nil {
		t.Errorf("%v signature over %x: %v", slot, in, err)
	}
	return true, nil
}
