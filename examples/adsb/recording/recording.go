// Package recording holds the samples that examples/adsb and examples/tour
// decode when they are given nothing else: frames that were really on the air
// (frames.txt), put on the air again by modes/synth, with noise, carrier
// offsets and strengths as in a receiver of a few dollars.
//
// To make recording.uc8 anew:
//
//	go test ./examples/adsb/recording -update
package recording

import _ "embed"

// UC8 holds samples as an RTL-SDR delivers them: pairs of unsigned bytes, I
// before Q, zero at 127.4.
//
//go:embed recording.uc8
var UC8 []byte

// Rate is the sample rate of UC8.
const Rate = 2_400_000

// Frames lists the frames that UC8 holds, as hexadecimal digits, one a line,
// with comments.
//
//go:embed frames.txt
var Frames string
