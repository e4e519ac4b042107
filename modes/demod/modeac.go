package demod

import "math"

// A ModeACReply is a reply of an older transponder: twelve bits that are
// either an identity (Mode A) or an altitude (Mode C), which only the
// interrogator knows, and no parity.
type ModeACReply struct {
	// Time12 is the time of the leading edge of the first framing pulse in
	// ticks of 12 MHz since the start of the stream.
	Time12 uint64
	// Signal is the mean pulse power in dB relative to full scale.
	Signal float32
	// Code holds the four octal digits A, B, C, D in four bits each, A in the
	// highest, as [modes.Squawk] does: identity 1200 is 0x1200.
	Code uint16
	// SPI is the special position identification pulse, the pilot's IDENT.
	SPI bool
}

// OnModeAC sets the function that is called for each Mode A/C reply if
// Config.ModeAC is set, nil for none. The reply is valid only during the call.
// A block's replies come before its frames.
func (d *Demodulator) OnModeAC(f func(*ModeACReply)) { d.onModeAC = f }

// Pulses of a reply are 1.45 us apart: a framing pulse, thirteen of the code,
// a framing pulse, and three places later the SPI.
const (
	acSlots  = 18
	acFrame2 = 14
	acSPI    = 17
	acStep   = 1.45e-6
	acGate   = 20 // energy of each framing pulse over the noise
)

// acReply is what a block finds.
type acReply struct {
	start int64   // middle of the first pulse, in sub-phases
	level float32 // pulse power over full scale
	code  uint16
	spi   bool
}

// acDigits is the bit in ModeACReply.Code of each pulse of the code in its
// order: C1 A1 C2 A2 C4 A4 X B1 D1 B2 D2 B4 D4.
var acDigits = [13]uint16{0x10, 0x1000, 0x20, 0x2000, 0x40, 0x4000, 0, 0x100, 0x1, 0x200, 0x2, 0x400, 0x4}

// modeAC looks for Mode A/C replies at half samples from lo to hi, outside the
// Mode S frames that are certain. Without a parity all must fit: two framing
// pulses alike, every pulse either there or not, nothing between the pulses or
// around the reply.
func (b *block) modeAC(lo, hi int) {
	threshold := acGate * b.noise
	step := acStep * 2 * b.t.rate
	var slot, gap [acSlots]int
	for k := range slot {
		slot[k] = int(math.Round(float64(k) * step))
		gap[k] = int(math.Round((float64(k) + 0.5) * step))
	}
	lo = max(lo, gap[0]+3)
	for m := lo; m < hi; m++ {
		e := b.e[m:]
		first, second := e[0], max(e[slot[acFrame2]], e[slot[acFrame2]-1], e[slot[acFrame2]+1])
		if first < threshold || second < threshold || first < b.e[m-1] || first <= e[1] {
			continue
		}
		if to := b.inside(m); to > m {
			m = to
			continue
		}
		level := (first + second) / 2
		if min(first, second) < level/2 {
			continue
		}
		// Around the reply, and between its pulses.
		limit := level/5 + 3*b.noise
		if b.e[m-gap[0]-2] > limit || b.e[m-gap[0]] > limit || e[slot[15]] > limit || e[slot[16]] > limit {
			continue
		}
		clean := true
		for k := range acFrame2 {
			if e[gap[k]] > limit {
				clean = false
				break
			}
		}
		if !clean {
			continue
		}
		var r acReply
		for k := 1; k < acFrame2 && clean; k++ {
			at := e[slot[k]-1 : slot[k]+2]
			switch v := max(at[0], at[1], at[2]); {
			case v > 0.4*level:
				r.code |= acDigits[k-1]
				clean = k != 7 && v < 2.5*level // X is never sent
			case v > limit:
				clean = false
			}
		}
		if !clean {
			continue
		}
		r.spi = e[slot[acSPI]] > 0.4*level
		// The first pulse alone gives the time, by a parabola.
		bend := b.e[m-1] - 2*first + e[1]
		delta := float32(0)
		if bend < 0 {
			delta = max(-0.5, min(0.5, (b.e[m-1]-e[1])/(2*bend)))
		}
		r.start = b.first*subPhases + int64(math.Round((float64(m)+float64(delta))*(subPhases/2)))
		gain := b.t.gain[offsetBins][0]
		r.level = max(level-b.noise, 0) / (gain * gain)
		b.replies = append(b.replies, r)
		m += slot[acFrame2]
	}
}

// emitModeAC hands the replies of a block over.
func (d *Demodulator) emitModeAC(b *block) {
	for i := range b.replies {
		r := &b.replies[i]
		d.stats.ModeAC++
		if d.onModeAC == nil {
			continue
		}
		d.reply = ModeACReply{
			Time12: d.judge.ticks(r.start), Code: r.code, SPI: r.spi,
			Signal: decibels(r.level),
		}
		d.onModeAC(&d.reply)
	}
}

// decibels returns a pulse power in dB relative to full scale.
func decibels(level float32) float32 {
	return float32(10 * math.Log10(float64(min(max(level, 1e-20), 1))))
}
