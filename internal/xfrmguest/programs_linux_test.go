package xfrmguest

import (
	"os/exec"
	"strings"
	"testing"

	"signalbox.example/internal/guest"
)

// program runs one of the examples in the guest and prints what it printed.
func program(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		t.Logf("scenario: %s: %s", name, strings.TrimRight(line, "\n"))
	}
	if err != nil {
		if strings.Contains(string(out), "operation not supported") || strings.Contains(string(out), "type not found") {
			t.Skipf("%s: the kernel lacks it: %s", name, out)
		}
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

func TestInGuestPrograms(t *testing.T) {
	guest.Inside(t)
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"vpn", nil, []string{
			// The seed's policies.
			"src ::/0 dst ::/0 \n\tdir out priority 399999 ptype main \n\tmark 0x6/0xffffffff \n\ttmpl src 2001:db8:1::1 dst 2001:db8:3::2\n\t\tproto esp reqid 1 mode tunnel\n",
			"dir fwd priority 399999", "dir in priority 399999", "flag af-unspec", "3 received",
		}},
		{"vpn", []string{"-if", "xfrm"}, []string{"if_id 0x6", "3 received"}},
		{"rekey", []string{"-rekeys", "4"}, []string{"10000 packets sent, 10000 received, 0 lost over 4 changes of keys"}},
		{"mip6", nil, []string{"after the movement", "coa 2001:db8:1::11"}},
		{"nullspeed", []string{"-n", "1000", "-rounds", "1"}, []string{"| IPv6 | null+null |"}},
	} {
		t.Run(strings.Join(append([]string{c.name}, c.args...), " "), func(t *testing.T) {
			out := program(t, c.name, c.args...)
			for _, w := range c.want {
				if !strings.Contains(out, w) {
					t.Errorf("%s did not print %q", c.name, w)
				}
			}
		})
	}
}
