package demod

import "signalbox.example/modes"

// Stats counts what came in, where candidates ended, and what was made of
// them. All counters only grow. They add up:
//
//	Preambles = Covered + Shape + Data + Candidates
//	Candidates + Scanned + Twice = Contrast + Format + Short + Again + Errors + readings
//	readings = Frames + Duplicates + Elsewhere + the sum of Reasons
type Stats struct {
	// Samples came in; Blocks of them were searched.
	Samples, Blocks uint64

	// Preambles is the number of times the gate found the energy of four
	// preamble pulses, inside a frame that is certain twice the energy of
	// its own.
	Preambles uint64
	// Covered: what is left of a frame that was subtracted.
	Covered uint64
	// Shape: pulses where the preamble has none, or more than one missing.
	Shape uint64
	// Data: no pulse-position contrast in the first 24 bits.
	Data uint64
	// Candidates passed the tests of preamble and first bits.
	Candidates uint64
	// Scanned candidates were found by their bits, without a preamble
	// (EffortMax).
	Scanned uint64
	// Contrast: not enough of it over 56 bits.
	Contrast uint64
	// Format: the first five bits are far from any downlink format in use.
	Format uint64
	// Twice counts candidates that were tried as a short and as a long frame.
	Twice uint64
	// Short: the signal does not last to the end of the frame.
	Short uint64
	// Again: a neighbouring candidate led to the same place already.
	Again uint64
	// Refined: timing and carrier were measured and the matched filter
	// applied.
	Refined uint64
	// Errors: given up, too many bits are expected to be wrong.
	Errors uint64

	// Energy, Matched, Trellis, Learnt and Flipped count the frames whose
	// parity fitted after hard decisions on the energies, behind the matched
	// filter, after the trellis, after the trellis with the frame's own pulse
	// shape, and after flipping the least reliable bits.
	Energy, Matched, Trellis, Learnt, Flipped uint64

	// Subtracted frames were taken out of the samples to find what they hid
	// (EffortMax).
	Subtracted uint64

	// Frames were handed over, Repaired of them with flipped bits.
	Frames, Repaired uint64
	// Elsewhere counts readings that belong to a neighbouring block or were
	// read again after a subtraction.
	Elsewhere uint64
	// ModeAC replies were found.
	ModeAC uint64
	// Duplicates of a frame at the same place were dropped.
	Duplicates uint64
	// Reasons counts readings that ended in no frame, by the [modes.Reason]
	// that rejected their last hard decision.
	Reasons [modes.NumReasons]uint64
}

// add adds the counters of the signal part.
func (s *Stats) add(o *Stats) {
	s.Samples += o.Samples
	s.Blocks += o.Blocks
	s.Preambles += o.Preambles
	s.Covered += o.Covered
	s.Shape += o.Shape
	s.Data += o.Data
	s.Candidates += o.Candidates
	s.Contrast += o.Contrast
	s.Format += o.Format
	s.Scanned += o.Scanned
	s.Twice += o.Twice
	s.Short += o.Short
	s.Again += o.Again
	s.Refined += o.Refined
	s.Errors += o.Errors
	s.Energy += o.Energy
	s.Matched += o.Matched
	s.Trellis += o.Trellis
	s.Subtracted += o.Subtracted
	s.Learnt += o.Learnt
	s.Flipped += o.Flipped
}
