package keycard

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
)

// PINMode says which of a card's secrets is meant.
type PINMode uint8

// PINSign and PINUser are the same PIN, with the same counter, verified for
// different ends: PINSign (mode 81) for signatures, PINUser (mode 82) for
// everything else. PINAdmin (83) unlocks changes. ResetCode is only asked for
// and compared, never verified.
const (
	PINSign PINMode = iota
	PINUser
	PINAdmin
	ResetCode
)

// String returns "PIN for signing", "PIN", "Admin PIN" or "resetting code".
func (m PINMode) String() string {
	return [...]string{"PIN for signing", "PIN", "Admin PIN", "resetting code"}[m&3]
}

// reference is P2 of VERIFY.
func (m PINMode) reference() byte { return 0x81 + byte(m) }

// min is the shortest PIN the specification allows (section 4.3.1).
func (m PINMode) min() int {
	if m == PINAdmin || m == ResetCode {
		return 8
	}
	return 6
}

// PIN holds a PIN in memory that is cleared. Functions that take a *PIN do
// not clear it unless they say so.
type PIN struct {
	b      []byte
	keypad bool
}

// NewPIN makes a PIN of b, which it owns from then on.
func NewPIN(b []byte) *PIN { return &PIN{b: b} }

// PINString makes a PIN of a string. A string stays in memory: this is for
// tests and for default PINs.
func PINString(s string) *PIN { return &PIN{b: []byte(s)} }

// KeypadPIN stands for a PIN that is typed on the reader's own keypad: the
// transport must be a [Keypad]. Such a PIN never reaches this computer. It
// cannot be used on a card with a KDF.
func KeypadPIN() *PIN { return &PIN{keypad: true} }

// Clear overwrites the PIN. It may be called on nil and more than once.
func (p *PIN) Clear() {
	if p != nil {
		clear(p.b[:cap(p.b)])
		p.b = nil
	}
}

// Clone returns a copy with memory of its own.
func (p *PIN) Clone() *PIN {
	return &PIN{b: append(make([]byte, 0, len(p.b)), p.b...), keypad: p.keypad}
}

// Equal reports whether both are the same PIN, in time that does not depend
// on where they differ.
func (p *PIN) Equal(q *PIN) bool {
	return p != nil && q != nil && p.keypad == q.keypad && subtle.ConstantTimeCompare(p.b, q.b) == 1
}

// Len returns the number of octets.
func (p *PIN) Len() int { return len(p.b) }

// String hides the PIN from accidental printing.
func (p *PIN) String() string { return "PIN(hidden)" }

// GoString hides the PIN from %#v.
func (p *PIN) GoString() string { return "keycard.PIN(hidden)" }

func (p *PIN) empty() bool { return p == nil || len(p.b) == 0 && !p.keypad }

// PINRequest tells the user what is asked for.
type PINRequest struct {
	Mode     PINMode
	Card     string // [Info.Ident]
	Slot     Slot   // the key that shall be used; not for PINAdmin
	Retries  int    // tries left as last known
	Min, Max int    // octets
}

// PINFunc asks for a PIN. The PIN it returns is cleared after use. It is
// called while the card is locked for this program, so it must not call the
// Card. An error ends the operation and is returned from it.
type PINFunc func(ctx context.Context, req PINRequest) (*PIN, error)

// StaticPIN returns a PINFunc that answers with copies of user for the PIN
// and of admin for the Admin PIN. Either may be nil.
func StaticPIN(user, admin *PIN) PINFunc {
	return func(_ context.Context, r PINRequest) (*PIN, error) {
		p := user
		if r.Mode == PINAdmin {
			p = admin
		}
		if p.empty() {
			return nil, fmt.Errorf("keycard: %v: %w", r.Mode, ErrNoPIN)
		}
		return p.Clone(), nil
	}
}

// WithPINs sets a function that is asked whenever an operation needs a PIN
// that is not verified. Without one, call [Card.Verify] before.
func WithPINs(f PINFunc) Option { return func(o *options) { o.pins = f } }

// Keypad is a [Transport] whose reader has a keypad of its own (PC/SC part 10
// section 2.5). cmd is the command without PIN data: header and Lc 0 for
// verification. The reader inserts the PIN, of min to max octets. The response
// is the card's status word, or one of the reader's: 6400 timeout, 6401
// cancelled, 6402 new PINs differ, 6403 length.
type Keypad interface {
	VerifyKeypad(ctx context.Context, cmd []byte, min, max int) ([]byte, error)
	ModifyKeypad(ctx context.Context, cmd []byte, min, max int) ([]byte, error)
}

