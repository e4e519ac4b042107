package softcard

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"

	"signalbox.example/keycard"
)

// Status words.
const (
	swOK          = 0x9000
	swTerminated  = 0x6285
	swTouch       = 0x6600
	swMemory      = 0x6581
	swLength      = 0x6700
	swChain       = 0x6883
	swSecurity    = 0x6982
	swBlocked     = 0x6983
	swConditions  = 0x6985
	swData        = 0x6a80
	swNoApp       = 0x6a82
	swWrongP1P2   = 0x6a86
	swNotFound    = 0x6a88
	swUnknownINS  = 0x6d00
	swWrongClass  = 0x6e00
	swInternal    = 0x6f00
	maxChained    = 4096
	maxExtended   = 2048 + 64 // octets of one extended command or answer
	maxCertLength = 2048
	maxObject     = 254
	maxCardholder = 39
)

// process is the card's main loop: one command in, one answer out. The order
// is the way a command takes: chaining of its parts, the answer's rest, then
// the instruction.
func (c *Card) process(ctx context.Context, raw []byte) []byte {
	cmd, extended, err := keycard.ParseCommand(raw)
	if err != nil || extended && c.st.Personality != V34 {
		return answer(swLength)
	}
	if extended && len(raw) > maxExtended {
		return answer(swLength)
	}
	head := [4]byte{cmd.CLA &^ 0x10, cmd.INS, cmd.P1, cmd.P2}
	if cmd.CLA&0x10 != 0 || c.chaining {
		if c.chaining && head != c.chainHead || len(c.chain)+len(cmd.Data) > maxChained {
			c.dropChain()
			return answer(swChain)
		}
		c.chainHead = head
		if len(c.chain)+len(cmd.Data) > cap(c.chain) {
			bigger := append(make([]byte, 0, maxChained), c.chain...)
			clear(c.chain)
			c.chain = bigger
		}
		c.chain = append(c.chain, cmd.Data...)
		if c.chaining = cmd.CLA&0x10 != 0; c.chaining {
			return answer(swOK)
		}
		cmd.Data = c.chain
		defer c.dropChain()
		cmd.CLA &^= 0x10
	}
	if cmd.CLA != 0 && (cmd.CLA != 0x80 || cmd.INS != 0xfb) {
		return answer(swWrongClass)
	}
	c.le = cmd.Le
	if c.le == 0 {
		c.le = 256
	}
	if cmd.INS == 0xc0 {
		return c.deliver(c.pending, swOK)
	}
	clear(c.pending)
	c.pending = nil
	data, sw := c.instruction(ctx, cmd)
	if c.dirty {
		c.dirty, c.app = false, nil
		if err := c.save(); err != nil {
			return answer(swMemory)
		}
	}
	out := c.deliver(data, sw)
	c.pending = bytes.Clone(c.pending) // to be cleared: it may be the card's own object
	return out
}

func (c *Card) dropChain() {
	clear(c.chain)
	c.chain, c.chaining = c.chain[:0], false
}

func answer(sw uint16) []byte { return []byte{byte(sw >> 8), byte(sw)} }

// deliver gives out as much as was asked for and keeps the rest for GET
// RESPONSE.
func (c *Card) deliver(data []byte, sw uint16) []byte {
	n := min(len(data), c.le)
	if c.st.Personality != V34 {
		n = min(n, 256)
	}
	out := append(make([]byte, 0, n+2), data[:n]...)
	c.pending = data[n:]
	if left := len(c.pending); left > 0 && sw == swOK {
		return append(out, 0x61, byte(min(left, 256))) // 256 is sent as 00
	}
	return append(out, byte(sw>>8), byte(sw))
}

// modern reports whether the card plays version 3.4.
func (c *Card) modern() bool { return c.st.Personality != V20 }

func (c *Card) instruction(ctx context.Context, cmd keycard.Command) ([]byte, uint16) {
	if cmd.INS == 0xa4 {
		return nil, c.selectApp(cmd)
	}
	if !c.selected {
		return nil, swConditions
	}
	if c.st.Terminated && cmd.INS != 0x44 {
		return nil, swTerminated
	}
	p := uint16(cmd.P1)<<8 | uint16(cmd.P2)
	switch cmd.INS {
	case 0x20:
		return nil, c.verify(cmd)
	case 0x24:
		return nil, c.change(cmd)
	case 0x2c:
		return nil, c.unblock(cmd)
	case 0x2a:
		switch p {
		case 0x9e9a:
			return c.sign(ctx, cmd.Data)
		case 0x8086:
			return c.decipher(ctx, cmd.Data)
		}
		return nil, swWrongP1P2
	case 0x88:
		if p != 0 {
			return nil, swWrongP1P2
		}
		return c.authenticate(ctx, cmd.Data)
	case 0x47:
		return c.generate(cmd)
	case 0x84:
		if cmd.Le == 0 || cmd.Le > 256 {
			return nil, swLength
		}
		b := make([]byte, cmd.Le)
		rand.Read(b)
		return b, swOK
	case 0xca:
		return c.getData(p)
	case 0xcc:
		if !c.modern() {
			return nil, swUnknownINS
		}
		if p != 0x7f21 || c.occ >= 2 {
			return nil, swNotFound
		}
		c.occ++
		return c.st.Certificates[c.occ], swOK
	case 0xa5:
		return nil, c.selectData(cmd)
	case 0xda:
		return nil, c.putData(p, cmd.Data)
	case 0xdb:
		if p != 0x3fff {
			return nil, swWrongP1P2
		}
		return nil, c.importKey(cmd.Data)
	case 0xe6:
		return nil, c.terminate()
	case 0x44:
		return nil, c.activate()
	case 0xfb:
		return nil, c.attest(ctx, cmd)
	case 0xf2:
		return nil, c.setTries(cmd.Data)
	}
	return nil, swUnknownINS
}

