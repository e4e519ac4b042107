package synth

import (
	"math"
	"math/rand/v2"
)

// NoiseLSB is the standard deviation of the noise in I and in Q that a
// Scenario adds, in steps of an 8-bit sample (1/128 of full scale).
const NoiseLSB = 6

// A Scenario describes a test recording: how many replies, how strong, and
// what the transponders and the receiver do to them. The zero value of each
// field is the plain case.
type Scenario struct {
	// Rate is in samples per second, 0 for 2.4 million. The recording is about
	// 0.35 ms long for each message, 0.6 ms for each overlapping pair.
	Rate float64
	// Messages is the number of replies, or of pairs where Overlap is set.
	Messages int
	// SNR is the pulse power over the noise power in the sampled band, in dB.
	SNR float64
	// OffsetHz is the largest carrier offset; each reply gets one from
	// -OffsetHz to OffsetHz. Zero means 100 kHz, a negative value none.
	OffsetHz float64
	// Seed starts the random numbers.
	Seed uint64
	// Addresses is the number of aircraft, 0 for 50.
	Addresses int
	// Kind chooses the contents.
	Kind Kind

	// Overlap adds to each reply a second one from another aircraft, its
	// amplitude OverlapDB lower, that starts up to 115 us before or after it.
	Overlap   bool
	OverlapDB float64
	// BandwidthHz is the cut-off of the low-pass, 0 for DefaultBandwidth.
	BandwidthHz float64
	// MultipathDB, where not zero, adds a copy of each reply that many dB
	// weaker, 1 to 3 us late and with a random phase.
	MultipathDB float64
	// DroopDB is the loss of pulse amplitude over a long reply, see [Signal].
	DroopDB float64
	// DC is a constant added to all samples; 1.0 is full scale.
	DC complex64
	// GainDB and Skew (radians) are the I/Q imbalance, see [Air.Imbalance].
	GainDB, Skew float64
	// Drop, where not zero, removes one buffer of that many samples after
	// each ten times as many.
	Drop int
	// Scale multiplies signal and noise, 0 for 1: above it strong signals clip.
	Scale float64
}

// Kind says which replies a scenario sends.
type Kind uint8

// Kinds of replies.
const (
	// Squitters are airborne positions (DF17), random but for type code 11.
	Squitters Kind = iota
	// AllCalls are DF11 with interrogator code 0, each of another aircraft.
	AllCalls
	// ShortReplies are DF0, DF4 and DF5 in turn, each aircraft's first
	// message a DF17 at 20 dB.
	ShortReplies
	// LongReplies are DF20 and DF21 in turn, each aircraft's first message
	// a DF17 at 20 dB.
	LongReplies
	// KnownAllCalls are DF11 with any interrogator code, each aircraft's first
	// message a DF17 at 20 dB.
	KnownAllCalls
)

// A Sent is one reply of a recording.
type Sent struct {
	// Frame holds the reply's bytes.
	Frame []byte
	// Start is the time of its first pulse in seconds from the first sample.
	Start float64
	// Weak marks the second reply of an overlapping pair.
	Weak bool
	// Seed marks the strong squitters that make addresses known, Damaged those
	// replies that lost a part to Drop: neither is to be counted, but to find
	// them is no mistake.
	Seed, Damaged bool
}

// A Recording is what [Scenario.Make] returns: samples and what they hold.
type Recording struct {
	IQ   []complex64 // at Scenario.Rate, full scale 1.0
	Sent []Sent      // all replies, those of known addresses first
}

