package main

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
)

func TestIntegrationApply(t *testing.T) {
	need.Asked(t, "netns")
	need.Root(t, "netns")
	need.Commands(t, "netns", "ip")
	runtime.LockOSThread() // and never unlocked: the namespace ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		need.Missing(t, "netns", err.Error())
	}
	if code, out, errs := call(wanted, "-"); code != 1 || strings.Count(out, "+ policy") != 3 || errs != "" {
		t.Errorf("dry: %d\n%s\n%s", code, out, errs)
	}
	if code, out, errs := call(wanted, "-apply", "-"); code != 0 || strings.Count(out, "+ policy") != 3 || errs != "" {
		t.Errorf("apply: %d\n%s\n%s", code, out, errs)
	}
	if code, out, errs := call(wanted, "-"); code != 0 || out != "" || errs != "" {
		t.Errorf("again: %d\n%s\n%s", code, out, errs)
	}
	// What ip prints now is a wanted file without a difference.
	text, err := exec.Command("ip", "xfrm", "policy").Output()
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errs := call(string(text), "-"); code != 0 || out != "" || errs != "" {
		t.Errorf("ip's own text: %d\n%s\n%s", code, out, errs)
	}
	less := strings.Replace(strings.Replace(wanted, "if_id 0x42", "if_id 0x43", 1), "399999", "4", 1)
	if code, out, errs := call(less, "-apply", "-"); code != 0 || errs != "" ||
		out != "~ policy src ::/0 dst ::/0 dir out mark 0x6/0xffffffff\n+ policy src 10.0.0.0/8 dst 10.1.0.0/16 dir in if_id 0x43\n- policy src 10.0.0.0/8 dst 10.1.0.0/16 dir in if_id 0x42\n" {
		t.Errorf("changed: %d\n%s\n%s", code, out, errs)
	}
	// A kernel without ESP refuses the state, and the refusal is named.
	if code, _, errs := call(wantedState, "-apply", "-only", "states", "-"); code == 2 && !strings.Contains(errs, "Requested") {
		t.Errorf("%d %s", code, errs)
	}
}
