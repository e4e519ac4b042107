package demod_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
	"signalbox.example/modes"
	"signalbox.example/modes/demod"
)

// rightParity reports whether a frame's parity is right for its kind, given
// all addresses that may be known.
func rightParity(f *modes.Frame, known map[uint32]bool) bool {
	r := f.Remainder()
	switch f.DF() {
	case 17, 18:
		return f.Bits == 112 && r == 0
	case 11:
		return f.Bits == 56 && r < 0x80
	case 0, 4, 5:
		return f.Bits == 56 && known[r]
	case 16, 20, 21, 24:
		return f.Bits == 112 && known[r]
	}
	return false
}

func clearAddress(f *modes.Frame) uint32 {
	return uint32(f.Data[1])<<16 | uint32(f.Data[2])<<8 | uint32(f.Data[3])
}

// modes1.bin: a real recording of one aircraft at 2.0 Msps.
func TestModes1(t *testing.T) {
	iq := vectors.Read(t, "modes/modes1.bin")
	consensus := vectors.Lines(t, "modes/modes1.consensus2.hex")
	for _, c := range []struct {
		config          demod.Config
		messages, agree int
	}{
		{demod.Config{Repair: demod.RepairOne}, 350, 172},
		{demod.Config{Effort: demod.EffortFast}, 345, 168},
		{demod.Config{}, 355, 174},
		{demod.Config{Effort: demod.EffortMax}, 385, 182},
	} {
		c.config.Rate = 2_000_000
		got := frames(t, c.config, iq, nil)
		distinct := map[string]bool{}
		known := map[uint32]bool{0x4d2023: true}
		for i := range got {
			distinct[hex.EncodeToString(got[i].Bytes())] = true
			if !rightParity(&got[i], known) {
				t.Errorf("%+v: %x is not right", c.config, got[i].Bytes())
			}
		}
		agree := 0
		for _, h := range consensus {
			if distinct[h] {
				agree++
			}
		}
		t.Logf("effort %v, repair %d: %d messages, %d distinct, %d of %d agreed", c.config.Effort, c.config.Repair, len(got), len(distinct), agree, len(consensus))
		if len(got) < c.messages || agree < c.agree {
			t.Errorf("%+v: %d messages, want %d; %d agreed frames, want %d", c.config, len(got), c.messages, agree, c.agree)
		}
	}
}

// Three real recordings at 2.4 Msps. agreed are the frames that three other
// receivers find; more are those that this one finds as well.
var captures = []struct {
	name         string
	agreed, more string
}{
	{"test_1641427457780", "8dad929358b9c6273f002169c02e 8daa2bc4f82100020049b8db9449 02e1971ce17c84 8da0aaa058bf163fcf860013e840",
		"8dab1db2990ca52e1804acba05ad 8dabc329990c0e162070978021db 5dacf497096899 8dacf497582b76194ee8aef76714 8dacf497990cb790b098954cda65"},
	{"test_1641428106243", "8da8aac8990c30b51808aa24e573 02e19838bff1d9 8dada6b9990cf61e4848af2a8656 8da4ba025885462008fa0a4a6eb2 8da70bd158b99203f07f5b00f2ac 8da4ba0299115f301074a72db6ff",
		"8dad2ea4990c8629b844a0d5067f 02e192bed12058 8da6b87a58c3822188c513aa8ea1"},
	{"test_1641428165033", "8da79de99909932f780c9e2f2f8f 8dac04d358a7820a86ac3709e689 8dac04d3ea4288669b5c082751d4 8da79de958bdf59c85104874adad 5dad92936265f5",
		"5daa88d233905b 8da4fd6f9909ea203804b01b9649 5da70bd17359a0"},
}

func TestCaptures(t *testing.T) {
	for _, c := range captures {
		iq := vectors.Read(t, "modes/"+c.name+".iq")
		agreed, more := strings.Fields(c.agreed), strings.Fields(c.more)
		for _, effort := range efforts {
			got := frames(t, demod.Config{Format: demod.SC16, Effort: effort}, iq, nil)
			known := map[uint32]bool{}
			var found []string
			for i := range got {
				if df := got[i].DF(); df == 11 || df == 17 {
					known[clearAddress(&got[i])] = true
				}
			}
			for i := range got {
				f := &got[i]
				h := hex.EncodeToString(f.Bytes())
				found = append(found, h)
				if !rightParity(f, known) {
					t.Errorf("%s %v: parity of %s is wrong for its kind", c.name, effort, h)
				}
				if !slices.Contains(agreed, h) && !slices.Contains(more, h) {
					t.Errorf("%s %v: %s is not in the list (repaired %d, margin %.3f)", c.name, effort, h, f.Repaired, f.Margin)
				}
			}
			for _, h := range agreed {
				if !slices.Contains(found, h) && effort != demod.EffortFast {
					t.Errorf("%s %v: %s is missing", c.name, effort, h)
				}
			}
			t.Logf("%s %v: %d frames", c.name, effort, len(found))
		}
	}
}

// The recordings again with plain repair of one bit.
func TestCapturesRepairOne(t *testing.T) {
	// Of this reply's address only one squitter is heard, and with this
	// setting it is repaired, so it does not vouch for the address.
	const unheard = "02e1971ce17c84"
	for _, c := range captures {
		iq := vectors.Read(t, "modes/"+c.name+".iq")
		found := map[string]bool{unheard: true}
		for _, f := range frames(t, demod.Config{Format: demod.SC16, Repair: demod.RepairOne}, iq, nil) {
			found[hex.EncodeToString(f.Bytes())] = true
		}
		for _, h := range strings.Fields(c.agreed) {
			if !found[h] {
				t.Errorf("%s: %s is missing", c.name, h)
			}
		}
	}
}
