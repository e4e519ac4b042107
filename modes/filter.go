package modes

import (
	"sync/atomic"
	"time"
)

// TicksPerSecond is the rate of [Frame.Time12].
const TicksPerSecond = 12_000_000

// Reason says why a frame was accepted or rejected. The zero value is
// Accepted.
type Reason uint8

// Reasons, with the text that [Reason.String] returns.
const (
	// Accepted: the frame is good ("accepted").
	Accepted Reason = iota
	// RejectedLength: not 56 or 112 bits, or the wrong one of the two for
	// the format ("length").
	RejectedLength
	// RejectedFormat: a downlink format that is not in use ("format").
	RejectedFormat
	// RejectedParity: the parity does not fit ("parity").
	RejectedParity
	// RejectedAddress: parity and address are one, and no clean frame of
	// that address was heard lately, or the address is 000000 or ffffff
	// ("address").
	RejectedAddress
	// RejectedCode: an all-call reply to an interrogator code of an address
	// not heard lately, or a code that does not exist ("code").
	RejectedCode
	// RejectedRepair: a repaired frame of a kind that may not be repaired,
	// or of an address not heard lately ("repair").
	RejectedRepair

	// NumReasons is the number of reasons, the length of an array of counters
	// by reason.
	NumReasons = iota
)

// String returns the one word that is given with each constant.
func (r Reason) String() string {
	switch r {
	case Accepted:
		return "accepted"
	case RejectedLength:
		return "length"
	case RejectedFormat:
		return "format"
	case RejectedParity:
		return "parity"
	case RejectedAddress:
		return "address"
	case RejectedCode:
		return "code"
	case RejectedRepair:
		return "repair"
	}
	return "unknown"
}

// The filter is a table of sets of ways entries; an address lives in the set
// that its hash names. An entry is one word so that receivers in several
// goroutines share a filter without a lock:
//
//	63      39 38         0
//	[key: 25 ][time/4096: 39]   4,096 ticks are a third of a millisecond
//
// Zero is empty; forever in the time field never expires. Times go round in
// almost six years, so that any clock will do.
const (
	filterWays = 8
	filterSets = 2048
	timeShift  = 12
	timeBits   = 39
	forever    = 1<<timeBits - 1
)

// An AddressFilter remembers the addresses of frames whose parity vouched for
// them, for a while. Frames with address parity, whose every bit pattern is
// right for some address, are accepted only for those.
//
// The now of its methods is a time in ticks of 12 MHz, on a clock that all
// callers share: [Frame.Time12] where frames have one, otherwise one of the
// program, Unix time for example. The filter keeps it in steps of 4,096 ticks, a
// third of a millisecond, and modulo 2^51 ticks, almost six years.
//
// It holds up to 16,384 addresses, in sets of eight by a hash of the address,
// in 128 KiB. A new address in a full set displaces the oldest one there. Its
// methods allocate nothing and are safe for concurrent use, so several
// receivers with a common clock may share one. The zero value is ready, with
// the default window of 60 s. It must not be copied after first use.
type AddressFilter struct {
	_      noCopy
	window uint64 // in units of 4,096 ticks; 0 is the default
	sets   [filterSets][filterWays]atomic.Uint64
}

// noCopy makes vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// NewAddressFilter returns an empty filter that forgets an address when no
// clean frame has come from it for the window; 0 or less means 60 s.
func NewAddressFilter(window time.Duration) *AddressFilter {
	f := new(AddressFilter)
	if window > 0 {
		f.window = max(1, min(uint64(window)/1000*12>>timeShift, forever/2))
	}
	return f
}

func filterEntry(key uint32, now uint64) uint64 {
	t := now >> timeShift & forever
	if t == forever {
		t--
	}
	return uint64(key)<<timeBits | t
}

func (a *AddressFilter) set(key uint32) *[filterWays]atomic.Uint64 {
	return &a.sets[key*0x9E3779B1>>(32-11)]
}

// fresh reports whether an entry is younger than the window. Streams that
// start again (a file that is played twice) make entries from the future:
// those count by their distance too.
func (a *AddressFilter) fresh(entry, now uint64) bool {
	t := entry & forever
	if t == forever {
		return true
	}
	age := (now>>timeShift - t) & forever
	if age > forever/2 {
		age = forever + 1 - age
	}
	w := a.window
	if w == 0 {
		w = 60 * TicksPerSecond >> timeShift
	}
	return age <= w
}

func possibleAddress(addr uint32) bool {
	return addr&0xFFFFFF != 0 && addr&0xFFFFFF != 0xFFFFFF
}

// Seen reports whether the address was added within the window before now or,
// where a stream has begun again, behind it. addr is a 24-bit
// ICAO address or an [Address.Key].
func (a *AddressFilter) Seen(addr uint32, now uint64) bool {
	for i := range a.set(addr) {
		e := a.set(addr)[i].Load()
		if uint32(e>>timeBits) == addr && e != 0 {
			return a.fresh(e, now)
		}
	}
	return false
}

