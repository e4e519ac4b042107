package modes

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func hexFrame(t testing.TB, s string) Frame {
	t.Helper()
	f, err := ParseHex(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return f
}

func TestAddressFilterExpires(t *testing.T) {
	f := NewAddressFilter(10 * time.Second)
	const s = TicksPerSecond
	f.Add(0x4b1a2c, 100*s)
	for _, c := range []struct {
		addr uint32
		now  uint64
		want bool
	}{
		{0x4b1a2c, 100 * s, true},
		{0x4b1a2c, 109 * s, true},
		{0x4b1a2c, 111 * s, false},
		{0x4b1a2c, 95 * s, true}, // a stream that started again
		{0x4b1a2c, 5 * s, false},
		{0x4b1a2d, 100 * s, false},
		{0x4b1a2c | NonICAOKey, 100 * s, false},
		{0, 100 * s, false},
	} {
		if got := f.Seen(c.addr, c.now); got != c.want {
			t.Errorf("Seen(%06x, %d s) = %v", c.addr, c.now/s, got)
		}
	}
	f.AddKnown(0x406b90)
	f.Add(0x406b90, 1)
	if !f.Seen(0x406b90, 1<<62) {
		t.Error("an address known forever expired")
	}
	f.Add(0, 100*s)
	f.Add(0xffffff, 100*s)
	if f.Seen(0, 100*s) || f.Seen(0xffffff, 100*s) {
		t.Error("an impossible address was seen")
	}
	var zero AddressFilter
	zero.Add(1, 0)
	if !zero.Seen(1, 59*s) || zero.Seen(1, 61*s) {
		t.Error("the zero filter's window is not 60 s")
	}
	f.Reset()
	if f.Seen(0x406b90, 0) {
		t.Error("Reset forgot nothing")
	}
}

func TestAddressFilterIsBounded(t *testing.T) {
	f := NewAddressFilter(0)
	f.AddKnown(0x4b1a2c)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range uint64(60_000) {
		f.Add(r.Uint32()&0xFFFFFF, i)
	}
	f.Add(0x123456, 60_000)
	if !f.Seen(0x4b1a2c, 60_000) || !f.Seen(0x123456, 60_000) {
		t.Error("a flood of addresses displaced a known or the newest address")
	}
	if n := testing.AllocsPerRun(100, func() { f.Add(r.Uint32()&0xFFFFFF, 1); f.Seen(1, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMatchEveryFormat(t *testing.T) {
	const known, unknown = 0x4b1a2c, 0
	for _, c := range []struct {
		hex      string
		known    uint32
		repaired uint8
		want     Reason
	}{
		{"8d406b902015a678d4d220aa4bda", 0, 0, Accepted},
		{"8d406b902015a678d4d220aa4bda", 0, 1, Accepted},
		{"8d406b902015a678d4d220aa4bda", 0, 2, RejectedRepair},
		{"8d406b902015a678d4d220aa4bda", 0x406b90, 2, Accepted},
		{"8d406b902095a678d4d220aa4bda", 0x406b90, 0, RejectedParity},
		{"95c60bf13b4db286b30fc180d20d", 0, 0, Accepted},
		{"95c639eefbffffedd5fefbff4f6f", 0, 0, RejectedParity},
		{"5d4b1a2c1be761", 0, 0, Accepted},
		{"5d4b1a2c1be761", 0, 1, RejectedRepair},
		{"5d4b1a2c1be761", known, 1, Accepted},
		{"5d4b1a2c1be764", 0, 0, RejectedCode},
		{"5d4b1a2c1be764", known, 0, Accepted},
		{"5d4b1a2c1be764", known, 1, RejectedRepair},
		{"5d4b1a2c1be772", known, 0, Accepted},
		{"5d4b1a2c1be71e", known, 0, RejectedCode}, // 0x7f is no code
		{"5d4b1a2c1ae761", known, 0, RejectedParity},
		{"20000010cb9cab", 0, 0, RejectedAddress},
		{"20000010cb9cab", known, 0, Accepted},
		{"20000010cb9cab", known, 1, RejectedRepair},
		{"28000aaa01bee5", 0, 0, RejectedAddress},
		{"020007a0d08ff4", 0xab92a2, 0, Accepted},
		{"00000000000000", 0, 0, RejectedAddress},
		{"9d406b902015a678d4d220aa4bda", 0x406b90, 0, RejectedFormat}, // DF19
		{"08000000000000", 0, 0, RejectedFormat},
		{"8d406b902015a6", 0x406b90, 0, RejectedLength},
		{"280000000000000000000000aaaa", 0, 0, RejectedLength},
	} {
		f := hexFrame(t, c.hex)
		f.Repaired = c.repaired
		var a AddressFilter
		if c.known != 0 {
			a.Add(c.known, 0)
		}
		if got := a.Match(&f, 0); got != c.want {
			t.Errorf("%s, known %06x, repaired %d: %v, want %v", c.hex, c.known, c.repaired, got, c.want)
		}
	}
	var empty Frame
	if got := new(AddressFilter).Match(&empty, 0); got != RejectedLength {
		t.Errorf("empty frame: %v", got)
	}
}

func TestLearnOnlyFromCleanFrames(t *testing.T) {
	for _, c := range []struct {
		hex      string
		repaired uint8
		key      uint32
		want     bool
	}{
		{"8d406b902015a678d4d220aa4bda", 0, 0x406b90, true},
		{"8d406b902015a678d4d220aa4bda", 1, 0x406b90, false},
		{"5d4b1a2c1be761", 0, 0x4b1a2c, true},
		{"5d4b1a2c1be764", 0, 0x4b1a2c, false},
		{"95c60bf13b4db286b30fc180d20d", 0, 0xc60bf1, false},
		{"95c60bf13b4db286b30fc180d20d", 0, 0xc60bf1 | NonICAOKey, true},
		{"20000010cb9cab", 0, 0x4b1a2c, false},
	} {
		f := hexFrame(t, c.hex)
		f.Repaired = c.repaired
		var a AddressFilter
		a.Accept(&f, 7)
		if got := a.Seen(c.key, 7); got != c.want {
			t.Errorf("%s, repaired %d: %07x seen = %v", c.hex, c.repaired, c.key, got)
		}
	}
}

// TestFilterIsShared: receivers in several goroutines use one filter.
func TestFilterIsShared(t *testing.T) {
	var a AddressFilter
	a.AddKnown(0x123456)
	var wg sync.WaitGroup
	for g := range uint32(4) {
		wg.Go(func() {
			for i := range uint32(2000) {
				addr := 0x400000 + i%50*4 + g
				a.Add(addr, uint64(i))
				if !a.Seen(addr, uint64(i)) || !a.Seen(0x123456, uint64(i)) {
					t.Errorf("%06x was forgotten", addr)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestFilterByAnyClock: addresses are forgotten by whatever clock the caller
// has: one that began with the program, Unix time, or one whose numbers run
// over meanwhile.
func TestFilterByAnyClock(t *testing.T) {
	const minute = 60 * TicksPerSecond
	for name, start := range map[string]uint64{
		"from 0":           0,
		"Unix time":        1_796_100_000 * TicksPerSecond,
		"around 2^51":      1<<51 - minute/2,
		"around 2^64":      1<<64 - minute/2,
		"the last of 2^51": 1<<51 - 1,
	} {
		t.Run(name, func(t *testing.T) {
			var f AddressFilter
			f.Add(0xabcdef, start)
			for after, seen := range map[uint64]bool{0: true, 1: true, minute - TicksPerSecond: true, minute + TicksPerSecond: false, 48 * 60 * minute: false} {
				if got := f.Seen(0xabcdef, start+after); got != seen {
					t.Errorf("%d ticks later: %v", after, got)
				}
			}
			// A full set loses its oldest address.
			var same []uint32
			for a := uint32(1); len(same) <= filterWays; a++ {
				if f.set(a) == f.set(0x123456) {
					same = append(same, a)
				}
			}
			for i, a := range same {
				f.Add(a, start+uint64(i)*TicksPerSecond)
			}
			now := start + filterWays*TicksPerSecond
			for i, a := range same {
				if got := f.Seen(a, now); got != (i > 0) {
					t.Errorf("address %d of a set: %v", i, got)
				}
			}
		})
	}
}

// TestAltitudesOutOfRange: what the field cannot say is absent, however far out.
func TestAltitudesOutOfRange(t *testing.T) {
	for _, feet := range []int32{math.MinInt32, -1001, 50188, math.MaxInt32 - 1000, math.MaxInt32} {
		if c := EncodeAltitude(feet); c != 0 {
			t.Errorf("%d ft: %#x", feet, c)
		}
	}
}
