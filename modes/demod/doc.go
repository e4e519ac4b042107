// Package demod finds Mode S replies in the samples of a receiver tuned to
// 1090 MHz: from IQ samples to frames of 56 and 112 bits, with their time,
// level and certainty. It decides each frame as a whole, by the carrier's phase
// and the parity, and so hears about 4 dB more than receivers that decide
// bit by bit on magnitudes; see modes/synth and examples/sensitivity for how
// that is measured.
//
//	d, err := demod.New(demod.Config{Format: demod.UC8, Rate: 2_400_000})
//	if err != nil { ... }
//	for f, err := range d.Frames(os.Stdin) {
//		if err != nil { ... }
//		fmt.Printf("%x at %d, %.1f dBFS, %d bits repaired\n", f.Bytes(), f.Time12, f.Signal, f.Repaired)
//	}
//
// A program with a loop of its own calls [Demodulator.Process] with each
// buffer, of any length, and [Demodulator.Flush] at the end.
//
// # The stages
//
// Samples pass these stages; whatever is not a reply leaves as early, that is
// as cheaply, as can be. [Stats] counts how many left where.
//
//	bytes of IQ
//	  | convert, resample      to 2.4 Msps, unless they come at 2.0 or 2.4
//	  | energies               I and Q through the pulse's shape, then squared, at half samples
//	  | noise level            from the quiet windows of each block
//	  | gate                   energy of four preamble pulses             -> Preambles
//	  | preamble               empty where it has no pulses               -> Shape
//	  | first 24 bits          one half of each full, the other empty     -> Data
//	  | L0  hard decisions     straight from the energies, parity         => frame (Energy)
//	  | length, format, doubt  no format in use, too short, too doubtful  -> Contrast, Format, Short, Errors
//	  | fine time, carrier     by all pulses; to a 20th of a sample
//	  | L1  matched filter     of the carrier's offset, parity            => frame (Matched)
//	  | coherent               frequency and phase from the frame itself
//	  | L2  trellis            leaks of neighbouring bits, parity         => frame (Trellis)
//	  | flips                  cheapest changes that fit the parity       => frame (Flipped)
//	  | L3  own shape          smear and echoes of this transmitter       => frame (Learnt, Flipped)
//	  | subtract (max)         take away what is certain, look again
//	  | bare (max)             heard aircraft whose preamble is damaged
//	  v
//	judge                      addresses, repairs for heard aircraft, duplicates -> Reasons
//
// What they cost and gain, for 2.4 Msps:
//
//   - The energies filter I and Q before squaring. Filtering magnitudes, as is
//     usual, loses about 2 dB. This, conversion and gate are all that noise
//     costs, 2 to 3 ns a sample on amd64. There, what takes the most time is in
//     SSE2, to the bit as in plain Go; the tag purego leaves the assembly out.
//   - The noise level is the 20th percentile over short windows: a mean or a
//     percentile of samples reads high in dense traffic and loses weak frames.
//   - The gate at 12 times the noise (15 for EffortFast) loses less than one
//     frame in 1,000 at 9 dB. The tests behind it leave one or two candidates of
//     10^8 noise samples.
//   - L0 ends 42 % of frames at 12 dB and 96 % at 20 dB, in half a
//     microsecond. L1 needs about 2 us more and ends another 43 % at 12 dB.
//   - The trellis (two states, max-log-MAP) undoes what bits half a
//     microsecond long do to each other at two samples a microsecond. It is
//     worth 1 dB at 2.4 Msps and 3 to 8 dB at 2.0 Msps, for 3 us a frame.
//   - Flips: all sets of the least reliable bits that fit the parity, by
//     meeting in the middle, the cheapest by likelihood. From 48 to 98 % of frames at 9 dB.
//     A set is believed by its score, the logarithm of the odds that it is
//     the truth; no count of bits, no list of patterns.
//   - An address that was heard makes 29 bits of a doubtful frame certain:
//     another 2 to 5 points at 8 dB. Replies with address parity are
//     repaired in this way too, with a higher score and only behind an empty preamble.
//   - The own shape, a least-squares fit of 15 taps to the frame's first
//     decisions, gains 1 to 2 dB where pulses are smeared or reflected, and
//     nothing, for 2 us, elsewhere.
//   - Subtraction (EffortMax) finds 96 of 100 replies under another 6 dB
//     stronger, where there was one. It costs 4 to 8 us a frame.
//   - Bare (EffortMax) costs nothing in noise and about 10 ns a sample in
//     dense traffic. In a real recording it adds a tenth of all frames.
//
// EffortFast has the same stages as EffortDefault: fewer candidates pass its gate
// and its preamble test, and its flips try 10 bits in place of 16 (EffortMax:
// 18). It is meant for small computers, EffortMax for the best result that a
// desktop delivers in real time. Measured yields and speeds are in bench, false
// frames in bench/demod of the repository.
//
// # Certainty
//
// Frame.Repaired is the number of bits that were changed; frames with
// Repaired 0 have the parity that their kind asks for as received.
// Frame.Margin is the smallest reliability of a bit over the mean: near 0 the
// frame was lucky, 0.5 is comfortable. Of a repaired frame it is negative: less
// the mean reliability of the changed bits over that of all, so that one
// threshold on Margin serves for both: -0.05 is a flip of bits that meant
// nothing, -0.5 one of bits that did. After repair by parity alone (RepairOne,
// RepairTwo) it is -1.
//
// Addresses become known by frames whose parity vouches for them, and by
// repaired ones only when their score is two more than is asked and no bit of
// the address was changed.
//
// In 10^8 samples of noise with 50 known addresses no effort finds a frame. Among
// frames accepted from signals of 7 to 20 dB one in 200,000 was not sent.
//
// # Units and byte order
//
// Samples are I before Q, 16-bit and longer ones little endian. Levels are
// dB relative to a pulse of full scale amplitude. Time12 counts 12 MHz from the
// first sample to the leading edge of the first preamble pulse; its error is
// about one tick at 10 dB. The clock goes on over [Demodulator.Flush]; samples
// that a driver drops must be counted by who knows of them.
//
// # Errors
//
// [New] returns [ErrFormat], [ErrRate] or [ErrConfig]. Process and Flush
// cannot fail: every byte string is a signal, however poor. Frames yields
// read errors, io.ErrNoProgress, and [ErrTruncated] when the input ends inside a sample.
//
// # Concurrency
//
// A Demodulator belongs to one goroutine at a time and shares nothing with
// others but Config.Filter, which is safe to share. It uses Config.Workers
// goroutines inside a call and none between calls; there is nothing to close.
// Results depend neither on how the bytes are cut into calls nor on the number
// of workers: blocks are at fixed places of the stream, workers do not
// know what others find, and one judge sees their readings in order. With one
// worker nothing is allocated for samples and frames.
//
// # Specifications
//
//  1. ICAO Annex 10 volume IV: 3.1.2.2 (waveform), 3.1.2.3.3 (parity),
//     3.1.1.6 (Mode A/C replies), 3.1.2.1.1 (carrier within 1 MHz).
//  2. RTCA DO-260B 2.2.4.4 (enhanced reception techniques), for comparison.
package demod
