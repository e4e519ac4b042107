package demod

import (
	"encoding/binary"
	"math"
	"math/bits"

	"signalbox.example/modes"
)

const (
	recent = 16
	// samePlace is in samples: a frame that close to another with the same
	// bits is the same frame.
	samePlace = 12
	// maxHeard is the number of addresses that repairs are tried for.
	maxHeard = 256
)

// A mark is a frame that was handed over.
type mark struct {
	frame modes.Frame
	start int64
}

type heard struct {
	address uint32
	time    uint64 // 12 MHz
}

// A judge decides which readings are frames. It sees them in the order of
// the stream and is the only one to know addresses.
type judge struct {
	t      *template
	filter *modes.AddressFilter
	repair Repair
	stats  *Stats

	flip     *flipper
	lim      *limits
	llr      [longBits]float32
	heard    []heard
	codes    [0x50]uint32 // all-call replies heard with each interrogator code
	last     [recent]mark
	nextLast int
	frame    modes.Frame // handed to emit
	order    []int32
}

// judgeBlock hands the frames among the readings of a block to emit, in the
// order of their time.
func (j *judge) judgeBlock(out []reading, emit func(*modes.Frame)) {
	// Insertion sort: nearly sorted already.
	j.order = j.order[:0]
	for i := range out {
		if out[i].bits == 0 {
			j.stats.Elsewhere++
			continue
		}
		j.order = append(j.order, int32(i))
		for k := len(j.order) - 1; k > 0 && out[j.order[k-1]].start > out[j.order[k]].start; k-- {
			j.order[k-1], j.order[k] = j.order[k], j.order[k-1]
		}
	}
	for _, i := range j.order {
		j.reading(&out[i], emit)
	}
}

// ticks returns the time of the leading edge of the first pulse in 12 MHz.
func (j *judge) ticks(start int64) uint64 {
	const edge = 3 // a quarter of a microsecond before the middle
	// 12 MHz over sub-phases a second is 1/8 at 2.4 Msps, 3/20 at 2.0; whole
	// seconds apart, so that months do not overflow.
	second := int64(j.t.rate) * subPhases
	t := start/second*12_000_000 + (start%second*12_000_000+second/2)/second - edge
	return uint64(max(t, 0))
}

func (j *judge) reading(r *reading, emit func(*modes.Frame)) {
	f := &j.frame
	*f = modes.Frame{
		Time12: j.ticks(r.start), HasTime: true,
		Signal: decibels(r.level), HasSignal: true,
		Bits: uint8(r.bits),
	}
	reason := modes.Accepted
	for i := range r.nHard {
		f.Data, f.Margin = r.hard[i], r.margin[i]
		f.Repaired = 0
		if df := f.DF(); df != 11 && df != 17 && df != 18 && (!r.quiet || r.soft && parityScore+r.lnQ-j.crowd() < replyScore) {
			// No preamble, or too many bits may be wrong: what fits a heard
			// address may do so by chance.
			reason = modes.RejectedParity
			continue
		}
		if r.bare && !j.heardClear(f) {
			reason = modes.RejectedAddress
			continue
		}
		if f.DF() == 11 && f.Bits == 56 && r.soft {
			if i > 0 || !j.code(r, f) {
				reason = modes.RejectedCode
				continue
			}
			if f.Repaired > 0 {
				j.emit(f, r.start, emit)
				return
			}
		}
		if reason = j.filter.Match(f, f.Time12); reason == modes.Accepted {
			j.learn(f)
			j.emit(f, r.start, emit)
			return
		}
	}
	switch j.repair {
	case RepairOne, RepairTwo:
		f.Data = r.hard[0]
		n, ok := modes.Repair(f.Bytes(), int(j.repair-RepairOne)+1)
		if ok && n > 0 {
			f.Repaired = uint8(n)
			f.Margin = -1 // the parity does not say how doubtful the bits were
			if reason = j.filter.Match(f, f.Time12); reason == modes.Accepted {
				j.emit(f, r.start, emit)
				return
			}
		}
	case RepairSoft:
		if r.soft && (r.flips > 0 && !r.bare || j.search(r)) {
			f.Data, f.Repaired = r.flipped, uint8(r.flips)
			var sum float32
			for _, l := range r.llr[:r.bits] {
				sum += abs32(l)
			}
			f.Margin = -r.cost * float32(r.bits) / max(sum*float32(r.flips), 1e-20)
			if r.teaches {
				j.note(f)
			}
			j.emit(f, r.start, emit)
			return
		}
	}
	j.stats.Reasons[reason]++
}

