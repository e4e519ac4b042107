// Package track keeps a table of the aircraft that are heard: it puts their
// messages together, finds positions, ages what is old, and writes the table
// for people and as aircraft.json.
//
//	t := track.New(track.Config{})
//	for f := range frames {
//		a, changes, reason := t.Update(f, time.Now())
//		if reason == modes.Accepted && changes.Has(track.Position) {
//			fmt.Println(a.Address, a.Position.V)
//		}
//	}
//	t.WriteTable(os.Stdout, time.Now())
//
// A position comes from an even and an odd message that lie close in time, and
// from one message once the aircraft's place is known. Surface positions need
// to know the part of the world: the aircraft's last airborne position or
// [Config.Reference]. A position must be within range of the receiver and
// within reach of the last one; three in a row that agree with each other but
// not with the last one replace it. Altitude and squawk from replies whose
// only protection is a known address must be plausible or come twice.
//
// Values have a source: what an aircraft says of itself (ADS-B) is not
// overwritten by rebroadcasts (ADS-R), radar (TIS-B) or replies (Mode S)
// for 15 s. A [Field] holds a value with its source and time; [Field.Fresh]
// leaves out what is too old.
//
// # Units and byte order
//
// Feet, knots, feet a minute, degrees and nautical miles. Times are given by
// the caller, so that a recording replays as it happened.
//
// # Errors
//
// Only writing fails, with the error of the file or writer. A frame that is
// not believed is a [modes.Reason].
//
// # Concurrency
//
// A Tracker and the aircraft in it belong to one goroutine at a time.
//
// # Specifications
//
//   - RTCA DO-260B appendix A.1.7 (CPR), section 2.2.10 (surveillance processing)
//   - aircraft.json: README-json.md of readsb and tar1090
package track
