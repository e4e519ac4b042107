package keycard

import (
	"context"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"time"
)

// occurrence is the place of a slot's certificate among the three (7F21): the
// first is the authentication key's.
func (s Slot) occurrence() byte { return 2 - byte(s) }

// Certificate reads what is stored as a slot's certificate: usually X.509 in
// DER, but any octets can be there. An empty object gives an empty result. The
// attestation slot has the certificate that signs attestations.
//
// Cards without SELECT DATA have only the authentication slot's certificate;
// the others give [ErrUnsupported].
func (c *Card) Certificate(ctx context.Context, slot Slot) ([]byte, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return c.s.certificate(ctx, slot)
}

func (s *session) certificate(ctx context.Context, slot Slot) ([]byte, error) {
	if slot > SlotAttest {
		return nil, fmt.Errorf("keycard: certificate of the %v slot: %w", slot, ErrUnsupported)
	}
	if slot == SlotAttest {
		return s.get(ctx, doAttestCert, "read the attestation certificate")
	}
	if err := s.selectCertificate(ctx, slot); err != nil {
		return nil, err
	}
	b, err := s.optional(ctx, doCertificate)
	if err != nil {
		return nil, err
	}
	return unwrap(b, doCertificate), nil
}

// SetCertificate writes or, with no octets, removes a slot's certificate. It
// needs the Admin PIN.
func (c *Card) SetCertificate(ctx context.Context, slot Slot, cert []byte) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	if slot > SlotAttest {
		return fmt.Errorf("keycard: certificate of the %v slot: %w", slot, ErrUnsupported)
	}
	if n := s.info.Capabilities.MaxCertificate; n > 0 && len(cert) > n {
		return fmt.Errorf("keycard: certificate of %d octets, the card takes %d: %w", len(cert), n, ErrTooLong)
	}
	return s.admin(ctx, func() error {
		tag := uint16(doCertificate)
		if slot == SlotAttest {
			tag = doAttestCert
		} else if err := s.selectCertificate(ctx, slot); err != nil {
			return err
		}
		return s.put(ctx, tag, cert, "write the certificate")
	})
}

// selectCertificate makes 7F21 mean the slot's certificate (SELECT DATA,
// specification section 7.2.5). YubiKeys before firmware 5.4.4 want one more
// length octet in front.
func (s *session) selectCertificate(ctx context.Context, slot Slot) error {
	d := []byte{0x06, 0x60, 0x04, 0x5c, 0x02, doCertificate >> 8, doCertificate & 0xff}
	c := Command{INS: insSelectData, P1: slot.occurrence(), P2: 4, Data: d[1:]}
	_, sw, err := s.send(ctx, c)
	if err == nil && (sw == swData || sw == swLength) {
		c.Data = d
		_, sw, err = s.send(ctx, c)
	}
	if err != nil {
		return err
	}
	err = status("select the certificate", insSelectData, sw)
	if slot == SlotAuth && errors.Is(err, ErrUnsupported) {
		return nil // GET DATA gives the authentication certificate anyway
	}
	return err
}

// Attestation is what a certificate made by [Card.Attest] claims about a key
// (YubiKey's extensions).
type Attestation struct {
	Certificate *x509.Certificate
	Generated   bool // made on the card, not imported
	Firmware    [3]byte
	Fingerprint Fingerprint
	Created     time.Time
	Serial      int64 // of the device, 0 when not given
	UIF         UIF   // UIFAbsent when not given
}

// Attest lets the card certify that a slot's key was made on it (YubiKey 5.2
// and later; others give [ErrUnsupported]) and reads the certificate. The card
// stores it as the slot's certificate, replacing what was there; the old
// contents are written back afterwards if restore is set, which needs the
// Admin PIN. It needs the PIN for signing, and a touch if the attestation
// key's policy says so.
func (c *Card) Attest(ctx context.Context, slot Slot, restore bool) (*Attestation, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s := c.s
	if slot > SlotAuth {
		return nil, fmt.Errorf("keycard: attest the %v slot: %w", slot, ErrUnsupported)
	}
	var old []byte
	if restore {
		if old, err = s.certificate(ctx, slot); err != nil {
			return nil, err
		}
	}
	if _, err := s.need(ctx, PINSign, slot, nil); err != nil {
		return nil, err
	}
	_, sw, err := s.touched(ctx, SlotAttest, Command{CLA: 0x80, INS: insAttest, P1: byte(slot) + 1})
	if err != nil {
		return nil, err
	}
	if !s.info.PIN.Multiple {
		s.verified[PINSign] = false
	}
	if err := status("attest the key", insAttest, sw); err != nil {
		return nil, err
	}
	der, err := s.certificate(ctx, slot)
	if err != nil {
		return nil, err
	}
	if restore {
		err := s.admin(ctx, func() error {
			if err := s.selectCertificate(ctx, slot); err != nil {
				return err
			}
			return s.put(ctx, doCertificate, old, "write the certificate back")
		})
		if err != nil {
			return nil, err
		}
	}
	return ParseAttestation(der)
}

// ParseAttestation reads an attestation certificate's claims. It does not
// verify them.
func ParseAttestation(der []byte) (*Attestation, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("keycard: attestation: %w (%v)", ErrMalformed, err)
	}
	a := &Attestation{Certificate: cert, UIF: UIFAbsent}
	base := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 41482, 5}
	source := false
	for _, e := range cert.Extensions {
		if len(e.Id) != len(base)+1 || !e.Id[:len(base)].Equal(base) {
			continue
		}
		v := e.Value // the value is DER, but older firmware has bare octets
		var octets asn1.RawValue
		if rest, err := asn1.Unmarshal(v, &octets); err == nil && len(rest) == 0 {
			v = octets.Bytes
		}
		switch e.Id[len(base)] {
		case 2:
			if len(v) == 1 {
				source, a.Generated = true, v[0] == 1
			}
		case 3:
			copy(a.Firmware[:], v)
		case 4:
			copy(a.Fingerprint[:], v)
		case 5:
			if len(v) == 4 {
				a.Created = time.Unix(int64(v[0])<<24|int64(v[1])<<16|int64(v[2])<<8|int64(v[3]), 0).UTC()
			}
		case 7:
			if len(v) <= 7 {
				for _, x := range v {
					a.Serial = a.Serial<<8 | int64(x)
				}
			}
		case 8:
			if len(v) >= 1 {
				a.UIF = UIF(v[0])
			}
		}
	}
	if !source {
		return nil, fmt.Errorf("keycard: certificate without attestation extensions: %w", ErrMalformed)
	}
	return a, nil
}

// Verify checks the chain from the attestation over the device's own
// certificate (slot [SlotAttest]) to one of roots, and that the key attested
// is key. Neither certificate needs to be valid at any time in particular:
// devices have no clock. Roots come from the caller, who decides whom to
// trust.
func (a *Attestation) Verify(device *x509.Certificate, roots *x509.CertPool, key *PublicKey) error {
	fail := func(err error) error { return fmt.Errorf("keycard: attestation: %w (%v)", ErrMismatch, err) }
	if err := device.CheckSignature(a.Certificate.SignatureAlgorithm, a.Certificate.RawTBSCertificate, a.Certificate.Signature); err != nil {
		return fail(err)
	}
	_, err := device.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: device.NotBefore.Add(time.Second),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return fail(err)
	}
	if key != nil {
		q, err := NewPublicKey(key.Slot, a.Certificate.PublicKey)
		if err != nil {
			return fail(err)
		}
		if !q.Equal(key) {
			return fail(errors.New("another key"))
		}
	}
	return nil
}
