package main

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
)

func TestIntegrationLoad(t *testing.T) {
	need.Asked(t, "netns")
	need.Root(t, "netns")
	runtime.LockOSThread() // and never unlocked: the namespace ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		need.Missing(t, "netns", err.Error())
	}
	_, batch, _ := call("", "-generate", "2000")
	lines := strings.SplitAfter(batch, "\n")
	twice := strings.Join(lines[:1500], "") + lines[7] + strings.Join(lines[1500:], "")
	code, _, errs := call(twice)
	if code != 1 || !strings.Contains(errs, "bulkload: line 1501: xfrm: newpolicy: file exists") || !strings.Contains(errs, "2000 of 2001 loaded") {
		t.Errorf("%d %s", code, errs)
	}
	code, _, errs = call(batch, "-errors", "1")
	if code != 1 || !strings.Contains(errs, "and 1999 more") || !strings.Contains(errs, "0 of 2000 loaded") {
		t.Errorf("%d %s", code, errs)
	}
}
