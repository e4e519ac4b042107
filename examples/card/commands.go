package main

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/pcscd"
)

func (t *tool) status(args []string) error {
	asJSON := false
	if _, err := t.flags("status", args, 0, 0, func(fs *flag.FlagSet) {
		fs.BoolVar(&asJSON, "json", false, "print a JSON object in one line")
	}); err != nil {
		return err
	}
	return t.open(func(c *keycard.Card) error {
		s, err := c.Status(t.ctx)
		if err != nil {
			return err
		}
		if asJSON {
			o := describe(s)
			problems, err := c.Check(t.ctx)
			for _, p := range problems {
				o.Problems = append(o.Problems, fmt.Sprint(p))
			}
			if e := json.NewEncoder(t.out).Encode(o); err == nil {
				err = e
			}
			return err
		}
		t.print(s)
		problems, err := c.Check(t.ctx)
		for _, p := range problems {
			fmt.Fprintf(t.out, "problem ............: %v\n", p)
		}
		return err
	})
}

// statusJSON is what status -json prints. What the card does not have or say
// is absent.
type statusJSON struct {
	Application string `json:"application"` // identifier with the serial number, hexadecimal
	Version     string `json:"version"`     // of the specification
	Card        string `json:"card"`        // manufacturer and serial number
	Cardholder  string `json:"cardholder,omitempty"`
	Language    string `json:"language,omitempty"`
	URL         string `json:"url,omitempty"`
	Login       string `json:"login,omitempty"`
	ForcedPIN   bool   `json:"signature_pin_forced"`
	Tries       struct {
		PIN       int `json:"pin"`
		ResetCode int `json:"reset_code"`
		Admin     int `json:"admin"`
	} `json:"tries_left"`
	Signatures *int      `json:"signatures,omitempty"`
	KDFOctets  uint32    `json:"kdf_octets,omitempty"` // hashed per PIN
	Keys       []keyJSON `json:"keys,omitempty"`
	Problems   []string  `json:"problems,omitempty"`
}

