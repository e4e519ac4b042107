//go:build !linux

package guest

import (
	"os"
	"testing"

	"signalbox.example/internal/need"
)

// Run skips: guests run on Linux.
func Run(t *testing.T, k Kernel, c Config) Result {
	t.Helper()
	need.Asked(t, Feature)
	need.Missing(t, Feature, "guests run on Linux")
	return Result{}
}

// Main runs the tests.
func Main(m *testing.M) { os.Exit(m.Run()) }

// Inside skips the test: there is no guest on this system.
func Inside(t testing.TB) { t.Skip("runs in a guest only") }

// Release returns "": it is known on Linux only.
func Release() string { return "" }