// heardClear reports whether a frame holds an address in the clear that was
// heard.
func (j *judge) heardClear(f *modes.Frame) bool {
	if df := f.DF(); df != 11 && df != 17 {
		return false
	}
	return j.filter.Seen(clearAddress(f), f.Time12)
}

// clearAddress returns the address in the clear of a DF11 or DF17.
func clearAddress(f *modes.Frame) uint32 {
	return uint32(f.Data[1])<<16 | uint32(f.Data[2])<<8 | uint32(f.Data[3])
}

// crowd is what an address out of those heard takes off a score: each of them
// may fit by chance.
func (j *judge) crowd() float32 { return float32(math.Log(float64(max(1, len(j.heard))))) }

// code decides which interrogator code an all-call reply of a heard aircraft
// has. The parity says nothing about the seven bits that it is laid over, so
// among all codes the likeliest is taken, by the bits and by how often each
// was heard, if it is clearly so. It
// sets them in f.
func (j *judge) code(r *reading, f *modes.Frame) bool {
	rem := f.Remainder()
	if rem >= 0x80 || !j.heardClear(f) {
		return true // Match decides
	}
	const clearly = 6
	best, bestCost, second := uint32(0), float32(math.Inf(1)), float32(math.Inf(1))
	for c := range uint32(len(j.codes)) {
		if c == 0x10 {
			continue // no such code
		}
		cost := float32(-math.Log(float64(j.codes[c]) + 0.2))
		for x := rem ^ c; x != 0; x &= x - 1 {
			cost += abs32(r.llr[shortBits-1-bits.TrailingZeros32(x)])
		}
		if cost < bestCost {
			best, bestCost, second = c, cost, bestCost
		} else if cost < second {
			second = cost
		}
	}
	if second-bestCost < clearly {
		return false
	}
	if x := rem ^ best; x != 0 {
		f.Data[6] ^= byte(x)
		f.Repaired = uint8(bits.OnesCount32(x))
		f.Margin = -f.Margin
	}
	return true
}

// learn notes the address of a frame that vouches for it.
func (j *judge) learn(f *modes.Frame) {
	j.filter.Learn(f, f.Time12)
	df, rem := f.DF(), f.Remainder()
	if (df == 11 || df == 17) && rem == 0 {
		j.note(f)
	}
	if df == 11 && rem < uint32(len(j.codes)) && j.codes[rem] < 1<<20 {
		j.codes[rem]++
	}
}

// note remembers the ICAO address of a DF11 or DF17.
func (j *judge) note(f *modes.Frame) {
	address := clearAddress(f)
	j.filter.Add(address, f.Time12)
	oldest := 0
	for i := range j.heard {
		if h := &j.heard[i]; h.address == address {
			h.time = f.Time12
			return
		} else if h.time < j.heard[oldest].time {
			oldest = i
		}
	}
	if h := (heard{address, f.Time12}); len(j.heard) < maxHeard {
		j.heard = append(j.heard, h)
	} else {
		j.heard[oldest] = h
	}
}

// search looks for flips that make r a frame of an aircraft that was heard.
// Its address is then as good as known, which leaves fewer bits to doubt.
func (j *judge) search(r *reading) bool {
	if len(j.heard) == 0 || r.lnQ < -25 {
		return false
	}
	hard := r.hard[0]
	switch df := hard[0] >> 3; {
	case r.bits == longBits && j.searchClear(r, hard, 17):
		return true
	case r.bits == shortBits && j.searchClear(r, hard, 11):
		return true
	case df != 11 && df != 17 && df != 18:
		return j.searchParity(r, hard)
	}
	return false
}

