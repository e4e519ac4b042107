package keycard

import "fmt"

// maxDepth bounds the nesting of constructed objects.
const maxDepth = 5

// TLV is one BER-TLV data object. Value points into the parsed octets.
type TLV struct {
	Tag   uint16
	Value []byte
}

// NextTLV cuts the first BER-TLV object off b. Tags have one or two octets,
// lengths one, two (81) or three (82); the indefinite form and longer ones are
// refused. Every length is checked against what is left. The error wraps
// [ErrMalformed].
func NextTLV(b []byte) (o TLV, rest []byte, err error) {
	tag, value, rest, ok := nextTLV(b)
	if !ok {
		return o, nil, fmt.Errorf("keycard: data object at %.4x of %d octets: %w", b[:min(len(b), 4)], len(b), ErrMalformed)
	}
	return TLV{tag, value}, rest, nil
}

func nextTLV(b []byte) (tag uint16, value, rest []byte, ok bool) {
	if len(b) < 2 {
		return 0, nil, nil, false
	}
	tag = uint16(b[0])
	i := 1
	if b[0]&0x1f == 0x1f {
		if b[1]&0x80 != 0 { // a third tag octet
			return 0, nil, nil, false
		}
		tag = tag<<8 | uint16(b[1])
		i = 2
	}
	n, w, ok := tlvLength(b[i:])
	if !ok || len(b)-i-w < n {
		return 0, nil, nil, false
	}
	i += w
	return tag, b[i : i+n : i+n], b[i+n:], true
}

// tlvLength reads a BER length and says how many octets it took.
func tlvLength(b []byte) (n, width int, ok bool) {
	switch {
	case len(b) == 0:
		return 0, 0, false
	case b[0] < 0x80:
		return int(b[0]), 1, true
	case b[0] == 0x81 && len(b) >= 2:
		return int(b[1]), 2, true
	case b[0] == 0x82 && len(b) >= 3:
		return int(b[1])<<8 | int(b[2]), 3, true
	}
	return 0, 0, false
}

// AppendTLV appends one object with the shortest length form. Value is at
// most 65535 octets long.
func AppendTLV(dst []byte, tag uint16, value []byte) []byte {
	return append(appendTagLength(dst, tag, len(value)), value...)
}

func appendTagLength(dst []byte, tag uint16, n int) []byte {
	if tag > 0xff {
		dst = append(dst, byte(tag>>8))
	}
	return appendLength(append(dst, byte(tag)), n)
}

func appendLength(dst []byte, n int) []byte {
	switch {
	case n < 0x80:
		return append(dst, byte(n))
	case n < 0x100:
		return append(dst, 0x81, byte(n))
	}
	return append(dst, 0x82, byte(n>>8), byte(n))
}

// FindTLV returns the value of the first object with this tag, searching
// constructed objects too, at most five levels deep. Octets of zero between or
// after objects are skipped. It stops at the first malformed object.
func FindTLV(b []byte, tag uint16) ([]byte, bool) { return findTLV(b, tag, 0) }

func findTLV(b []byte, tag uint16, depth int) ([]byte, bool) {
	for len(b) > 0 {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		t, v, rest, ok := nextTLV(b)
		if !ok {
			return nil, false
		}
		if t == tag {
			return v, true
		}
		first := byte(t)
		if t > 0xff {
			first = byte(t >> 8)
		}
		if first&0x20 != 0 && depth < maxDepth && t != 0xfa {
			if w, ok := findTLV(v, tag, depth+1); ok {
				return w, true
			}
		}
		b = rest
	}
	return nil, false
}

// unwrap removes an outer object with this tag if b consists of one. Cards
// differ in whether GET DATA returns the object or only its value.
func unwrap(b []byte, tag uint16) []byte {
	if t, v, _, ok := nextTLV(b); ok && t == tag {
		return v
	}
	return b
}
