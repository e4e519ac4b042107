package keycard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// ResetOptions says how a factory reset may be authorised.
type ResetOptions struct {
	// Admin PIN, if known. It is tried once.
	Admin *PIN
	// BlockPINs: without an Admin PIN, or when it is wrong or blocked, spend
	// all tries of the PIN and the Admin PIN with wrong values. That is what
	// the specification offers for lost PINs.
	BlockPINs bool
	// Log as in [WithLog].
	Log func(LogEntry)
}

// maxBlock is how many wrong PINs are presented at most: counters of 15 are
// the largest known, YubiKeys can be set to 99.
const maxBlock = 130

// Reset puts a card back to its factory state: all keys, PINs and data are
// gone. It works on the bare transport, so also on cards whose application
// data cannot be parsed, that hold inconsistent keys, or that are terminated
// already. The transport stays open; call [Open] afterwards.
//
// It first reads the historical octets: a card that does not announce life
// cycle management is refused with [ErrNoLifeCycle] before any counter is
// touched, since it could only be blocked, not revived.
func Reset(ctx context.Context, t Transport, o ResetOptions) error {
	s := &session{t: t, lock: make(chan struct{}, 1), info: &Info{}}
	s.opt.maxKDF = 1 << 28
	s.opt.log = o.Log
	s.lock <- struct{}{}
	c := &Card{s: s}
	release, err := c.acquire(ctx)
	if err != nil && !errors.Is(err, ErrTerminated) {
		return err
	}
	if err == nil {
		defer release()
	}
	return s.reset(ctx, o)
}

// FactoryReset is [Reset] on an open card. Afterwards the Card shows the new
// state.
func (c *Card) FactoryReset(ctx context.Context, o ResetOptions) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	if err := s.reset(ctx, o); err != nil {
		return err
	}
	s.pins = false
	return s.open(ctx)
}

func (s *session) reset(ctx context.Context, o ResetOptions) error {
	err := s.selectApp(ctx)
	if errors.Is(err, ErrTerminated) {
		return s.activate(ctx)
	}
	if err != nil {
		return err
	}
	hist, err := s.historical(ctx)
	if err != nil {
		return err
	}
	if h := ParseHistorical(hist); h.LifeCycle != 3 && h.LifeCycle != 5 {
		return fmt.Errorf("keycard: factory reset (historical octets %x): %w", hist, ErrNoLifeCycle)
	}
	authorised := false
	s.kdf = nil
	if !o.Admin.empty() && !o.Admin.keypad {
		if err := s.readPINStatus(ctx); err == nil && s.info.PIN.Admin > 0 {
			secret, err := s.derive(ctx, PINAdmin, o.Admin)
			if err == nil {
				_, sw, err := s.send(ctx, Command{INS: insVerify, P2: PINAdmin.reference(), Data: secret})
				clear(secret)
				if err != nil {
					return err
				}
				if authorised = sw == swOK; !authorised && !o.BlockPINs {
					return s.tried(ctx, "verify the Admin PIN", insVerify, PINAdmin, PINAdmin, sw)
				}
			} else if !o.BlockPINs {
				return err
			}
		} else if err == nil && !o.BlockPINs {
			return &StatusError{Op: "verify the Admin PIN", INS: insVerify, SW: swBlocked, Mode: PINAdmin, Retries: 0, err: ErrBlocked}
		} else if err != nil && !o.BlockPINs {
			return err
		}
	}
	if !authorised {
		// A card whose PINs are blocked already needs nothing more.
		if done, err := s.terminate(ctx); err != nil || done {
			return err
		}
		if !o.BlockPINs {
			return fmt.Errorf("keycard: factory reset without Admin PIN: %w", ErrNoPIN)
		}
		for _, m := range [...]PINMode{PINSign, PINAdmin} {
			open, err := s.block(ctx, m)
			if err != nil {
				return err
			}
			if open && m == PINAdmin {
				break
			}
		}
	}
	done, err := s.terminate(ctx)
	if err == nil && !done {
		err = &StatusError{Op: "terminate the card", INS: insTerminate, SW: swNotVerified, Retries: -1, err: ErrNotVerified}
	}
	return err
}

// historical reads the historical octets from 5F52 or, on cards that only
// have them there, from 6E or the answer to reset.
func (s *session) historical(ctx context.Context) ([]byte, error) {
	b, err := s.optional(ctx, doHistorical)
	if err != nil {
		return nil, err
	}
	if b = unwrap(b, doHistorical); len(b) > 0 {
		return b, nil
	}
	if b, err = s.optional(ctx, doApplication); err != nil {
		return nil, err
	}
	if v, ok := FindTLV(b, doHistorical); ok {
		return v, nil
	}
	if a, ok := s.t.(ATRer); ok {
		return atrHistorical(a.ATR()), nil
	}
	return nil, nil
}

// block presents wrong PINs until the card says blocked. It reports true if
// by chance one was right.
func (s *session) block(ctx context.Context, m PINMode) (open bool, err error) {
	n := 32
	if k, err := s.readKDF(ctx); err == nil && k.Hash == 10 {
		n = 64 // cards with a KDF want the hash's length
	}
	wrong := bytes.Repeat([]byte{'@'}, n)
	for i := range maxBlock {
		wrong[0] = byte('@' + i%2)
		_, sw, err := s.send(ctx, Command{INS: insVerify, P2: m.reference(), Data: wrong})
		switch {
		case err != nil:
			return false, err
		case sw == swOK:
			return true, nil
		case sw == swBlocked, sw == 0x63c0:
			return false, nil
		case sw == swData || sw == swLength: // wrong length: try the shortest
			if len(wrong) == m.min() {
				return false, status("block the "+m.String(), insVerify, sw)
			}
			wrong = wrong[:m.min()]
		case sw != swNotVerified && sw&0xfff0 != 0x63c0:
			return false, status("block the "+m.String(), insVerify, sw)
		}
	}
	return false, fmt.Errorf("keycard: the %v is not blocked after %d tries: %w", m, maxBlock, ErrMalformed)
}

// terminate sends TERMINATE DF and then activates. It reports false when the
// card wants authorisation first.
func (s *session) terminate(ctx context.Context) (bool, error) {
	_, sw, err := s.send(ctx, Command{INS: insTerminate})
	if err != nil {
		return false, err
	}
	if sw == swNotVerified || sw == swConditions {
		return false, nil
	}
	if err := status("terminate the card", insTerminate, sw); err != nil {
		return false, err
	}
	return true, s.activate(ctx)
}

func (s *session) activate(ctx context.Context) error {
	s.forget()
	s.kdf = nil
	_, sw, err := s.send(ctx, Command{INS: insActivate})
	if err != nil {
		return err
	}
	if err := status("activate the card", insActivate, sw); err != nil {
		return fmt.Errorf("keycard: the card is terminated; try again: %w", err)
	}
	return s.selectApp(ctx)
}