// Verify presents a PIN. On success it stays verified until the card is
// reset or deselected, for PINSign until the next signature unless
// [PINStatus.Multiple] is set.
//
// A wrong PIN gives [ErrPIN] with the tries left, a blocked one [ErrBlocked],
// both inside a [*StatusError]. With one try left and no [WithLastTry] the
// error is [ErrLastTry] and nothing is spent. There is never a second try
// with the same PIN.
func (c *Card) Verify(ctx context.Context, m PINMode, p *PIN) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return c.s.verify(ctx, m, p)
}

// verify tries a PIN with the lock held.
func (s *session) verify(ctx context.Context, m PINMode, p *PIN) error {
	op := "verify the " + m.String()
	if m > PINAdmin {
		return fmt.Errorf("keycard: %s: %w", op, ErrUnsupported)
	}
	if p.empty() {
		return fmt.Errorf("keycard: %s: %w", op, ErrNoPIN)
	}
	if err := s.mayTry(ctx, m); err != nil {
		return err
	}
	if p.keypad {
		return s.keypad(ctx, op, m, false)
	}
	secret, err := s.derive(ctx, m, p)
	if err != nil {
		return err
	}
	defer clear(secret)
	if len(secret) > 255 || s.kdfOff() && s.info.maxPIN(m) > 0 && len(secret) > s.info.maxPIN(m) {
		return fmt.Errorf("keycard: %s: %d octets: %w", op, len(secret), ErrPINLength)
	}
	_, sw, err := s.send(ctx, Command{INS: insVerify, P2: m.reference(), Data: secret})
	if err != nil {
		return err
	}
	return s.tried(ctx, op, insVerify, m, m, sw)
}

func (i *Info) maxPIN(m PINMode) int {
	switch m {
	case PINAdmin:
		return i.PIN.MaxAdmin
	case ResetCode:
		return i.PIN.MaxResetCode
	}
	return i.PIN.MaxPIN
}

// mayTry refuses to spend a try that is the last or not there. What is known
// may be old, so the card is asked before refusing.
func (s *session) mayTry(ctx context.Context, m PINMode) error {
	n := s.info.PIN.Retries(m)
	if n > 1 || n == 1 && s.opt.lastTry {
		return nil
	}
	if err := s.readPINStatus(ctx); err != nil {
		return err
	}
	switch n = s.info.PIN.Retries(m); {
	case n == 0:
		return &StatusError{Op: "use the " + m.String(), INS: insVerify, SW: swBlocked, Mode: m, Retries: 0, err: ErrBlocked}
	case n == 1 && !s.opt.lastTry:
		return fmt.Errorf("keycard: %v: %w", m, ErrLastTry)
	}
	return nil
}

func (s *session) readPINStatus(ctx context.Context) error {
	b, err := s.getShort(ctx, doPWStatus, "read the PIN status")
	if err != nil {
		return err
	}
	st, err := ParsePINStatus(unwrap(b, doPWStatus))
	if err != nil {
		return err
	}
	info := *s.info // Info values given out do not change
	info.PIN = st
	s.info = &info
	s.published.Store(&info)
	return nil
}

// tried judges the status word of a command that compares mode's PIN, and on
// failure learns the tries left. After success, verified becomes verified.
func (s *session) tried(ctx context.Context, op string, ins byte, m, verified PINMode, sw uint16) error {
	if sw == swOK {
		if verified <= PINAdmin {
			s.verified[verified] = true
			s.pins = true
		}
		return nil
	}
	if m <= PINAdmin {
		s.verified[m] = false
	}
	e := &StatusError{Op: op, INS: ins, SW: sw, Mode: m, Retries: -1}
	switch {
	case sw&0xfff0 == 0x63c0:
		e.err, e.Retries = ErrPIN, int(sw&15)
		if e.Retries == 0 {
			e.err = ErrBlocked
		}
	case sw == swNotVerified: // many cards say this for a wrong PIN
		e.err = ErrPIN
	case sw == swBlocked:
		e.err = ErrBlocked
	case sw == swData, sw == swLength:
		e.err = ErrPINLength
	case sw == 0x6400, sw == 0x6401: // the reader: time ran out, cancelled
		e.err = ErrNoPIN
	case sw == 0x6402: // the reader: the new PINs differ
		e.err = ErrMismatch
	case sw == 0x6403: // the reader
		e.err = ErrPINLength
	default:
		errors.As(status(op, ins, sw), &e)
		e.Mode = m
	}
	if s.readPINStatus(ctx) == nil {
		e.Retries = s.info.PIN.Retries(m)
	}
	return e
}

// need makes sure that a PIN is verified as far as this session knows. It
// asks f, or the option's function, once. asked tells whether it did.
func (s *session) need(ctx context.Context, m PINMode, slot Slot, f PINFunc) (asked bool, err error) {
	if s.verified[m] {
		return false, nil
	}
	if f == nil {
		f = s.opt.pins
	}
	if f == nil {
		return false, nil // the card will say whether it minds
	}
	if err := s.mayTry(ctx, m); err != nil {
		return false, err
	}
	p, err := f(ctx, PINRequest{
		Mode: m, Card: s.info.Ident(), Slot: slot,
		Retries: s.info.PIN.Retries(m), Min: m.min(), Max: s.info.maxPIN(m),
	})
	if err != nil {
		return false, err
	}
	defer p.Clear()
	return true, s.verify(ctx, m, p)
}