func (c *Card) selectApp(cmd keycard.Command) uint16 {
	if cmd.P1 != 4 {
		return swWrongP1P2
	}
	aid := c.aid()
	if len(cmd.Data) < 5 || len(cmd.Data) > len(aid) || string(cmd.Data) != string(aid[:len(cmd.Data)]) {
		// Without a version number, and with any older one, it is this card
		// too; other applications are not here.
		if len(cmd.Data) < 6 || string(cmd.Data[:6]) != string(aid[:6]) {
			return swNoApp
		}
	}
	c.powerOff()
	c.selected = true
	if c.st.Terminated {
		return swTerminated
	}
	return swOK
}

// pinIndex finds the PIN for a reference.
func pinIndex(ref byte) (i int, ok bool) {
	switch ref {
	case 0x81, 0x82:
		return 0, true
	case 0x83:
		return 2, true
	}
	return 0, false
}

func (c *Card) verify(cmd keycard.Command) uint16 {
	i, ok := pinIndex(cmd.P2)
	if !ok {
		return swWrongP1P2
	}
	v := &c.verified[cmd.P2-0x81]
	switch {
	case cmd.P1 == 0xff && c.modern():
		if len(cmd.Data) > 0 {
			return swData
		}
		*v = false
		return swOK
	case cmd.P1 != 0:
		return swWrongP1P2
	case len(cmd.Data) == 0 && !c.modern():
		return swData
	case len(cmd.Data) == 0:
		if *v {
			return swOK
		}
		return counted(c.st.PIN[i].Tries)
	}
	*v = false
	sw := c.compare(i, cmd.Data)
	*v = sw == swOK
	return sw
}

// compare checks a PIN, counting tries. Resetting codes count too.
func (c *Card) compare(i int, value []byte) uint16 {
	p := &c.st.PIN[i]
	if p.Tries == 0 {
		return swBlocked
	}
	c.dirty = true
	// Spend the try before comparing, so that cutting the power wins none.
	p.Tries--
	if len(p.Value) == 0 || subtle.ConstantTimeCompare(p.Value, value) != 1 {
		switch {
		case p.Tries == 0:
			return swBlocked
		case c.cfg.CountInStatus:
			return counted(p.Tries)
		}
		return swSecurity
	}
	p.Tries = p.Max
	return swOK
}

// counted is the status word 63Cx, which has room for 15 tries.
func counted(tries int) uint16 { return 0x63c0 | uint16(min(tries, 15)) }

// bounds are the lengths allowed for a new PIN.
func bounds(i int) (shortest, longest int) {
	if i == 0 {
		return 6, 127
	}
	return 8, 127
}

func (c *Card) setPIN(i int, value []byte) uint16 {
	lo, hi := bounds(i)
	if len(value) < lo || len(value) > hi {
		return swData
	}
	p := &c.st.PIN[i]
	clear(p.Value)
	p.Value, p.Tries = append([]byte(nil), value...), p.Max
	c.dirty = true
	return swOK
}

func (c *Card) change(cmd keycard.Command) uint16 {
	i, ok := pinIndex(cmd.P2)
	if !ok || cmd.P2 == 0x82 || cmd.P1 != 0 {
		return swWrongP1P2
	}
	old := len(c.st.PIN[i].Value)
	lo, hi := bounds(i)
	if n := len(cmd.Data); n < lo+lo || n > hi+hi {
		return swData
	}
	old = min(old, len(cmd.Data))
	c.verified[cmd.P2-0x81] = false
	if i == 0 {
		c.verified[0], c.verified[1] = false, false
	}
	if sw := c.compare(i, cmd.Data[:old]); sw != swOK {
		return sw
	}
	return c.setPIN(i, cmd.Data[old:])
}

func (c *Card) unblock(cmd keycard.Command) uint16 {
	if cmd.P2 != 0x81 {
		return swWrongP1P2
	}
	value := cmd.Data
	switch cmd.P1 {
	case 2:
		if !c.verified[2] {
			return swSecurity
		}
	case 0:
		n := len(c.st.PIN[1].Value)
		if n == 0 {
			return swBlocked
		}
		n = min(n, len(value))
		if sw := c.compare(1, value[:n]); sw != swOK {
			return sw
		}
		value = value[n:]
	default:
		return swWrongP1P2
	}
	c.verified[0], c.verified[1] = false, false
	return c.setPIN(0, value)
}

// setTries is YubiKey's command for the numbers of tries.
func (c *Card) setTries(d []byte) uint16 {
	if !c.modern() {
		return swUnknownINS
	}
	if !c.verified[2] {
		return swSecurity
	}
	if len(d) != 3 || d[0] < 1 || d[0] > 99 || d[1] < 1 || d[1] > 99 || d[2] < 1 || d[2] > 99 {
		return swData
	}
	for i := range c.st.PIN {
		c.st.PIN[i].Max = int(d[i])
		if len(c.st.PIN[i].Value) > 0 {
			c.st.PIN[i].Tries = int(d[i])
		}
	}
	c.dirty = true
	return swOK
}

func (c *Card) terminate() uint16 {
	if !c.modern() {
		return swUnknownINS
	}
	if !c.verified[2] && c.st.PIN[2].Tries > 0 {
		return swSecurity
	}
	c.st.Terminated, c.dirty = true, true
	return swOK
}

func (c *Card) activate() uint16 {
	if !c.modern() {
		return swUnknownINS
	}
	if c.st.Terminated {
		c.blank()
		c.selected, c.dirty = true, true
	}
	return swOK
}
