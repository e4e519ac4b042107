package demod_test

import (
	"fmt"
	"iter"
	"os"
	"strconv"
	"testing"

	"signalbox.example/modes"
	"signalbox.example/modes/demod"
)

// countFrames yields a description of each frame that d finds in iq.
func countFrames(d *demod.Demodulator, iq []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		more := true
		d.Process(iq, func(f *modes.Frame) {
			more = more && yield(fmt.Sprintf("%x, %d repaired, at %d", f.Bytes(), f.Repaired, f.Time12))
		})
	}
}

// envInt returns the number in an environment variable, or otherwise.
func envInt(t testing.TB, name string, otherwise int) int {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a number", name, v)
	}
	return n
}
