package softcard

import (
	"bytes"
	"encoding/binary"

	"signalbox.example/keycard"
)

func (c *Card) aid() []byte {
	b := []byte{0xd2, 0x76, 0, 1, 0x24, 1, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0}
	if !c.modern() {
		b[6], b[7] = 2, 0
	}
	binary.BigEndian.PutUint16(b[8:], c.st.Manufacturer)
	binary.BigEndian.PutUint32(b[10:], c.st.Serial)
	return b
}

// capabilities is C0: GET CHALLENGE, key import, PW status changeable, private
// objects, attributes changeable and KDF.
func (c *Card) capabilities() []byte {
	if !c.modern() {
		return []byte{0xf8 &^ 0x80, 0, 0, 0xff, 4, 0xc0, 0, 0xff, 0, 0xff}
	}
	b := []byte{0x7d, 0, 1, 0, maxCertLength >> 8, maxCertLength & 0xff, 0, maxObject, 0, 0}
	if c.cfg.WithoutKDF {
		b[0] &^= 1
	}
	return b
}

func (c *Card) pinStatus() []byte {
	b := []byte{0, 127, 127, 127, byte(c.st.PIN[0].Tries), byte(c.st.PIN[1].Tries), byte(c.st.PIN[2].Tries)}
	if c.st.Multiple {
		b[0] = 1
	}
	return b
}

// slots is how many keys the card shows.
func (c *Card) slots() int {
	if len(c.st.AttestCert) > 0 {
		return 4
	}
	return 3
}

// sized returns an object padded with zeros to a fixed length.
func (c *Card) sized(tag uint16, n int) []byte {
	b := make([]byte, n)
	copy(b, c.st.Objects[tag])
	return b
}

// application is 6E, built once after each change.
func (c *Card) application() []byte {
	if c.app != nil {
		return c.app
	}
	var d, b []byte
	tlv := keycard.AppendTLV
	d = tlv(d, 0xc0, c.capabilities())
	tags := [4]uint16{0xc1, 0xc2, 0xc3, 0xda}
	for i := range c.slots() {
		d = tlv(d, tags[i], c.st.Slots[i].Attributes)
	}
	d = tlv(d, 0xc4, c.pinStatus())
	var f, ca, times, info []byte
	for i := range uint16(c.slots()) {
		ft, ct, tt := 0xc7+i, 0xca+i, 0xce+i
		if i == 3 {
			ft, ct, tt = 0xdb, 0xdc, 0xdd
		}
		f = append(f, c.sized(ft, 20)...)
		ca = append(ca, c.sized(ct, 20)...)
		times = append(times, c.sized(tt, 4)...)
		ref := byte(i + 1)
		if i == 3 {
			ref = 0x81
		}
		info = append(info, ref, c.st.Slots[i].Origin)
	}
	d = tlv(tlv(tlv(d, 0xc5, f), 0xc6, ca), 0xcd, times)
	if c.modern() {
		d = tlv(d, 0xde, info)
		for i := range c.slots() {
			d = tlv(d, 0xd6+uint16(i), []byte{c.st.Slots[i].UIF, 0x20})
		}
	}
	b = tlv(b, 0x4f, c.aid())
	b = tlv(b, 0x5f52, c.historical())
	if c.st.Personality == V34 {
		b = tlv(b, 0x7f66, []byte{2, 2, maxExtended >> 8, maxExtended & 0xff, 2, 2, maxExtended >> 8, maxExtended & 0xff})
	}
	if c.modern() {
		b = tlv(b, 0x7f74, []byte{0x81, 1, 0x20})
	}
	b = tlv(b, 0x73, d)
	if c.modern() {
		b = tlv(nil, 0x6e, b)
	}
	c.app = b
	return b
}

// attributeList is what the card can do, in the order it is shown.
func (c *Card) attributeList(i int) [][]byte {
	var out [][]byte
	slot := keycard.Slot(i)
	for _, bits := range []int{2048, 3072, 4096} {
		out = append(out, keycard.RSA(bits).Attributes())
	}
	if !c.modern() {
		return out
	}
	curves := []keycard.Curve{keycard.P256, keycard.P384, keycard.P521}
	if !c.cfg.Without25519 {
		curves = append(curves, keycard.Ed25519)
	}
	for _, cv := range curves {
		a := keycard.EC(cv).For(slot)
		a.WithPublic = c.cfg.PublicOnImport
		out = append(out, a.Attributes())
	}
	return out
}

