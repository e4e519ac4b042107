package keycard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
)

// Holder is the cardholder related data (65).
type Holder struct {
	Surname, Given string
	Language       string // one to four codes of two letters, "deen"
	Salutation     byte   // '1' male, '2' female, '9' not given; 0 absent
}

// Name returns given name and surname with a space between.
func (h Holder) Name() string { return strings.TrimSpace(h.Given + " " + h.Surname) }

// ParseHolder reads the object 65, wrapped or bare.
func ParseHolder(b []byte) (Holder, error) {
	b = unwrap(b, doHolder)
	var h Holder
	for len(b) > 0 {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		tag, v, rest, ok := nextTLV(b)
		if !ok {
			return h, fmt.Errorf("keycard: cardholder data: %w", ErrMalformed)
		}
		b = rest
		switch tag {
		case doName:
			h.Surname, h.Given, _ = strings.Cut(strings.TrimRight(string(v), "<"), "<<")
			h.Surname = strings.ReplaceAll(h.Surname, "<", " ")
			h.Given = strings.ReplaceAll(h.Given, "<", " ")
		case doLanguage:
			h.Language = string(v)
		case doSex:
			if len(v) == 1 {
				h.Salutation = v[0]
			}
		}
	}
	return h, nil
}

// Status is everything about a card that needs no PIN and no public key.
type Status struct {
	Info   *Info
	Holder Holder
	URL    string // of the public key
	Login  string
	// Signatures made with the signature key, -1 when the card does not say.
	Signatures int
	KDF        KDF
}

// Status reads what gpg --card-status shows, apart from the public keys, in four
// commands directly after [Open], else in five, and in one more if the KDF
// settings could not be read. Together with Open that is at most eight. Objects
// that the card does not have stay empty.
func (c *Card) Status(ctx context.Context) (*Status, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s := c.s
	if s.commands != s.infoAt { // not directly after Open
		if err := s.refresh(ctx); err != nil {
			return nil, err
		}
	}
	st := &Status{Info: s.info, Signatures: -1}
	b, err := s.optional(ctx, doHolder)
	if err == nil {
		st.Holder, err = ParseHolder(b)
	}
	if err != nil {
		return nil, err
	}
	if st.Signatures, err = s.signatures(ctx); err != nil {
		return nil, err
	}
	if b, err = s.optional(ctx, doURL); err != nil {
		return nil, err
	}
	st.URL = string(b)
	if b, err = s.optional(ctx, doLogin); err != nil {
		return nil, err
	}
	st.Login = string(b)
	var refused *StatusError
	if st.KDF, err = s.readKDF(ctx); err != nil && !errors.As(err, &refused) && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnsupported) {
		return nil, err
	}
	return st, nil
}

// optional reads an object that cards may not have.
func (s *session) optional(ctx context.Context, tag uint16) ([]byte, error) {
	b, err := s.get(ctx, tag, fmt.Sprintf("read object %02X", tag))
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsupported) {
		return nil, nil
	}
	return b, err
}

// signatures reads the digital signature counter, -1 when there is none.
func (s *session) signatures(ctx context.Context) (int, error) {
	b, err := s.optional(ctx, doSecurity)
	if err != nil {
		return -1, err
	}
	if v, ok := FindTLV(b, 0x93); ok && len(v) == 3 {
		return bigEndian(v), nil
	}
	return -1, nil
}

// Signatures returns how many signatures the signature key has made, -1 when
// the card does not say.
func (c *Card) Signatures(ctx context.Context) (int, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return -1, err
	}
	defer release()
	return c.s.signatures(ctx)
}

// read is the common form of the readers of one object.
func (c *Card) read(ctx context.Context, tag uint16) ([]byte, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return c.s.optional(ctx, tag)
}

// write is the common form of the writers of one object: they need the Admin
// PIN.
func (c *Card) write(ctx context.Context, tag uint16, v []byte, op string) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return c.s.admin(ctx, func() error { return c.s.put(ctx, tag, v, op) })
}

// Holder reads the cardholder data.
func (c *Card) Holder(ctx context.Context) (Holder, error) {
	b, err := c.read(ctx, doHolder)
	if err != nil {
		return Holder{}, err
	}
	return ParseHolder(b)
}

// SetHolder writes name, language and salutation. It needs the Admin PIN. The
// name may take 39 octets, including two between surname and given name, the
// language 8; more gives [ErrTooLong]. A salutation of 0 is written as '9'.
func (c *Card) SetHolder(ctx context.Context, h Holder) error {
	fill := strings.NewReplacer(" ", "<")
	name := fill.Replace(h.Surname)
	if h.Given != "" {
		name += "<<" + fill.Replace(h.Given)
	}
	if len(name) > 39 || len(h.Language) > 8 {
		return fmt.Errorf("keycard: cardholder data: %w", ErrTooLong)
	}
	sex := h.Salutation
	if sex == 0 {
		sex = '9'
	}
	return c.Do(ctx, func(c *Card) error {
		if err := c.write(ctx, doName, []byte(name), "write the cardholder's name"); err != nil {
			return err
		}
		if err := c.write(ctx, doLanguage, []byte(h.Language), "write the language"); err != nil {
			return err
		}
		return c.write(ctx, doSex, []byte{sex}, "write the salutation")
	})
}