// Make returns the recording. Replies follow each other 250 to 450 us after
// the start of the one before, 500 to 700 us with Overlap, so that without it
// none meets another.
func (s Scenario) Make() Recording {
	if s.Rate == 0 {
		s.Rate = 2.4e6
	}
	if s.OffsetHz == 0 {
		s.OffsetHz = 100e3
	}
	s.OffsetHz = math.Max(0, s.OffsetHz)
	if s.Addresses == 0 {
		s.Addresses = 50
	}
	if s.Scale == 0 {
		s.Scale = 1
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0x1090))
	aircraft := make([]uint32, s.Addresses)
	for i := range aircraft {
		aircraft[i] = 0x400000 + rng.Uint32N(0x400000)
	}
	const noise = NoiseLSB / 128.0
	amplitude := func(snr float64) float64 { return noise * math.Sqrt2 * math.Pow(10, snr/20) }

	var signals []Signal
	var rec Recording
	send := func(frame []byte, at, amp float64, weak, seed bool) {
		sig := Signal{Frame: frame, Start: at, Amplitude: amp, Phase: 2 * math.Pi * rng.Float64(),
			OffsetHz: s.OffsetHz * (2*rng.Float64() - 1), DroopDB: s.DroopDB, BandwidthHz: s.BandwidthHz}
		signals = append(signals, sig)
		rec.Sent = append(rec.Sent, Sent{Frame: frame, Start: at, Weak: weak, Seed: seed})
		if s.MultipathDB != 0 {
			sig.Start += 1e-6 + 2e-6*rng.Float64()
			sig.Amplitude *= math.Pow(10, -s.MultipathDB/20)
			sig.Phase = 2 * math.Pi * rng.Float64()
			signals = append(signals, sig)
		}
	}
	at := 100e-6
	next := func() float64 {
		t := at
		at += 250e-6 + 200e-6*rng.Float64()
		if s.Overlap {
			at += 250e-6
		}
		return t
	}
	if s.Kind >= ShortReplies {
		for _, a := range aircraft {
			f := Squitter(a, 5, randomME(rng))
			send(f[:], next(), amplitude(20), false, true)
		}
	}
	for i := range s.Messages {
		t := next()
		if s.Overlap {
			t += 120e-6
		}
		send(s.frame(i, aircraft[i%len(aircraft)], rng), t, amplitude(s.SNR), false, false)
		if s.Overlap {
			j := i + len(aircraft)/2
			send(s.frame(j, aircraft[j%len(aircraft)], rng), t+115e-6*(2*rng.Float64()-1),
				amplitude(s.SNR-s.OverlapDB), true, false)
		}
	}
	air := NewAir(s.Rate, int(at*s.Rate))
	for _, sig := range signals {
		air.Add(sig)
	}
	air.Noise(rng, noise)
	if s.GainDB != 0 || s.Skew != 0 {
		air.Imbalance(s.GainDB, s.Skew)
	}
	air.Offset(s.DC)
	if s.Scale != 1 {
		for i := range air.IQ {
			air.IQ[i] *= complex(float32(s.Scale), 0)
		}
	}
	if s.Drop > 0 {
		air.drop(s.Drop, &rec)
	}
	rec.IQ = air.IQ
	return rec
}

// drop removes one buffer of n samples out of each eleven, and marks every
// reply that lost a part.
func (a *Air) drop(n int, rec *Recording) {
	for i := range rec.Sent {
		s := &rec.Sent[i]
		first := int(s.Start * a.Rate)
		last := int((s.Start + 8e-6 + float64(8*len(s.Frame))*1e-6) * a.Rate)
		period := 11 * n
		s.Damaged = first/period != last/period || last%period >= 10*n
		s.Start -= float64(first/period*n) / a.Rate
	}
	out := a.IQ[:0]
	for i := 0; i < len(a.IQ); i += 11 * n {
		out = append(out, a.IQ[i:min(i+10*n, len(a.IQ))]...)
	}
	a.IQ = out
}

func randomME(rng *rand.Rand) (me [7]byte) {
	for i := range me {
		me[i] = byte(rng.Uint32())
	}
	me[0] = 11<<3 | me[0]&7
	return me
}

// frame returns the i-th reply of a scenario.
func (s Scenario) frame(i int, address uint32, rng *rand.Rand) []byte {
	switch s.Kind {
	case AllCalls:
		f := AllCall(0x400000+rng.Uint32N(0x400000), uint8(rng.Uint32N(4)+4), 0)
		return f[:]
	case KnownAllCalls:
		code := rng.Uint32N(79) // II 0 to 15, then SI 1 to 63
		if code > 15 {
			code++
		}
		f := AllCall(address, uint8(rng.Uint32N(8)), uint8(code))
		return f[:]
	case ShortReplies:
		f := ShortReply(address, [3]uint8{0, 4, 5}[i%3], rng.Uint32())
		return f[:]
	case LongReplies:
		var mb [7]byte
		for j := range mb {
			mb[j] = byte(rng.Uint32())
		}
		f := LongReply(address, [2]uint8{20, 21}[i%2], rng.Uint32(), mb)
		return f[:]
	}
	f := Squitter(address, 5, randomME(rng))
	return f[:]
}