// admin carries out a command that may need the Admin PIN. If the card says
// that the PIN is not verified although this session believed it, the user is
// asked again, once.
func (s *session) admin(ctx context.Context, do func() error) error {
	asked, err := s.need(ctx, PINAdmin, 0, nil)
	if err != nil {
		return err
	}
	err = do()
	if errors.Is(err, ErrNotVerified) {
		s.verified[PINAdmin] = false
		if !asked && s.opt.pins != nil {
			if _, err := s.need(ctx, PINAdmin, 0, nil); err != nil {
				return err
			}
			err = do()
		}
	}
	return err
}

// Verified asks the card whether a PIN is verified and how many tries are
// left. Cards answer differently, some not at all and some always yes: take ok
// as a hint. It never spends a try.
func (c *Card) Verified(ctx context.Context, m PINMode) (ok bool, retries int, err error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return false, -1, err
	}
	defer release()
	s := c.s
	if m <= PINAdmin {
		_, sw, err := s.send(ctx, Command{INS: insVerify, P2: m.reference()})
		if err != nil {
			return false, -1, err
		}
		ok = sw == swOK
	}
	if err := s.readPINStatus(ctx); err != nil {
		return ok, -1, err
	}
	return ok, s.info.PIN.Retries(m), nil
}

// Logout drops every verified PIN, by selecting the application anew.
func (c *Card) Logout(ctx context.Context) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return c.s.selectApp(ctx)
}

// newPIN checks and derives a PIN that shall be set.
func (s *session) newPIN(ctx context.Context, m PINMode, p *PIN) ([]byte, error) {
	if p.empty() {
		return nil, fmt.Errorf("keycard: new %v: %w", m, ErrNoPIN)
	}
	if p.keypad {
		return nil, fmt.Errorf("keycard: new %v by keypad: %w", m, ErrUnsupported)
	}
	secret, err := s.derive(ctx, m, p)
	if err != nil {
		return nil, err
	}
	if n := s.info.maxPIN(m); p.Len() < m.min() || s.kdfOff() && n > 0 && p.Len() > n || len(secret) > 127 {
		clear(secret)
		return nil, fmt.Errorf("keycard: new %v of %d octets: %w", m, p.Len(), ErrPINLength)
	}
	return secret, nil
}

// ChangePIN replaces the PIN (PINUser or PINSign, which are the same) or the
// Admin PIN. old counts as a try. Both may be [KeypadPIN]. The PIN must be
// verified again afterwards.
func (c *Card) ChangePIN(ctx context.Context, m PINMode, old, new *PIN) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	if m == PINUser {
		m = PINSign // CHANGE REFERENCE DATA knows only 81
	}
	if m > PINAdmin {
		return fmt.Errorf("keycard: change the %v: %w", m, ErrUnsupported)
	}
	op := "change the " + m.String()
	if m == PINSign {
		op = "change the PIN"
	}
	if old.empty() {
		return fmt.Errorf("keycard: %s: %w", op, ErrNoPIN)
	}
	if err := s.mayTry(ctx, m); err != nil {
		return err
	}
	if old.keypad && new != nil && new.keypad {
		return s.keypad(ctx, op, m, true)
	}
	if old.keypad {
		return fmt.Errorf("keycard: %s: old PIN by keypad, new one not: %w", op, ErrUnsupported)
	}
	a, err := s.derive(ctx, m, old)
	if err != nil {
		return err
	}
	defer clear(a)
	b, err := s.newPIN(ctx, m, new)
	if err != nil {
		return err
	}
	defer clear(b)
	return s.change(ctx, op, m, a, b)
}

// change sends CHANGE REFERENCE DATA with values that are already derived.
func (s *session) change(ctx context.Context, op string, m PINMode, old, new []byte) error {
	both := append(append(make([]byte, 0, len(old)+len(new)), old...), new...)
	defer clear(both)
	_, sw, err := s.send(ctx, Command{INS: insChange, P2: m.reference(), Data: both})
	if err != nil {
		return err
	}
	if m == PINAdmin {
		s.verified[PINAdmin] = false
	} else {
		s.verified[PINSign], s.verified[PINUser] = false, false
	}
	return s.tried(ctx, op, insChange, m, ResetCode, sw) // nothing becomes verified
}