// isReply reports whether df is a format with address parity and of that
// length.
func isReply(df byte, bits int) bool {
	if bits == shortBits {
		return df == 0 || df == 4 || df == 5
	}
	return df == 16 || df == 20 || df == 21
}

// searchClear is for frames that hold their address in the clear.
func (j *judge) searchClear(r *reading, hard [14]byte, df uint32) bool {
	const doubt = 10 // cost up to which an address is taken for a heard one
	word := binary.BigEndian.Uint32(hard[:4])
	best, bestCost := uint32(0), float32(doubt)
	for i := range j.heard {
		x := (word ^ (df<<27 | j.heard[i].address)) &^ 0x07000000
		if bits.OnesCount32(x) > 8 {
			continue
		}
		var c float32
		for ; x != 0; x &= x - 1 {
			c += abs32(r.llr[31-bits.TrailingZeros32(x)])
		}
		if c < bestCost && j.filter.Seen(j.heard[i].address, j.frame.Time12) {
			best, bestCost = df<<27|j.heard[i].address, c
		}
	}
	if best == 0 {
		return false
	}
	wrong := (word ^ best) &^ 0x07000000
	binary.BigEndian.PutUint32(hard[:4], word^wrong)
	llr := j.llr[:copy(j.llr[:], r.llr[:r.bits])]
	for i := range 32 {
		if i < 5 || i >= 8 {
			llr[i] = math.MaxFloat32
		}
	}
	score, keep := float32(parityScore), uint32(wholeParity)
	if df == 11 {
		for i := shortBits - codeBits; i < shortBits; i++ {
			llr[i] = math.MaxFloat32
		}
		score, keep = codeScore, wholeParity&^(1<<codeBits-1)
	}
	limit := score + lnRight(llr) - j.lim.score
	if limit <= 0 {
		return false
	}
	j.flip.prepare(j.flip.weakest(llr, 5, j.lim.depth, limit), r.bits, limit, keep)
	mask, cost, ok := j.flip.search(modes.Remainder(hard[:r.bits/8])&keep, limit)
	if !ok {
		return false
	}
	j.flip.apply(&hard, mask)
	flips := bits.OnesCount32(mask) + bits.OnesCount32(wrong)
	if df == 11 {
		f := modes.Frame{Bits: shortBits, Data: hard, Time12: j.frame.Time12}
		if !j.code(r, &f) {
			return false
		}
		hard, flips = f.Data, flips+int(f.Repaired)
	}
	if flips == 0 {
		return false
	}
	r.flipped, r.flips, r.cost = hard, flips, cost+bestCost
	return true
}

// searchParity is for replies whose parity holds the address.
func (j *judge) searchParity(r *reading, hard [14]byte) bool {
	limit := parityScore + r.lnQ - j.crowd() - replyScore
	if limit <= 0 || !r.quiet {
		return false
	}
	j.flip.prepare(j.flip.weakest(r.llr[:r.bits], 0, j.lim.depth, limit), r.bits, limit, wholeParity)
	remainder := modes.Remainder(hard[:r.bits/8])
	var mask uint32
	found := false
	for i := range j.heard {
		a := j.heard[i].address
		if m, c, ok := j.flip.search(remainder^a, limit); ok && j.filter.Seen(a, j.frame.Time12) {
			mask, limit, found = m, c, true
		}
	}
	if !found || mask == 0 {
		return false
	}
	j.flip.apply(&hard, mask)
	if !isReply(hard[0]>>3, r.bits) {
		return false
	}
	r.flipped, r.flips, r.cost = hard, bits.OnesCount32(mask), limit
	return true
}

// emit hands a frame over unless it is one that was handed over already.
func (j *judge) emit(f *modes.Frame, start int64, emit func(*modes.Frame)) {
	for i := range j.last {
		l := &j.last[i]
		if l.frame.Data == f.Data && l.frame.Bits == f.Bits &&
			max(l.start-start, start-l.start) <= samePlace*subPhases {
			j.stats.Duplicates++
			return
		}
	}
	j.last[j.nextLast] = mark{*f, start}
	j.nextLast = (j.nextLast + 1) % recent
	j.stats.Frames++
	if f.Repaired > 0 {
		j.stats.Repaired++
	}
	emit(f)
}
