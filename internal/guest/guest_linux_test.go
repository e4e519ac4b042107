package guest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestIntegrationBoot(t *testing.T) {
	for _, k := range []Kernel{UML, Debian61, Debian612} {
		t.Run(k.String(), func(t *testing.T) {
			r := Run(t, k, Config{
				Tests: "^TestInGuest", Programs: []string{"ip"}, Modules: []string{"dummy", "veth"}, Env: []string{"GREETING=hello"},
			})
			for _, n := range []string{"TestInGuestPrograms", "TestInGuestModules"} {
				if r.Tests[n] != "PASS" {
					t.Errorf("%s: %q", n, r.Tests[n])
				}
			}
		})
	}
}

func TestInGuestPrograms(t *testing.T) {
	Inside(t)
	if os.Getenv("GREETING") != "hello" {
		t.Error("the environment did not arrive")
	}
	out, err := exec.Command("ip", "-br", "link", "show", "lo").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "LOOPBACK,UP") {
		t.Errorf("ip link: %v %s", err, out)
	}
	if err := os.WriteFile("/run/tmp/x", nil, 0o644); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(Release(), "6.") {
		t.Errorf("release %q", Release())
	}
}

func TestInGuestModules(t *testing.T) {
	Inside(t)
	for _, args := range []string{"netns add a", "link add v0 type veth peer name v1 netns a", "link add d0 type dummy"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Errorf("ip %s: %v %s", args, err, out)
		}
	}
}
