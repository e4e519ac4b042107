package openpgpdns

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
)

// armorReader decodes the body of one armored block after another (RFC 9580
// section 6). Its Read returns io.EOF at the end of each block; next moves on.
// The checksum is not looked at, as section 6.1 demands. Unlike the decoder of
// go-crypto it notices a block without its last line and bounds its headers.
type armorReader struct {
	br   *bufio.Reader
	out  []byte // decoded and not yet read
	room [3 * (armorLineReading/4 + 1)]byte
	quad [4]byte // base64 digits that do not yet make a group
	nq   int
	pad  bool // a padded group was seen: the data has ended
	in   bool // inside a block
}

var (
	armorBegin  = []byte("-----BEGIN ")
	armorFinish = []byte("-----END ")
	armorDashes = []byte("-----")
)

const (
	armorPublic      = "PGP PUBLIC KEY BLOCK"
	armorPrivate     = "PGP PRIVATE KEY BLOCK"
	maxArmorHeaders  = 64 << 10
	armorLineReading = 4096
)

func newArmorReader(r io.Reader) *armorReader {
	return &armorReader{br: bufio.NewReaderSize(r, armorLineReading)}
}

// line returns the next line without white space at its ends. A line longer
// than the buffer comes in pieces, all but the last marked as such.
func (a *armorReader) line() (l []byte, piece bool, err error) {
	l, err = a.br.ReadSlice('\n')
	switch {
	case err == bufio.ErrBufferFull:
		return l, true, nil
	case err == io.EOF && len(l) > 0:
		err = nil
	case err != nil:
		return nil, false, err
	}
	return bytes.TrimSpace(l), false, nil
}

// next finds the start of the next block, skipping all text before it, and
// returns its type. io.EOF: there is none.
func (a *armorReader) next() (string, error) {
	a.out, a.nq, a.pad = nil, 0, false
	a.in = false // drop the rest of a block that was given up
	piece := false
	for {
		was := piece
		var l []byte
		var err error
		l, piece, err = a.line()
		if err != nil {
			return "", err
		}
		if was || piece || !bytes.HasPrefix(l, armorBegin) || !bytes.HasSuffix(l, armorDashes) || len(l) < len(armorBegin)+len(armorDashes) {
			continue
		}
		typ := string(l[len(armorBegin) : len(l)-len(armorDashes)])
		for n, piece := 0, false; ; {
			was := piece
			l, more, err := a.line()
			if err == io.EOF {
				return typ, ErrTruncated
			}
			if err != nil {
				return typ, err
			}
			if n += len(l); n > maxArmorHeaders {
				return typ, ErrArmor
			}
			if piece = more; was || more {
				continue // a long line holds neither an end nor nothing
			}
			if len(l) == 0 {
				a.in = true
				return typ, nil
			}
			if bytes.HasPrefix(l, armorFinish) {
				return typ, ErrArmor
			}
		}
	}
}

// Read returns decoded octets of the block under way.
func (a *armorReader) Read(p []byte) (int, error) {
	for len(a.out) == 0 {
		if !a.in {
			return 0, io.EOF
		}
		l, piece, err := a.line()
		if err == io.EOF {
			a.in = false
			return 0, ErrTruncated
		}
		if err != nil {
			return 0, err
		}
		switch {
		case piece:
			a.in = false
			return 0, ErrArmor
		case bytes.HasPrefix(l, armorFinish):
			a.in = false
			if a.nq != 0 {
				return 0, ErrArmor
			}
			return 0, io.EOF
		case len(l) == 5 && l[0] == '=' && a.nq == 0:
			continue
		}
		if err := a.decode(l); err != nil {
			a.in = false
			return 0, err
		}
	}
	n := copy(p, a.out)
	a.out = a.out[n:]
	return n, nil
}

func (a *armorReader) decode(l []byte) error {
	dst := a.room[:0]
	for len(l) > 0 {
		if a.pad {
			return ErrArmor
		}
		if a.nq == 0 && len(l) >= 4 {
			// Whole groups at once.
			n := len(l) &^ 3
			a.pad = l[n-1] == '='
			m, err := base64.StdEncoding.Decode(a.room[len(dst):], l[:n])
			if err != nil {
				return ErrArmor
			}
			dst, l = a.room[:len(dst)+m], l[n:]
			continue
		}
		a.quad[a.nq] = l[0]
		a.nq, l = a.nq+1, l[1:]
		if a.nq == 4 {
			a.nq, a.pad = 0, a.quad[3] == '='
			m, err := base64.StdEncoding.Decode(a.room[len(dst):], a.quad[:])
			if err != nil {
				return ErrArmor
			}
			dst = a.room[:len(dst)+m]
		}
	}
	a.out = dst
	return nil
}
