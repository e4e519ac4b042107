// Package need decides, in one place, whether a test that depends on
// something outside the module runs, skips or fails.
//
// Two environment variables steer it:
//
//	SIGNALBOX_REQUIRE  comma-separated features that must be there; a missing
//	                   one fails the test instead of skipping it
//	SIGNALBOX_RUN      comma-separated features to try; a missing one skips
//
// A feature is a short word such as vectors, netns, gpg, pcscd or guest.
package need

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func listed(env, feature string) bool {
	for f := range strings.SplitSeq(os.Getenv(env), ",") {
		if f = strings.TrimSpace(f); f == feature || f == "all" {
			return true
		}
	}
	return false
}

// Required reports whether SIGNALBOX_REQUIRE lists the feature (or "all").
func Required(feature string) bool { return listed("SIGNALBOX_REQUIRE", feature) }

// Missing ends the test because something the feature needs is not there:
// it fails when the feature is required and skips, saying why, otherwise.
func Missing(t testing.TB, feature, why string) {
	t.Helper()
	if Required(feature) {
		t.Fatalf("required feature %q: %s", feature, why)
	}
	t.Skipf("feature %q: %s", feature, why)
}

// Asked skips the test unless somebody asked for the feature. Tests that
// start daemons, make namespaces or run for long begin with it, so that a
// plain "go test ./..." touches nothing on the machine.
func Asked(t testing.TB, feature string) {
	t.Helper()
	if !Required(feature) && !listed("SIGNALBOX_RUN", feature) {
		t.Skipf("feature %q was not asked for: set SIGNALBOX_RUN=%s (or SIGNALBOX_REQUIRE) to run this test", feature, feature)
	}
}

// Root ends the test through [Missing] unless it runs as root.
func Root(t testing.TB, feature string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, feature, "needs root")
	}
}

// Commands ends the test through [Missing] unless every named program is in
// the search path. It returns the paths in the order of the names.
func Commands(t testing.TB, feature string, names ...string) []string {
	t.Helper()
	paths := make([]string, len(names))
	for i, n := range names {
		p, err := exec.LookPath(n)
		if err != nil {
			Missing(t, feature, "needs the program "+n)
		}
		paths[i] = p
	}
	return paths
}
