package fastpath

import (
	"testing"

	"github.com/vishvananda/netlink"

	"signalbox.example/internal/need"
	"signalbox.example/internal/netns"
	"signalbox.example/nat64"
)

// An interface that refuses the new program, because it is gone, keeps none,
// and the ones behind it get theirs all the same.
func TestIntegrationSyncWithoutAnInterface(t *testing.T) {
	need.Asked(t, feature)
	need.Root(t, feature)
	tr, err := nat64.New(crossConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	err = netns.New(t, "sync").Do(func() error {
		for _, name := range []string{"gone0", "stays0"} {
			if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "p"}); err != nil {
				return err
			}
		}
		l, err := Attach(tr, Options{Interfaces: []string{"gone0", "stays0"}})
		if err != nil {
			return err
		}
		defer l.Close()
		before := l.hooks[1].program
		first, err := netlink.LinkByName("gone0")
		if err != nil {
			return err
		}
		if err := netlink.LinkDel(first); err != nil {
			return err
		}
		if err := l.Sync(); err == nil {
			t.Error("an interface that is gone took a program")
		}
		if l.hooks[0].program != nil {
			t.Error("the interface that is gone has a program")
		}
		if p := l.hooks[1].program; p == nil || p == before {
			t.Error("the interface behind it has no new program")
		}
		return l.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}
