package demod

import (
	"math"

	"signalbox.example/modes"
)

// A held frame was repaired, is not certain enough by itself and of an
// unknown address.
type held struct {
	frame modes.Frame
	start int64
}

const (
	heldFrames = 64
	recent     = 16
	// samePlace and otherPlace, in samples: a frame that close to another
	// with the same bits is the same frame; one that far away is another
	// reception.
	samePlace  = 12
	otherPlace = 600
)

// A judge decides which readings are frames. It sees them in the order of
// the stream and is the only one to know addresses.
type judge struct {
	t      *template
	filter *modes.AddressFilter
	repair Repair
	stats  *Stats

	held     [heldFrames]held
	nextHeld int
	last     [recent]held
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
	rate := int64(j.t.rate)
	t := (start*12_000_000+subPhases*rate/2)/(subPhases*rate) - edge
	return uint64(max(t, 0))
}

func (j *judge) reading(r *reading, emit func(*modes.Frame)) {
	f := &j.frame
	*f = modes.Frame{
		Time12: j.ticks(r.start), HasTime: true,
		Signal: float32(10 * math.Log10(float64(min(max(r.level, 1e-20), 1)))), HasSignal: true,
		Bits: uint8(r.bits),
	}
	reason := modes.Accepted
	for i := range r.nHard {
		f.Data, f.Margin = r.hard[i], r.margin[i]
		if reason = j.filter.Match(f, f.Time12); reason == modes.Accepted {
			j.filter.Learn(f, f.Time12)
			j.emit(f, r.start, emit)
			return
		}
	}
	switch j.repair {
	case RepairOne, RepairTwo:
		n, ok := modes.Repair(f.Bytes(), int(j.repair-RepairOne)+1)
		if ok && n > 0 {
			f.Repaired = uint8(n)
			f.Margin = -f.Margin
			if reason = j.filter.Match(f, f.Time12); reason == modes.Accepted {
				j.emit(f, r.start, emit)
				return
			}
		}
	case RepairSoft:
		if r.flips > 0 {
			if j.soft(r, f, emit) {
				return
			}
			reason = modes.RejectedRepair
		}
	}
	j.stats.Reasons[reason]++
}

// known reports whether the address of a frame with fitting parity was heard.
func (j *judge) known(f *modes.Frame) bool {
	repaired := f.Repaired
	f.Repaired = 2 // asks for a known address
	ok := j.filter.Match(f, f.Time12) == modes.Accepted
	f.Repaired = repaired
	return ok
}

// soft judges a repaired squitter.
func (j *judge) soft(r *reading, f *modes.Frame, emit func(*modes.Frame)) bool {
	f.Data, f.Repaired = r.flipped, uint8(r.flips)
	var sum float32
	for _, l := range r.llr[:r.bits] {
		sum += abs32(l)
	}
	f.Margin = -r.cost * float32(r.bits) / max(sum, 1e-20) / float32(r.flips)
	if j.known(f) || certain(r.flips, r.cost) {
		j.emit(f, r.start, emit)
		return true
	}
	// Two frames of one address, received apart from each other, vouch for
	// each other.
	address := f.Data[1:4]
	for i := range j.held {
		h := &j.held[i]
		if h.frame.Bits == 0 || [3]byte(h.frame.Data[1:4]) != [3]byte(address) ||
			r.start-h.start < otherPlace*subPhases ||
			f.Time12-h.frame.Time12 > 60*modes.TicksPerSecond {
			continue
		}
		second := *f
		*f = h.frame
		h.frame.Bits = 0
		j.stats.Confirmed++
		j.filter.Add(uint32(address[0])<<16|uint32(address[1])<<8|uint32(address[2]), second.Time12)
		j.emit(f, h.start, emit)
		*f = second
		j.emit(f, r.start, emit)
		return true
	}
	j.stats.Held++
	j.held[j.nextHeld] = held{*f, r.start}
	j.nextHeld = (j.nextHeld + 1) % heldFrames
	return false
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
	j.last[j.nextLast] = held{*f, start}
	j.nextLast = (j.nextLast + 1) % recent
	j.stats.Frames++
	if f.Repaired > 0 {
		j.stats.Repaired++
	}
	emit(f)
}