// URL reads where the public key can be fetched, "" when not set.
func (c *Card) URL(ctx context.Context) (string, error) {
	b, err := c.read(ctx, doURL)
	return string(b), err
}

// SetURL writes where the public key can be fetched, or removes it when u is "".
// It needs the Admin PIN.
func (c *Card) SetURL(ctx context.Context, u string) error {
	return c.write(ctx, doURL, []byte(u), "write the URL")
}

// Login reads the login data, "" when not set.
func (c *Card) Login(ctx context.Context) (string, error) {
	b, err := c.read(ctx, doLogin)
	return string(b), err
}

// SetLogin writes the login data, or removes them when login is "". It needs the
// Admin PIN.
func (c *Card) SetLogin(ctx context.Context, login string) error {
	return c.write(ctx, doLogin, []byte(login), "write the login data")
}

// Object reads any data object by its tag with GET DATA. An object that the
// card does not have gives [ErrNotFound].
func (c *Card) Object(ctx context.Context, tag uint16) ([]byte, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return c.s.get(ctx, tag, fmt.Sprintf("read object %02X", tag))
}

// SetObject writes any data object by its tag with PUT DATA, asking for the
// Admin PIN if there is a function to ask.
func (c *Card) SetObject(ctx context.Context, tag uint16, v []byte) error {
	return c.write(ctx, tag, v, fmt.Sprintf("write object %02X", tag))
}

// PrivateObject reads one of the private use objects 1 to 4. Number 3 needs
// the PIN (PINUser), number 4 the Admin PIN.
func (c *Card) PrivateObject(ctx context.Context, n int) ([]byte, error) {
	if n < 1 || n > 4 {
		return nil, fmt.Errorf("keycard: private object %d: %w", n, ErrNotFound)
	}
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if n > 2 {
		if _, err := c.s.need(ctx, PINMode(n-2), 0, nil); err != nil {
			return nil, err
		}
	}
	return c.s.get(ctx, 0x100+uint16(n), fmt.Sprintf("read private object %d", n))
}

// SetPrivateObject writes one of the private use objects 1 to 4. Numbers 1 and 3
// need the PIN (PINUser), 2 and 4 the Admin PIN.
func (c *Card) SetPrivateObject(ctx context.Context, n int, v []byte) error {
	if n < 1 || n > 4 {
		return fmt.Errorf("keycard: private object %d: %w", n, ErrNotFound)
	}
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	m := PINUser
	if n%2 == 0 {
		m = PINAdmin
	}
	if _, err := c.s.need(ctx, m, 0, nil); err != nil {
		return err
	}
	return c.s.put(ctx, 0x100+uint16(n), v, fmt.Sprintf("write private object %d", n))
}

// maxChallenge bounds what one call asks the card for.
const maxChallenge = 1 << 20

// Challenge returns n random octets from the card, 0 to 1 MiB, in as many
// commands as its limit needs. Cards without GET CHALLENGE give [ErrUnsupported].
func (c *Card) Challenge(ctx context.Context, n int) ([]byte, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s := c.s
	if n < 0 || n > maxChallenge {
		return nil, fmt.Errorf("keycard: challenge of %d octets: %w", n, ErrTooLong)
	}
	out := make([]byte, 0, n)
	for len(out) < n {
		want := min(n-len(out), 256)
		if m := s.info.Capabilities.MaxChallenge; m > 0 {
			want = min(want, m)
		}
		b, sw, err := s.send(ctx, Command{INS: insChallenge, Le: want})
		if err != nil {
			return nil, err
		}
		if err := status("get a challenge", insChallenge, sw); err != nil {
			return nil, err
		}
		if len(b) == 0 {
			return nil, fmt.Errorf("keycard: empty challenge: %w", ErrMalformed)
		}
		out = append(out, b[:min(len(b), n-len(out))]...)
	}
	return out, nil
}

// FetchKey reads the card's URL and gets what is there, at most limit octets,
// with the caller's client (nil: http.DefaultClient). More octets give
// [ErrTooLong], no URL [ErrNotFound], one that is neither http nor https
// [ErrUnsupported]. The result is not looked at: it is whatever the server sent.
func (c *Card) FetchKey(ctx context.Context, cl *http.Client, limit int64) ([]byte, error) {
	u, err := c.URL(ctx)
	if err != nil {
		return nil, err
	}
	if u == "" {
		return nil, fmt.Errorf("keycard: no URL on the card: %w", ErrNotFound)
	}
	p, err := url.Parse(u)
	if err != nil || p.Scheme != "http" && p.Scheme != "https" || p.Host == "" {
		return nil, fmt.Errorf("keycard: the card's URL %q: %w", u, ErrUnsupported)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, fmt.Errorf("keycard: fetch: %w", err)
	}
	if cl == nil {
		cl = http.DefaultClient
	}
	resp, err := cl.Do(req)
	if err != nil {
		return nil, fmt.Errorf("keycard: fetch: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("keycard: fetch %s: %s", u, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, min(max(limit, 0), math.MaxInt64-1)+1))
	if err != nil {
		return nil, fmt.Errorf("keycard: fetch: %w", err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("keycard: fetch %s: more than %d octets: %w", u, limit, ErrTooLong)
	}
	return b, nil
}