func (c *Card) getData(tag uint16) ([]byte, uint16) {
	s := &c.st
	switch tag {
	case 0x4f:
		return c.aid(), swOK
	case 0x6e:
		return c.application(), swOK
	case 0x5f52:
		return c.historical(), swOK
	case 0xc4:
		return c.pinStatus(), swOK
	case 0x5e, 0x5f50, 0x5b, 0x5f2d, 0x5f35, 0x101, 0x102:
		return s.Objects[tag], swOK
	case 0x103, 0x104:
		if !c.verified[tag-0x102] {
			return nil, swSecurity
		}
		return s.Objects[tag], swOK
	case 0x65:
		b := keycard.AppendTLV(nil, 0x5b, s.Objects[0x5b])
		b = keycard.AppendTLV(b, 0x5f2d, s.Objects[0x5f2d])
		b = keycard.AppendTLV(b, 0x5f35, s.Objects[0x5f35])
		if c.modern() {
			b = keycard.AppendTLV(nil, 0x65, b)
		}
		return b, swOK
	case 0x7a:
		b := []byte{0x93, 3, byte(s.Signatures >> 16), byte(s.Signatures >> 8), byte(s.Signatures)}
		if c.modern() {
			b = keycard.AppendTLV(nil, 0x7a, b)
		}
		return b, swOK
	case 0x7f21:
		return s.Certificates[c.occ], swOK
	case 0xfc:
		if len(s.AttestCert) > 0 {
			return s.AttestCert, swOK
		}
	}
	if !c.modern() {
		return nil, swNotFound
	}
	switch tag {
	case 0x7f74:
		return []byte{0x81, 1, 0x20}, swOK
	case 0x7f66:
		if s.Personality == V34 {
			b, _ := keycard.FindTLV(c.application(), 0x7f66)
			return b, swOK
		}
	case 0xf9:
		if c.cfg.WithoutKDF {
			break
		}
		if b := s.Objects[0xf9]; len(b) > 0 {
			return b, swOK
		}
		return []byte{0x81, 1, 0}, swOK
	case 0xfa:
		var b []byte
		for i, t := range []uint16{0xc1, 0xc2, 0xc3} {
			for _, a := range c.attributeList(i) {
				b = keycard.AppendTLV(b, t, a)
			}
		}
		return keycard.AppendTLV(nil, 0xfa, b), swOK
	case 0xd6, 0xd7, 0xd8:
		return []byte{s.Slots[tag-0xd6].UIF, 0x20}, swOK
	}
	return nil, swNotFound
}

// selectData chooses one of the three certificates.
func (c *Card) selectData(cmd keycard.Command) uint16 {
	if !c.modern() {
		return swUnknownINS
	}
	if cmd.P2 != 4 || cmd.P1 > 2 {
		return swWrongP1P2
	}
	if !bytes.Equal(cmd.Data, []byte{0x60, 4, 0x5c, 2, 0x7f, 0x21}) {
		return swData
	}
	c.occ = int(cmd.P1)
	return swOK
}

