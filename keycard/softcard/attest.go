package softcard

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"time"

	"signalbox.example/keycard"
)

// makeAttestation gives the card its fourth key and the two certificates
// above it.
func (c *Card) makeAttestation() error {
	fail := func(err error) error { return fmt.Errorf("softcard: attestation key: %w", err) }
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	begin := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "softcard test root"},
		NotBefore: begin, NotAfter: begin.AddDate(40, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if c.st.AttestRoot, err = x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey); err != nil {
		return fail(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	device := &x509.Certificate{
		SerialNumber: big.NewInt(int64(c.st.Serial)), Subject: pkix.Name{CommonName: fmt.Sprintf("softcard %08X", c.st.Serial)},
		NotBefore: begin, NotAfter: begin.AddDate(40, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if c.st.AttestCert, err = x509.CreateCertificate(rand.Reader, device, root, key.Public(), rootKey); err != nil {
		return fail(err)
	}
	c.st.Slots[3] = slot{Attributes: keycard.EC(keycard.P256).Attributes()}
	c.setKey(3, key, 2)
	return nil
}

// attest writes a certificate about a generated key into the slot's
// certificate object, as YubiKeys do (80 FB slot 00).
func (c *Card) attest(ctx context.Context, cmd keycard.Command) uint16 {
	if cmd.CLA != 0x80 || len(c.st.AttestCert) == 0 {
		return swUnknownINS
	}
	i := int(cmd.P1) - 1
	if i < 0 || i > 2 || cmd.P2 != 0 {
		return swWrongP1P2
	}
	if !c.verified[0] {
		return swSecurity
	}
	k := c.key(i)
	if k == nil || c.st.Slots[i].Origin != 1 {
		return swConditions
	}
	if !c.touched(ctx, 3) {
		return swTouch
	}
	issuer, err := x509.ParseCertificate(c.st.AttestCert)
	if err != nil {
		return swInternal
	}
	pub := k.(interface{ Public() crypto.PublicKey }).Public()
	ext := func(n int, v []byte) pkix.Extension {
		der, _ := asn1.Marshal(v)
		return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 41482, 5, n}, Value: der}
	}
	number, _ := asn1.Marshal(int64(c.st.Serial))
	source, _ := asn1.Marshal(1)
	t := &x509.Certificate{
		SerialNumber: big.NewInt(int64(c.st.Signatures) + 2),
		Subject:      pkix.Name{CommonName: "softcard attestation " + keycard.Slot(i).String()},
		NotBefore:    issuer.NotBefore, NotAfter: issuer.NotAfter,
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 41482, 5, 2}, Value: source},
			ext(3, []byte{3, 4, 0}),
			ext(4, c.sized(0xc7+uint16(i), 20)),
			ext(5, c.sized(0xce+uint16(i), 4)),
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 41482, 5, 7}, Value: number},
			ext(8, []byte{c.st.Slots[i].UIF}),
		},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, issuer, pub, c.key(3).(crypto.Signer))
	if err != nil {
		return swData // X25519 has no place in a certificate here
	}
	c.st.Certificates[2-i] = der
	c.dirty = true
	if !c.st.Multiple {
		c.verified[0] = false
	}
	return swOK
}
