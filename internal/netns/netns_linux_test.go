package netns

import (
	"net"
	"strings"
	"testing"

	"signalbox.example/internal/need"
)

func TestIntegrationNamespaces(t *testing.T) {
	need.Asked(t, Feature)
	a, b := New(t, "a"), New(t, "b")
	if err := Veth(a, "va", b, "vb"); err != nil {
		t.Fatal(err)
	}
	a.Must(t, "ip addr add 10.9.8.1/24 dev va")
	b.Must(t, "ip addr add 10.9.8.2/24 dev vb")
	var l net.Listener
	if err := b.Do(func() (err error) { l, err = net.Listen("tcp", "10.9.8.2:0"); return }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the address is reachable from outside")
	}
	if err := a.Do(func() error {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			c.Close()
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if _, err := a.Run("false"); err == nil || !strings.Contains(err.Error(), "false") {
		t.Errorf("Run(false) = %v", err)
	}
}
