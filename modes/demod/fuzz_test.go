package demod_test

import (
	"slices"
	"testing"

	"signalbox.example/modes"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

// FuzzProcess feeds any bytes in any pieces in any configuration: nothing may
// panic, every frame must have parity that fits its kind or name an address,
// and the pieces must not matter.
func FuzzProcess(f *testing.F) {
	rec := synth.Scenario{Messages: 4, SNR: 15, Seed: 1}.Make()
	for format, write := range []func([]byte, []complex64) []byte{
		synth.AppendUC8, synth.AppendCS8, synth.AppendSC16, synth.AppendSC16Q11, synth.AppendCF32,
	} {
		f.Add(write(nil, rec.IQ[:2400]), uint8(format), uint8(format), uint16(777))
		f.Add(write(nil, rec.IQ[:700]), uint8(format), uint8(128+format), uint16(1))
	}
	f.Fuzz(func(t *testing.T, iq []byte, format, mode uint8, piece uint16) {
		if len(iq) > 1<<17 {
			iq = iq[:1<<17]
		}
		c := demod.Config{
			Format: demod.Format(format % 5),
			Rate:   []int{2_400_000, 2_000_000, 2_048_000, 6_000_000}[mode&3],
			Effort: demod.Effort(mode >> 2 % 3), Repair: demod.Repair(mode >> 4 & 3),
			ModeAC: mode&64 != 0,
		}
		whole := frames(t, c, iq, nil)
		for i := range whole {
			fr := &whole[i]
			if fr.Bits != 56 && fr.Bits != 112 || !fr.HasTime || !fr.HasSignal || fr.Signal > 0 || fr.Signal != fr.Signal || fr.Margin != fr.Margin {
				t.Fatalf("frame %+v", fr)
			}
			if df := fr.DF(); (df == 17 || df == 18) && modes.Remainder(fr.Bytes()) != 0 {
				t.Fatalf("DF%d with remainder %06x", df, fr.Remainder())
			}
		}
		n := int(piece)%5000 + 1
		if pieces := frames(t, c, iq, func() int { return n }); !slices.Equal(pieces, whole) {
			t.Fatalf("%d frames in pieces of %d, %d in one", len(pieces), n, len(whole))
		}
	})
}
