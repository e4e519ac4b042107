package demod

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// dump1090 runs dump1090-mutability on a file of UC8 samples at 2.4 Msps and
// returns the frames it prints and the processor time it took.
func dump1090(program, file string) (frames [][]byte, cpu time.Duration, err error) {
	cmd := exec.Command(program, "--ifile", file, "--iformat", "UC8", "--raw", "--fix")
	raw, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("dump1090-mutability: %w", err)
	}
	for line := range bytes.Lines(raw) {
		h := strings.TrimSuffix(strings.TrimPrefix(string(bytes.TrimSpace(line)), "*"), ";")
		if f, err := hex.DecodeString(h); err == nil && (len(f) == 7 || len(f) == 14) {
			frames = append(frames, f)
		}
	}
	return frames, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