// Add notes that a clean frame of the address came at now. addr is a 24-bit
// ICAO address or an [Address.Key]. Addresses 000000 and ffffff, which no
// aircraft has, are ignored.
func (a *AddressFilter) Add(addr uint32, now uint64) { a.put(addr, filterEntry(addr, now)) }

// AddKnown notes an address that is taken as seen forever. At most eight such
// addresses fit in one set; a ninth displaces one of them.
func (a *AddressFilter) AddKnown(addr uint32) {
	a.put(addr, uint64(addr)<<timeBits|forever)
}

func (a *AddressFilter) put(addr uint32, entry uint64) {
	if !possibleAddress(addr) {
		return
	}
	// Another goroutine may take the way that was chosen: then choose again.
	for range 4 {
		way, old, keep := a.choose(addr, entry)
		if keep || way.CompareAndSwap(old, entry) {
			return
		}
	}
}

// choose returns the way of addr's set that an entry goes to, with what it
// holds now: addr's own, an empty one, or the oldest. keep is true when the set
// must stay as it is.
func (a *AddressFilter) choose(addr uint32, entry uint64) (way *atomic.Uint64, old uint64, keep bool) {
	set := a.set(addr)
	way, old = &set[0], set[0].Load()
	for i := range set {
		e := set[i].Load()
		if e != 0 && uint32(e>>timeBits) == addr {
			return &set[i], e, e&forever == forever
		}
		if old != 0 && (e == 0 || age(entry, e) > age(entry, old)) {
			way, old = &set[i], e
		}
	}
	// Where every way holds an address known forever there is no room for others.
	return way, old, old != 0 && old&forever == forever && entry&forever != forever
}

// age returns how much older than the entry now is the entry e, -1 for one that
// never expires.
func age(now, e uint64) int64 {
	if e&forever == forever {
		return -1
	}
	return int64((now - e) & forever)
}

// Reset forgets every address, those known forever too.
func (a *AddressFilter) Reset() {
	for i := range a.sets {
		for j := range a.sets[i] {
			a.sets[i][j].Store(0)
		}
	}
}

// validCode reports whether an interrogator code exists: CL 0 with II 0-15,
// or CL 1 to 4 with SI 1-63. Annex 10 volume IV section 3.1.2.5.2.1.2.
func validCode(r uint32) bool { return r < 0x50 && r != 0x10 }

// Match says whether a frame is to be believed at the time now. It changes
// neither the filter nor the frame; see [AddressFilter.Learn]. The rules:
//
//   - DF17, DF18: remainder 0. With one repaired bit too; with more only when
//     the address is known.
//   - DF11: the upper 17 bits of the remainder 0. With interrogator code 0,
//     or, when the address is known, any code that exists. Repaired (one bit,
//     code 0) only when the address is known.
//   - DF0, 4, 5, 16, 20, 21, 24: the remainder is a known address and nothing
//     was repaired.
//   - other formats: never.
//
// Addresses 000000 and ffffff are never right.
func (a *AddressFilter) Match(f *Frame, now uint64) Reason {
	df := f.DF()
	if long := df >= 16; f.Bits != 56 && f.Bits != 112 || long != (f.Bits == 112) {
		return RejectedLength
	}
	switch df {
	case 17, 18:
		if f.Remainder() != 0 {
			return RejectedParity
		}
		addr := f.claimedAddress()
		if !possibleAddress(addr.Value) {
			return RejectedAddress
		}
		if f.Repaired > 1 && !a.Seen(addr.Key(), now) {
			return RejectedRepair
		}
		return Accepted
	case 11:
		r := f.Remainder()
		if r&^0x7F != 0 {
			return RejectedParity
		}
		addr := f.claimedAddress().Value
		switch {
		case !possibleAddress(addr):
			return RejectedAddress
		case !validCode(r):
			return RejectedCode
		case f.Repaired > 1 || f.Repaired == 1 && (r != 0 || !a.Seen(addr, now)):
			return RejectedRepair
		case r != 0 && !a.Seen(addr, now):
			return RejectedCode
		}
		return Accepted
	case 0, 4, 5, 16, 20, 21, 24:
		if f.Repaired > 0 {
			return RejectedRepair
		}
		if r := f.Remainder(); !possibleAddress(r) || !a.Seen(r, now) {
			return RejectedAddress
		}
		return Accepted
	}
	return RejectedFormat
}

// Learn adds the address of a frame that vouches for it: a DF17, DF18 or DF11
// with remainder 0 of which nothing was repaired. Other frames teach nothing.
func (a *AddressFilter) Learn(f *Frame, now uint64) {
	switch df := f.DF(); {
	case f.Repaired > 0:
	case df == 11 && f.Bits == 56, (df == 17 || df == 18) && f.Bits == 112:
		if f.Remainder() == 0 {
			a.Add(f.claimedAddress().Key(), now)
		}
	}
}

// Accept is [AddressFilter.Match] followed, for an accepted frame, by
// [AddressFilter.Learn].
func (a *AddressFilter) Accept(f *Frame, now uint64) Reason {
	r := a.Match(f, now)
	if r == Accepted {
		a.Learn(f, now)
	}
	return r
}