type keyJSON struct {
	Slot        string `json:"slot"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Algorithm   string `json:"algorithm"`
	Origin      string `json:"origin"` // none: no key; generated, imported, unknown
	Created     string `json:"created,omitempty"`
	Touch       string `json:"touch,omitempty"`
}

func describe(s *keycard.Status) *statusJSON {
	i := s.Info
	o := &statusJSON{Application: i.Number(), Version: fmt.Sprintf("%d.%d", i.Major, i.Minor), Card: i.Ident(),
		Cardholder: s.Holder.Name(), Language: s.Holder.Language, URL: s.URL, Login: s.Login, ForcedPIN: !i.PIN.Multiple}
	o.Tries.PIN, o.Tries.ResetCode, o.Tries.Admin = i.PIN.PIN, i.PIN.ResetCode, i.PIN.Admin
	if s.Signatures >= 0 {
		o.Signatures = &s.Signatures
	}
	if s.KDF.Active() {
		o.KDFOctets = s.KDF.Count
	}
	for slot := keycard.SlotSign; slot <= keycard.SlotAttest; slot++ {
		k := i.Keys[slot]
		if !k.Present {
			continue
		}
		j := keyJSON{Slot: slot.String(), Algorithm: k.Algorithm.String(), Origin: k.Origin.String()}
		if !k.Fingerprint.IsZero() {
			j.Fingerprint = k.Fingerprint.String()
		}
		if !k.Created.IsZero() {
			j.Created = k.Created.UTC().Format(time.RFC3339)
		}
		if k.UIF != keycard.UIFAbsent {
			j.Touch = k.UIF.String()
		}
		o.Keys = append(o.Keys, j)
	}
	return o
}

func (t *tool) print(s *keycard.Status) {
	line := func(name, format string, v ...any) {
		fmt.Fprintf(t.out, "%s %s: %s\n", name, strings.Repeat(".", max(1, 19-len(name))), fmt.Sprintf(format, v...))
	}
	set := func(s string) string {
		if s == "" {
			return "[not set]"
		}
		return s
	}
	i := s.Info
	line("application", "%s", i.Number())
	line("version", "%d.%d", i.Major, i.Minor)
	line("card", "%s", i.Ident())
	line("cardholder", "%s", set(s.Holder.Name()))
	line("language", "%s", set(s.Holder.Language))
	line("URL", "%s", set(s.URL))
	line("login", "%s", set(s.Login))
	forced := "forced"
	if i.PIN.Multiple {
		forced = "not forced"
	}
	line("signature PIN", "%s", forced)
	line("tries left", "PIN %d, resetting code %d, Admin PIN %d", i.PIN.PIN, i.PIN.ResetCode, i.PIN.Admin)
	if s.Signatures >= 0 {
		line("signatures", "%d", s.Signatures)
	}
	kdf := "off"
	if s.KDF.Active() {
		kdf = fmt.Sprintf("on, %d octets", s.KDF.Count)
	}
	line("KDF", "%s", kdf)
	for slot := keycard.SlotSign; slot <= keycard.SlotAttest; slot++ {
		k := i.Keys[slot]
		if !k.Present {
			continue
		}
		f := "[none]"
		if !k.Fingerprint.IsZero() {
			f = k.Fingerprint.String()
		}
		line(slot.String()+" key", "%s", f)
		fmt.Fprintf(t.out, "    %v, %v", k.Algorithm, k.Origin)
		if !k.Created.IsZero() {
			fmt.Fprintf(t.out, ", created %s", k.Created.Format(time.DateTime))
		}
		if k.UIF != keycard.UIFAbsent {
			fmt.Fprintf(t.out, ", touch %v", k.UIF)
		}
		fmt.Fprintln(t.out)
	}
}

func (t *tool) holder(args []string) error {
	var surname, given, lang, sex, url, login string
	was := map[string]bool{} // flags that were given
	_, err := t.flags("holder", args, 0, 0, func(fs *flag.FlagSet) {
		for name, v := range map[string]*string{"surname": &surname, "given": &given, "lang": &lang, "salutation": &sex, "url": &url, "login": &login} {
			fs.Func(name, "set it", func(s string) error { *v = s; was[name] = true; return nil })
		}
	})
	if err != nil {
		return err
	}
	if sex != "" && sex != "1" && sex != "2" && sex != "9" {
		return usageError("holder: salutation is 1, 2 or 9")
	}
	return t.open(func(c *keycard.Card) error {
		h, err := c.Holder(t.ctx)
		if err != nil {
			return err
		}
		if was["surname"] || was["given"] || was["lang"] || was["salutation"] {
			for name, v := range map[string]*string{"surname": &h.Surname, "given": &h.Given, "lang": &h.Language} {
				if was[name] {
					*v = map[string]string{"surname": surname, "given": given, "lang": lang}[name]
				}
			}
			if sex != "" {
				h.Salutation = sex[0]
			}
			if err := c.SetHolder(t.ctx, h); err != nil {
				return err
			}
		}
		if was["url"] {
			if err := c.SetURL(t.ctx, url); err != nil {
				return err
			}
		}
		if was["login"] {
			if err := c.SetLogin(t.ctx, login); err != nil {
				return err
			}
		}
		if url, err = c.URL(t.ctx); err != nil {
			return err
		}
		if login, err = c.Login(t.ctx); err != nil {
			return err
		}
		fmt.Fprintf(t.out, "name: %s\nlanguage: %s\nURL: %s\nlogin: %s\n", h.Name(), h.Language, url, login)
		return nil
	})
}

func (t *tool) pin(args []string) error {
	var admin, code bool
	_, err := t.flags("pin", args, 0, 0, func(fs *flag.FlagSet) {
		fs.BoolVar(&admin, "admin", false, "change the Admin PIN")
		fs.BoolVar(&code, "reset-code", false, "set the resetting code")
	})
	if err != nil {
		return err
	}
	if admin && code {
		return usageError("pin: -admin or -reset-code, not both")
	}
	return t.open(func(c *keycard.Card) error {
		m := keycard.PINUser
		if admin {
			m = keycard.PINAdmin
		}
		if code {
			n, err := t.pins.getNew("resetting code")
			if err != nil {
				return err
			}
			defer n.Clear()
			return c.SetResetCode(t.ctx, n)
		}
		old, err := t.pins.get(key(m), "present "+m.String())
		if err != nil {
			return err
		}
		defer old.Clear()
		n, err := t.pins.getNew(m.String())
		if err != nil {
			return err
		}
		defer n.Clear()
		return c.ChangePIN(t.ctx, m, old, n)
	})
}

func (t *tool) unblock(args []string) error {
	var code bool
	_, err := t.flags("unblock", args, 0, 0, func(fs *flag.FlagSet) {
		fs.BoolVar(&code, "reset-code", false, "use the resetting code instead of the Admin PIN")
	})
	if err != nil {
		return err
	}
	return t.open(func(c *keycard.Card) error {
		var rc *keycard.PIN
		if code {
			if rc, err = t.pins.get("reset-code", "resetting code"); err != nil {
				return err
			}
			defer rc.Clear()
		}
		n, err := t.pins.getNew("PIN")
		if err != nil {
			return err
		}
		defer n.Clear()
		return c.Unblock(t.ctx, rc, n)
	})
}

func slotArgument(s string) (keycard.Slot, error) {
	slot, err := keycard.ParseSlot(s)
	if err != nil || slot > keycard.SlotAuth {
		return 0, usageError(fmt.Sprintf("no slot %q (sign, decrypt, auth)", s))
	}
	return slot, nil
}

func (t *tool) printKey(p *keycard.PublicKey) error {
	fmt.Fprintf(t.out, "%v %v %v\n", p.Slot, p.Algorithm, p.Fingerprint)
	der, err := x509.MarshalPKIXPublicKey(p.Key)
	if err != nil {
		return nil // a curve without a PEM form
	}
	return pem.Encode(t.out, &pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func (t *tool) generate(args []string) error {
	a, err := t.flags("generate", args, 2, 2, nil)
	if err != nil {
		return err
	}
	slot, err := slotArgument(a[0])
	if err != nil {
		return err
	}
	alg, err := keycard.ParseAlgorithm(a[1])
	if err != nil {
		return usageError(err.Error())
	}
	return t.open(func(c *keycard.Card) error {
		p, err := c.Generate(t.ctx, slot, alg, keycard.KeyMeta{})
		if err != nil {
			return err
		}
		return t.printKey(p)
	})
}

func (t *tool) importKey(args []string) error {
	created := time.Now()
	a, err := t.flags("import", args, 2, 2, func(fs *flag.FlagSet) {
		fs.Func("created", "creation `time` that the fingerprint covers, as 2006-01-02T15:04:05Z (default now)", func(s string) (err error) {
			created, err = time.Parse(time.RFC3339, s)
			return err
		})
	})
	if err != nil {
		return err
	}
	slot, err := slotArgument(a[0])
	if err != nil {
		return err
	}
	b, err := os.ReadFile(a[1])
	if err != nil {
		return err
	}
	defer clear(b)
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "PRIVATE KEY" {
		return fmt.Errorf("%s: no PKCS #8 private key in PEM form", a[1])
	}
	defer clear(block.Bytes)
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", a[1], err)
	}
	return t.open(func(c *keycard.Card) error {
		p, err := c.Import(t.ctx, slot, k, keycard.KeyMeta{Created: created})
		if err != nil {
			return err
		}
		return t.printKey(p)
	})
}

// input opens the file of the last argument, or standard input.
func (t *tool) input(a []string) (io.ReadCloser, error) {
	if len(a) == 0 || a[0] == "-" {
		return io.NopCloser(t.in), nil
	}
	return os.Open(a[0])
}

func (t *tool) sign(name string, slot keycard.Slot, args []string) error {
	hash := crypto.SHA256
	a, err := t.flags(name, args, 0, 1, func(fs *flag.FlagSet) {
		fs.Func("hash", "sha256, sha384 or sha512 (default sha256; Ed25519 signs the message itself)", func(s string) error {
			h, ok := map[string]crypto.Hash{"sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512}[s]
			if !ok {
				return errors.New("sha256, sha384 or sha512")
			}
			hash = h
			return nil
		})
	})
	if err != nil {
		return err
	}
	f, err := t.input(a)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.open(func(c *keycard.Card) error {
		k, err := c.Key(t.ctx, slot, nil)
		if err != nil {
			return err
		}
		k = k.WithContext(t.ctx)
		var in []byte
		if k.PublicKey().Algorithm.ID == keycard.AlgoEdDSA {
			hash = 0
			if in, err = io.ReadAll(io.LimitReader(f, 2048)); err == nil && len(in) == 2048 {
				err = errors.New("message too long for Ed25519 on a card: sign its digest")
			}
		} else {
			h := sha256.New()
			if hash == crypto.SHA384 {
				h = sha512.New384()
			} else if hash == crypto.SHA512 {
				h = sha512.New()
			}
			_, err = io.Copy(h, f)
			in = h.Sum(nil)
		}
		if err != nil {
			return err
		}
		sig, err := k.Sign(nil, in, hash)
		if err != nil {
			return err
		}
		_, err = t.out.Write(sig)
		return err
	})
}

func (t *tool) decrypt(args []string) error {
	a, err := t.flags("decrypt", args, 0, 1, nil)
	if err != nil {
		return err
	}
	f, err := t.input(a)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 16<<10))
	if err != nil {
		return err
	}
	return t.open(func(c *keycard.Card) error {
		k, err := c.Key(t.ctx, keycard.SlotDecrypt, nil)
		if err != nil {
			return err
		}
		k = k.WithContext(t.ctx)
		var plain []byte
		if block, _ := pem.Decode(b); block != nil {
			peer, err := peerKey(block.Bytes)
			if err != nil {
				return err
			}
			plain, err = k.ECDH(peer)
			if err != nil {
				return err
			}
		} else if plain, err = k.Decrypt(nil, b, nil); err != nil {
			return err
		}
		defer clear(plain)
		_, err = t.out.Write(plain)
		return err
	})
}

func peerKey(der []byte) (*ecdh.PublicKey, error) {
	p, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, err
	}
	switch p := p.(type) {
	case *ecdh.PublicKey:
		return p, nil
	case *ecdsa.PublicKey:
		return p.ECDH()
	}
	return nil, fmt.Errorf("a public key of type %T has no ECDH", p)
}

func (t *tool) cert(args []string) error {
	a, err := t.flags("cert", args, 1, 3, nil)
	if err != nil {
		return err
	}
	slot, err := keycard.ParseSlot(a[0])
	if err != nil {
		return usageError(err.Error())
	}
	what := "read"
	if len(a) > 1 {
		what = a[1]
	}
	if wants := map[string]int{"read": 2, "write": 3, "delete": 2, "attest": 2}[what]; wants == 0 || len(a) > wants || what == "write" && len(a) != 3 {
		return usageError("cert: SLOT [read|write FILE|delete|attest]")
	}
	var b []byte
	if what == "write" {
		if b, err = os.ReadFile(a[2]); err != nil {
			return err
		}
		if block, _ := pem.Decode(b); block != nil {
			b = block.Bytes
		}
	}
	return t.open(func(c *keycard.Card) error {
		switch what {
		case "write", "delete":
			return c.SetCertificate(t.ctx, slot, b)
		case "attest":
			at, err := c.Attest(t.ctx, slot, true)
			if err != nil {
				return err
			}
			return pem.Encode(t.out, &pem.Block{Type: "CERTIFICATE", Bytes: at.Certificate.Raw})
		}
		b, err := c.Certificate(t.ctx, slot)
		if err == nil {
			_, err = t.out.Write(b)
		}
		return err
	})
}

func (t *tool) reset(args []string) error {
	var yes, block bool
	_, err := t.flags("reset", args, 0, 0, func(fs *flag.FlagSet) {
		fs.BoolVar(&yes, "yes", false, "really do it: all keys are lost")
		fs.BoolVar(&block, "block", false, "without the Admin PIN: spend all tries of both PINs")
	})
	if err != nil {
		return err
	}
	if !yes {
		return usageError("reset: all keys are lost; say -yes")
	}
	// On the bare transport, so that cards that do not open any more can be
	// reset too.
	tr, err := t.transport()
	if err != nil {
		return err
	}
	defer tr.Close()
	o := keycard.ResetOptions{BlockPINs: block}
	if !block {
		if o.Admin, err = t.pins.get("admin", "Admin PIN"); err != nil {
			return err
		}
		defer o.Admin.Clear()
	}
	err = keycard.Reset(t.ctx, tr, o)
	if e := t.finish(); err == nil {
		err = e
	}
	return err
}

func (t *tool) watch(args []string) error {
	if _, err := t.flags("watch", args, 0, 0, nil); err != nil {
		return err
	}
	for e, err := range pcscd.Watch(t.ctx) {
		if err != nil {
			if t.ctx.Err() != nil {
				return nil
			}
			return err
		}
		fmt.Fprintf(t.out, "%v: %s", e.Kind, e.Reader.Name)
		if e.Kind == pcscd.CardInserted {
			fmt.Fprintf(t.out, " (%x)", e.Reader.ATR)
		}
		fmt.Fprintln(t.out)
	}
	return nil
}

func (t *tool) log(args []string) error {
	if len(args) < 2 || strings.HasPrefix(args[0], "-") {
		return usageError("log: FILE COMMAND ...")
	}
	if args[1] == "log" || args[1] == "watch" {
		return usageError("log: " + args[1] + " cannot be recorded")
	}
	t.logTo = args[0]
	return t.dispatch(args[1], args[2:])
}