// SetResetCode stores the resetting code, with which the PIN can be unblocked
// without the Admin PIN, or removes it when rc is nil. It needs the Admin PIN.
// Cards that refuse to remove it give [ErrData].
func (c *Card) SetResetCode(ctx context.Context, rc *PIN) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	var v []byte
	if rc != nil {
		if v, err = s.newPIN(ctx, ResetCode, rc); err != nil {
			return err
		}
		defer clear(v)
	}
	err = s.admin(ctx, func() error { return s.put(ctx, doResetCode, v, "set the resetting code") })
	if err != nil {
		return err
	}
	return s.readPINStatus(ctx)
}

// Unblock sets a new PIN and its tries back to the maximum, by the resetting
// code or, when rc is nil, by the Admin PIN. A wrong resetting code spends one
// of its own tries.
func (c *Card) Unblock(ctx context.Context, rc, new *PIN) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	v, err := s.newPIN(ctx, PINUser, new)
	if err != nil {
		return err
	}
	defer clear(v)
	if rc == nil {
		err = s.admin(ctx, func() error {
			_, sw, err := s.send(ctx, Command{INS: insReset, P1: 2, P2: 0x81, Data: v})
			if err != nil {
				return err
			}
			return status("unblock the PIN", insReset, sw)
		})
		if err != nil {
			return err
		}
	} else {
		if rc.empty() || rc.keypad {
			return fmt.Errorf("keycard: resetting code: %w", ErrNoPIN)
		}
		if err := s.mayTry(ctx, ResetCode); err != nil {
			return err
		}
		code, err := s.derive(ctx, ResetCode, rc)
		if err != nil {
			return err
		}
		defer clear(code)
		both := append(append(make([]byte, 0, len(code)+len(v)), code...), v...)
		defer clear(both)
		_, sw, err := s.send(ctx, Command{INS: insReset, P2: 0x81, Data: both})
		if err != nil {
			return err
		}
		if err := s.tried(ctx, "unblock the PIN", insReset, ResetCode, ResetCode, sw); err != nil {
			return err
		}
	}
	s.verified[PINSign], s.verified[PINUser] = false, false
	return s.readPINStatus(ctx)
}

// SetForceSig sets whether every signature needs the PIN anew (true, the
// specification's default) or one verification is good for many. It needs the
// Admin PIN.
func (c *Card) SetForceSig(ctx context.Context, on bool) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	v := []byte{1}
	if on {
		v[0] = 0
	}
	if err := s.admin(ctx, func() error { return s.put(ctx, doPWStatus, v, "set forced signature PIN") }); err != nil {
		return err
	}
	return s.readPINStatus(ctx)
}

// SetRetries sets how many tries PIN, resetting code and Admin PIN have
// (YubiKey only; others give [ErrUnsupported]), each from 1 to 99. It restores
// all tries of PIN and Admin PIN; some firmware sets the PINs themselves back to
// the default ones. It needs the Admin PIN.
func (c *Card) SetRetries(ctx context.Context, pin, resetCode, admin int) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	v := []byte{byte(pin), byte(resetCode), byte(admin)}
	for i, n := range []int{pin, resetCode, admin} {
		if n < 1 || n > 99 {
			return fmt.Errorf("keycard: %d tries: %w", []int{pin, resetCode, admin}[i], ErrData)
		}
	}
	err = s.admin(ctx, func() error {
		_, sw, err := s.send(ctx, Command{INS: insSetRetries, Data: v})
		if err != nil {
			return err
		}
		return status("set the number of tries", insSetRetries, sw)
	})
	if err != nil {
		return err
	}
	s.forget()
	return s.readPINStatus(ctx)
}

// keypad lets the reader ask for the PIN.
func (s *session) keypad(ctx context.Context, op string, m PINMode, modify bool) error {
	k, ok := s.t.(Keypad)
	if !ok {
		return fmt.Errorf("keycard: %s: the reader has no keypad: %w", op, ErrUnsupported)
	}
	if _, err := s.readKDF(ctx); err != nil {
		return err
	}
	if !s.kdfOff() {
		return fmt.Errorf("keycard: %s by keypad on a card with a KDF: %w", op, ErrUnsupported)
	}
	max := s.info.maxPIN(m)
	if max == 0 || max > 127 {
		max = 127
	}
	s.commands++
	s.apdus++
	var r []byte
	var err error
	ins, verified := byte(insVerify), m
	if modify {
		ins, verified = insChange, ResetCode
		r, err = k.ModifyKeypad(ctx, []byte{0, insChange, 0, m.reference(), 0}, m.min(), max)
	} else {
		r, err = k.VerifyKeypad(ctx, []byte{0, insVerify, 0, m.reference(), 0}, m.min(), max)
	}
	if err != nil {
		s.lost(err)
		return err
	}
	_, sw, err := split(r)
	if err != nil {
		return err
	}
	if modify {
		s.forget()
	}
	return s.tried(ctx, op, ins, m, verified, sw)
}