// putData writes one object. Lengths and rights follow the specification's
// table in section 4.4.1.
func (c *Card) putData(tag uint16, v []byte) uint16 {
	s := &c.st
	right := 2 // Admin PIN
	if tag == 0x101 || tag == 0x103 {
		right = 1
	}
	if !c.verified[right] {
		return swSecurity
	}
	fixed, longest := -1, -1
	switch tag {
	case 0x5b:
		longest = maxCardholder
	case 0x5f2d:
		longest = 8
	case 0x5f35:
		fixed = 1
	case 0x5e, 0x5f50, 0x101, 0x102, 0x103, 0x104:
		longest = maxObject
	case 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc:
		fixed = 20
	case 0xce, 0xcf, 0xd0:
		fixed = 4
	case 0x7f21:
		if len(v) > maxCertLength {
			return swLength
		}
		s.Certificates[c.occ] = bytes.Clone(v)
		c.dirty = true
		return swOK
	case 0xc4:
		if len(v) < 1 || v[0] > 1 {
			return swData
		}
		s.Multiple, c.dirty = v[0] == 1, true
		return swOK
	case 0xd3:
		if len(v) == 0 {
			clear(s.PIN[1].Value)
			s.PIN[1].Value, s.PIN[1].Tries, c.dirty = nil, 0, true
			return swOK
		}
		return c.setPIN(1, v)
	case 0xc1, 0xc2, 0xc3:
		if !c.modern() {
			return swSecurity
		}
		return c.putAttributes(int(tag-0xc1), v)
	case 0xd6, 0xd7, 0xd8:
		if !c.modern() {
			return swNotFound
		}
		k := &s.Slots[tag-0xd6]
		if len(v) != 2 || v[0] > 4 {
			return swData
		}
		if (k.UIF == 2 || k.UIF == 4) && k.UIF != v[0] {
			return swTouch
		}
		k.UIF, c.dirty = v[0], true
		return swOK
	case 0xf9:
		if !c.modern() || c.cfg.WithoutKDF {
			return swNotFound
		}
		return c.putKDF(v)
	default:
		return swNotFound
	}
	if fixed >= 0 && len(v) != fixed || longest >= 0 && len(v) > longest {
		return swLength
	}
	s.Objects[tag] = bytes.Clone(v)
	c.dirty = true
	return swOK
}

func (c *Card) putAttributes(i int, v []byte) uint16 {
	a, err := keycard.ParseAttributes(v)
	if err != nil {
		return swData
	}
	known := false
	for _, b := range c.attributeList(i) {
		k, _ := keycard.ParseAttributes(b)
		known = known || k.Same(a)
	}
	if a.ID == keycard.AlgoRSA && (a.ExponentBits < 17 || a.ExponentBits > 32 || len(v) < 6 || v[5] > 3) {
		known = false
	}
	if !known && !c.cfg.LaxAttributes {
		return swData
	}
	k := &c.st.Slots[i]
	old, _ := keycard.ParseAttributes(k.Attributes)
	if known && c.cfg.PublicOnImport && a.ID != keycard.AlgoRSA {
		a.WithPublic = true
		v = a.Attributes()
	}
	k.Attributes = bytes.Clone(v)
	if !old.Same(a) && !c.cfg.LaxAttributes {
		c.dropKey(i)
	}
	c.dirty = true
	return swOK
}

func (c *Card) dropKey(i int) {
	k := &c.st.Slots[i]
	clear(k.Private)
	k.Private, k.Origin, c.keys[i] = nil, 0, nil
	if k.UIF == 1 || k.UIF == 3 {
		k.UIF = 0 // a policy that is not fixed goes with its key
	}
	delete(c.st.Objects, 0xc7+uint16(i))
	delete(c.st.Objects, 0xce+uint16(i))
}

// putKDF stores the KDF object. Unless the client changes the PINs itself
// they are set from the hashes in the object; when it is removed, PINs that
// are hashes still become the default ones.
func (c *Card) putKDF(v []byte) uint16 {
	k, err := keycard.ParseKDF(v)
	if err != nil {
		return swData
	}
	s := &c.st
	size := 32
	if k.Hash == 10 {
		size = 64
	}
	if !c.cfg.ClientKDF {
		switch {
		case k.Active():
			if len(k.InitialUser) != size || len(k.InitialAdmin) != size {
				return swData
			}
			c.setPIN(0, k.InitialUser)
			c.setPIN(2, k.InitialAdmin)
		default:
			for i, d := range map[int]string{0: defaultPIN, 2: defaultAdmin} {
				if n := len(s.PIN[i].Value); n == 32 || n == 64 {
					c.setPIN(i, []byte(d))
				}
			}
		}
	}
	clear(s.PIN[1].Value)
	s.PIN[1].Value, s.PIN[1].Tries = nil, 0
	s.Objects[0xf9] = bytes.Clone(v)
	if !k.Active() {
		delete(s.Objects, 0xf9)
	}
	c.verified = [3]bool{}
	c.dirty = true
	return swOK
}
