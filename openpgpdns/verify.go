package openpgpdns

import (
	"bytes"
	//lint:ignore SA1019 go-crypto hands DSA keys over in this type
	"crypto/dsa"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"hash"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// Bounds of the work that one certificate can cause.
const (
	maxDSABits        = 4096
	maxRSABits        = 16384
	maxSelfSignatures = 4096
)

var (
	errKeySize = errors.New("key too large to be checked")
	errTooMany = errors.New("more than 4096 self-signatures")
)

var errNoCrossSignature = errors.New("a signing subkey without its back signature")

// Verify checks every self-signature over the original octets. Those that are
// wrong, or that cannot be checked because an algorithm is unknown, are
// returned, one *[Error] wrapping [ErrBadSignature] each, and from then on c is
// treated as if it did not have them: a user ID left without a self-signature
// is not published, nor a subkey without a binding signature. Signatures by
// other keys are not looked at. Lifetimes are not judged. RSA keys beyond 16,384
// bits, DSA keys beyond 4,096 and self-signatures beyond the first 4,096 count
// as ones that cannot be checked, so that no certificate takes for ever.
//
// Verify changes c and must not run beside other uses of it.
func (c *Cert) Verify() []error {
	var errs []error
	primary, keyErr := c.readKey(&c.packets[0])
	checked := 0
	component := 0 // the user ID, attribute or subkey that signatures follow
	for i := range c.packets {
		p := &c.packets[i]
		switch p.tag {
		case tagUserID, tagUserAttribute, tagPublicSubkey:
			component = i
			continue
		case tagSignature:
		default:
			continue
		}
		if p.flags&selfIssued == 0 {
			continue
		}
		err := keyErr
		if checked++; err == nil && checked > maxSelfSignatures {
			err = errTooMany
		}
		if err == nil {
			err = c.verifySig(primary, component, p)
		}
		if err == nil {
			p.flags &^= badSelfSig
			continue
		}
		p.flags |= badSelfSig
		e := &Error{Certificate: c.number, Fingerprint: c.Fingerprint(), Offset: c.offset + int64(p.start), HasOffset: true, Err: ErrBadSignature, Detail: err.Error()}
		switch k := &c.packets[component]; k.tag {
		case tagUserID:
			e.Input = string(c.body(k))
		case tagUserAttribute:
			e.Input = "user attribute"
		case tagPublicSubkey:
			e.Input = "subkey"
		}
		errs = append(errs, e)
	}
	return errs
}

func (c *Cert) readKey(p *packetRef) (*packet.PublicKey, error) {
	k, err := packet.Read(bytes.NewReader(c.data[p.start:p.end]))
	if err != nil {
		return nil, err
	}
	pk, ok := k.(*packet.PublicKey)
	if !ok {
		return nil, ErrMalformed
	}
	// Arithmetic with the largest numbers that a packet can hold takes minutes.
	if d, ok := pk.PublicKey.(*dsa.PublicKey); ok && (d.P.BitLen() > maxDSABits || d.Q.BitLen() > maxDSABits || d.G.BitLen() > maxDSABits || d.Y.BitLen() > maxDSABits) {
		return nil, errKeySize
	}
	if r, ok := pk.PublicKey.(*rsa.PublicKey); ok && r.N.BitLen() > maxRSABits {
		return nil, errKeySize
	}
	return pk, nil
}

func (c *Cert) verifySig(primary *packet.PublicKey, component int, p *packetRef) error {
	pkt, err := packet.Read(bytes.NewReader(c.data[p.start:p.end]))
	if err != nil {
		return err
	}
	sig, ok := pkt.(*packet.Signature)
	if !ok || sig.Version != int(c.version) {
		return ErrMalformed
	}
	k := &c.packets[component]
	t := uint8(sig.SigType)
	belongs := false
	switch k.tag {
	case tagPublicKey:
		belongs = t == sigDirectKey || t == sigKeyRevocation
	case tagPublicSubkey:
		belongs = t == sigSubkeyBinding || t == sigSubkeyRevoked
	default:
		belongs = t >= sigGenericCert && t <= sigPositiveCert || t == sigCertRevocation
	}
	if !belongs {
		return errors.New("a signature of this type has no place here")
	}
	h, err := sig.PrepareVerify()
	if err != nil {
		return err
	}
	c.hashKey(h, &c.packets[0])
	c.hashComponent(h, k)
	if err := primary.VerifySignature(h, sig); err != nil {
		return err
	}
	if t != sigSubkeyBinding || p.flags&signingKey == 0 {
		return nil
	}
	// RFC 9580 section 5.2.1.9: the subkey must agree.
	back := sig.EmbeddedSignature
	if back == nil {
		return errNoCrossSignature
	}
	sub, err := c.readKey(k)
	if err != nil {
		return err
	}
	if h, err = back.PrepareVerify(); err != nil {
		return err
	}
	c.hashKey(h, &c.packets[0])
	c.hashKey(h, k)
	return sub.VerifySignature(h, back)
}

// hashKey writes a key as signatures cover it (RFC 9580 section 5.2.4).
func (c *Cert) hashKey(h hash.Hash, p *packetRef) {
	b := c.body(p)
	if c.version == 4 {
		h.Write([]byte{0x99, byte(len(b) >> 8), byte(len(b))})
	} else {
		h.Write(binary.BigEndian.AppendUint32([]byte{0x9b}, uint32(len(b))))
	}
	h.Write(b)
}

// hashComponent writes what a signature covers beside the primary key.
func (c *Cert) hashComponent(h hash.Hash, p *packetRef) {
	prefix := byte(0xb4)
	switch p.tag {
	case tagPublicKey:
		return
	case tagPublicSubkey:
		c.hashKey(h, p)
		return
	case tagUserAttribute:
		prefix = 0xd1
	}
	b := c.body(p)
	h.Write(binary.BigEndian.AppendUint32([]byte{prefix}, uint32(len(b))))
	h.Write(b)
}

// Entity returns the certificate as go-crypto reads it, for encryption and the
// like. Writing the entity out again does not give the octets of c.
func (c *Cert) Entity() (*openpgp.Entity, error) {
	e, err := openpgp.ReadEntity(packet.NewReader(bytes.NewReader(c.data)))
	if err != nil {
		return nil, &Error{Certificate: c.number, Fingerprint: c.Fingerprint(), Err: err}
	}
	return e, nil
}
