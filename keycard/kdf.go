package keycard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

// KDF is the key derivation object F9 (specification section 4.3.2): with
// one, what the card compares is not the PIN but its hash. The zero value
// means that PINs are sent as they are.
type KDF struct {
	Hash  byte   // 8 SHA-256, 10 SHA-512 (OpenPGP's numbers); 0 no KDF
	Count uint32 // octets hashed per PIN

	// Salts of eight octets. ResetCode and Admin may be empty: then the one
	// of the user's PIN serves.
	SaltUser, SaltResetCode, SaltAdmin []byte

	// Hashes of the default PINs, from which the card sets its PINs when the
	// object is written. Not every card has or shows them.
	InitialUser, InitialAdmin []byte
}

// Active reports whether PINs are hashed.
func (k KDF) Active() bool { return k.Hash != 0 }

// ParseKDF reads an F9 object, wrapped or bare. Empty data, algorithm 0 and a
// bare 81 01 00 all mean that there is none. The error wraps [ErrMalformed] or
// [ErrUnsupported].
func ParseKDF(b []byte) (KDF, error) {
	b = unwrap(b, doKDF)
	var k KDF
	algo, ok := FindTLV(b, 0x81)
	if len(b) == 0 || ok && len(algo) == 1 && algo[0] == 0 {
		return k, nil
	}
	if !ok || len(algo) != 1 {
		return k, fmt.Errorf("keycard: KDF object of %d octets without algorithm: %w", len(b), ErrMalformed)
	}
	if algo[0] != 3 {
		return k, fmt.Errorf("keycard: KDF algorithm %d: %w", algo[0], ErrUnsupported)
	}
	h, _ := FindTLV(b, 0x82)
	n, _ := FindTLV(b, 0x83)
	k.SaltUser, _ = FindTLV(b, 0x84)
	k.SaltResetCode, _ = FindTLV(b, 0x85)
	k.SaltAdmin, _ = FindTLV(b, 0x86)
	k.InitialUser, _ = FindTLV(b, 0x87)
	k.InitialAdmin, _ = FindTLV(b, 0x88)
	if len(h) != 1 || len(n) != 4 || len(k.SaltUser) != 8 ||
		len(k.SaltResetCode) != 0 && len(k.SaltResetCode) != 8 || len(k.SaltAdmin) != 0 && len(k.SaltAdmin) != 8 {
		return KDF{}, fmt.Errorf("keycard: KDF object of %d octets: %w", len(b), ErrMalformed)
	}
	if h[0] != 8 && h[0] != 10 {
		return KDF{}, fmt.Errorf("keycard: KDF hash %d: %w", h[0], ErrUnsupported)
	}
	k.Hash, k.Count = h[0], binary.BigEndian.Uint32(n)
	return k, nil
}

// Append appends the object's content (without the outer F9) to dst, as PUT
// DATA takes it.
func (k KDF) Append(dst []byte) []byte {
	if !k.Active() {
		return append(dst, 0x81, 1, 0)
	}
	dst = append(dst, 0x81, 1, 3, 0x82, 1, k.Hash, 0x83, 4)
	dst = binary.BigEndian.AppendUint32(dst, k.Count)
	for i, v := range [...][]byte{k.SaltUser, k.SaltResetCode, k.SaltAdmin, k.InitialUser, k.InitialAdmin} {
		if len(v) > 0 {
			dst = AppendTLV(dst, 0x84+uint16(i), v)
		}
	}
	return dst
}

// Derive hashes a PIN as the card expects it: iterated and salted as in RFC
// 4880 section 3.7.1.3, Count octets of salt and PIN repeated, or all of one
// repetition if Count is smaller. The result is 32 or 64 octets long, to be
// cleared by the caller.
func (k KDF) Derive(m PINMode, pin []byte) []byte {
	var h hash.Hash
	switch k.Hash {
	case 8:
		h = sha256.New()
	case 10:
		h = sha512.New()
	default:
		return append([]byte(nil), pin...)
	}
	salt := k.SaltUser
	if m == ResetCode && len(k.SaltResetCode) > 0 {
		salt = k.SaltResetCode
	} else if m == PINAdmin && len(k.SaltAdmin) > 0 {
		salt = k.SaltAdmin
	}
	unit := append(append(make([]byte, 0, len(salt)+len(pin)), salt...), pin...)
	if len(unit) == 0 {
		return h.Sum(nil)
	}
	defer clear(unit)
	total := max(int64(k.Count), int64(len(unit)))
	// Whole repetitions at once: the hash is faster on long inputs.
	block := make([]byte, 0, 4096/len(unit)*len(unit)+len(unit))
	for len(block)+len(unit) <= cap(block) {
		block = append(block, unit...)
	}
	defer clear(block)
	for total > 0 {
		n := min(total, int64(len(block)))
		h.Write(block[:n])
		total -= n
	}
	return h.Sum(nil)
}

// kdfOff reports whether it is known that PINs go to the card as they are.
func (s *session) kdfOff() bool { return s.kdf == nil || !s.kdf.Active() }

// readKDF returns the card's KDF, asking the card the first time only.
func (s *session) readKDF(ctx context.Context) (KDF, error) {
	if s.kdf != nil {
		return *s.kdf, nil
	}
	b, err := s.get(ctx, doKDF, "read the KDF object")
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnsupported) {
		return KDF{}, err
	}
	k, err := ParseKDF(b)
	if err != nil {
		return KDF{}, err
	}
	s.kdf = &k
	return k, nil
}

// derive turns a PIN into what the card compares. The caller clears it.
func (s *session) derive(ctx context.Context, m PINMode, p *PIN) ([]byte, error) {
	if p.keypad {
		return nil, fmt.Errorf("keycard: %v by keypad here: %w", m, ErrUnsupported)
	}
	k, err := s.readKDF(ctx)
	if err != nil {
		return nil, err
	}
	if k.Active() && k.Count > s.opt.maxKDF {
		return nil, fmt.Errorf("keycard: %d octets: %w", k.Count, ErrKDFCount)
	}
	return k.Derive(m, p.b), nil
}

// KDF returns the card's KDF settings as [Open] read them, or one command reads
// them now if it did not. What another program writes while the Card is open is
// not noticed.
func (c *Card) KDF(ctx context.Context) (KDF, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return KDF{}, err
	}
	defer release()
	return c.s.readKDF(ctx)
}

// NewKDF makes settings with fresh salts and the hash and count that gpg
// uses: SHA-256 over 65,011,712 octets.
func NewKDF() KDF {
	salts := make([]byte, 24)
	rand.Read(salts)
	return KDF{Hash: 8, Count: 65011712, SaltUser: salts[:8:8], SaltResetCode: salts[8:16:16], SaltAdmin: salts[16:24:24]}
}

// SetKDF switches the card to these settings, or off with the zero KDF. user
// and admin are the current PINs; both stay what they are for the user. A
// resetting code must be set anew. The initial hashes in k are not used: the
// object gets those of the default PINs, since everyone can read it.
//
// Cards come in two families: some set their PINs from the hashes in the
// object (and back to the default ones when it is removed), others leave them
// alone. To be right on both without spending a try, the PINs are first changed
// to the default ones in their new form, then the object is written, then the
// PINs are changed to what they were. If the object is refused, they are changed
// back; if something else fails on the way, the error says in which form each
// PIN was left. At the end the object is read again and both PINs are verified.
func (c *Card) SetKDF(ctx context.Context, k KDF, user, admin *PIN) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	if !s.info.Capabilities.KDF {
		return fmt.Errorf("keycard: KDF: %w", ErrUnsupported)
	}
	if k.Active() && (k.Hash != 8 && k.Hash != 10 || len(k.SaltUser) != 8) {
		return fmt.Errorf("keycard: KDF settings: %w", ErrData)
	}
	if k.Count > s.opt.maxKDF {
		return fmt.Errorf("keycard: %d octets: %w", k.Count, ErrKDFCount)
	}
	if user.empty() || admin.empty() || user.keypad || admin.keypad {
		return fmt.Errorf("keycard: KDF: %w", ErrNoPIN)
	}
	old, err := s.readKDF(ctx)
	if err != nil {
		return err
	}
	if old.Active() && old.Count > s.opt.maxKDF {
		return fmt.Errorf("keycard: %d octets: %w", old.Count, ErrKDFCount)
	}
	type form struct {
		m              PINMode
		was, mid, then []byte // as it is, default in the new form, new form
	}
	forms := [...]form{
		{PINAdmin, old.Derive(PINAdmin, admin.b), k.Derive(PINAdmin, []byte("12345678")), k.Derive(PINAdmin, admin.b)},
		{PINSign, old.Derive(PINUser, user.b), k.Derive(PINUser, []byte("123456")), k.Derive(PINUser, user.b)},
	}
	defer func() {
		for _, f := range forms {
			clear(f.was)
			clear(f.then)
		}
	}()
	for _, f := range forms {
		if err := s.mayTry(ctx, f.m); err != nil {
			return err
		}
	}
	// undo changes the first n PINs back.
	undo := func(cause error, n int) error {
		errs := []error{cause}
		for _, f := range forms[:n] {
			if err := s.change(ctx, "change the "+f.m.String()+" back", f.m, f.mid, f.was); err != nil {
				errs = append(errs, fmt.Errorf("keycard: the %v is left at its default in the new form: %w", f.m, err))
			}
		}
		return errors.Join(errs...)
	}
	for i, f := range forms {
		if err := s.change(ctx, "change the "+f.m.String()+" to its new form", f.m, f.was, f.mid); err != nil {
			return undo(err, i)
		}
	}
	_, sw, err := s.send(ctx, Command{INS: insVerify, P2: PINAdmin.reference(), Data: forms[0].mid})
	if err == nil {
		err = s.tried(ctx, "verify the Admin PIN", insVerify, PINAdmin, PINAdmin, sw)
	}
	if err == nil {
		k.InitialUser, k.InitialAdmin = forms[1].mid, forms[0].mid
		err = s.put(ctx, doKDF, k.Append(nil), "write the KDF object")
	}
	if err != nil {
		return undo(err, len(forms))
	}
	s.forget()
	s.kdf = nil
	for _, f := range forms {
		if err := s.change(ctx, "change the "+f.m.String()+" to what it was", f.m, f.mid, f.then); err != nil {
			return fmt.Errorf("keycard: the KDF is changed, but the %v is left at its default: %w", f.m, err)
		}
	}
	if err := s.refresh(ctx); err != nil {
		return err
	}
	got, err := s.readKDF(ctx)
	if err != nil {
		return err
	}
	if got.Active() != k.Active() || got.Count != k.Count {
		return fmt.Errorf("keycard: the card did not keep the KDF object: %w", ErrMismatch)
	}
	if err := s.verify(ctx, PINAdmin, admin); err != nil {
		return err
	}
	return s.verify(ctx, PINUser, user)
}
