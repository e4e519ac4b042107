package tun

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
	"signalbox.example/internal/netns"
	"signalbox.example/nat64"
)

func translator(t testing.TB) *nat64.Translator {
	t.Helper()
	prefix, err := nat64.ParsePrefix("2001:db8:64::/96")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := nat64.New(nat64.Config{Prefix: prefix, Own4: netip.MustParseAddr("10.64.0.1"),
		EAM: []nat64.EAM{{V4: netip.MustParsePrefix("10.64.0.0/24"), V6: netip.MustParsePrefix("2001:db8:c::/120")}}})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func open(t *testing.T, ns *netns.Namespace, o Options) *Device {
	t.Helper()
	var d *Device
	if err := ns.Do(func() (err error) { d, err = Open("t%d", o); return }); err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			need.Missing(t, netns.Feature, err.Error())
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestIntegrationOpen(t *testing.T) {
	need.Asked(t, netns.Feature)
	ns := netns.New(t, "t")
	for _, c := range []struct {
		o     Options
		wants Offload
	}{
		{Options{NoTSO: true}, OffloadChecksum},
		{Options{NoUSO: true}, OffloadChecksum | OffloadTSO},
		{Options{NoVnetHeader: true}, 0},
		{Options{Queues: 3, NoUSO: true}, OffloadChecksum | OffloadTSO},
	} {
		d := open(t, ns, c.o)
		if d.Offloads() != c.wants || d.Queues() != max(c.o.Queues, 1) || !strings.HasPrefix(d.Name(), "t") || strings.Contains(d.Name(), "%") {
			t.Errorf("%+v: %s, %d queues, offloads %v", c.o, d.Name(), d.Queues(), d.Offloads())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if err := d.SetPersist(true); err == nil {
			t.Error("a closed device can be made persistent")
		}
	}
	d := open(t, ns, Options{})
	if d.Offloads()&OffloadTSO == 0 {
		t.Errorf("offloads %v", d.Offloads())
	}
	if err := d.SetPersist(true); err != nil {
		t.Error(err)
	}
	name := d.Name()
	d.Close()
	var again *Device
	if err := ns.Do(func() (err error) { again, err = Open(name, Options{}); return }); err != nil {
		t.Fatal(err)
	}
	if err := again.SetPersist(false); err != nil {
		t.Error(err)
	}
	// Attached with other settings it is refused, and the error says so.
	if err := ns.Do(func() error { _, err := Open(name, Options{NoVnetHeader: true}); return err }); err == nil {
		t.Error("opened twice with other settings")
	}
	again.Close()
	if out, err := ns.Run("ip", "link", "show", name); err == nil {
		t.Errorf("still there: %s", out)
	}
}

func TestIntegrationRunEnds(t *testing.T) {
	need.Asked(t, netns.Feature)
	ns := netns.New(t, "t")
	d := open(t, ns, Options{Queues: 2})
	tr := translator(t)
	for range 3 { // a context ends it, and it can run again
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := d.Run(ctx, tr); err != nil {
			t.Error(err)
		}
		cancel()
	}
	because, end := context.WithCancelCause(t.Context())
	end(errors.New("the caller's own reason"))
	if err := d.Run(because, tr); err != nil {
		t.Errorf("ended by its context: %v", err)
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		if err := d.Run(ctx, tr); err != nil {
			t.Error(err)
		}
	})
	for !d.running.Load() {
		time.Sleep(time.Millisecond)
	}
	if err := d.Run(ctx, tr); err == nil {
		t.Error("ran twice at once")
	}
	cancel()
	wg.Wait()
	// A device that vanishes ends it with an error.
	ended := make(chan error, 1)
	go func() { ended <- d.Run(t.Context(), tr) }()
	time.Sleep(20 * time.Millisecond)
	ns.Must(t, "ip link del "+d.Name())
	select {
	case err := <-ended:
		if err == nil || !strings.HasPrefix(err.Error(), "tun: ") {
			t.Errorf("Run = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Run did not notice that the device is gone")
	}
	d.Close()
	if err := d.Run(t.Context(), tr); err == nil {
		t.Error("a closed device runs")
	}
}

// Packets through a real device, in every mode.
func TestIntegrationPackets(t *testing.T) {
	need.Asked(t, netns.Feature)
	for _, o := range []Options{{}, {NoUSO: true}, {NoTSO: true}, {NoVnetHeader: true}} {
		ns := netns.New(t, "t")
		d := open(t, ns, o)
		ns.Must(t, "ip link set "+d.Name()+" up\nip addr add 10.1.1.1/24 dev "+d.Name()+"\nip route add 10.64.0.0/24 dev "+d.Name()+
			"\nip -6 addr add 2001:db8:c::9/128 dev "+d.Name()+" nodad")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { d.Run(ctx, translator(t)) })
		// From 10.1.1.1 to 10.64.0.9, which is 2001:db8:c::9: the kernel's own
		// other end.
		var in *net.UDPConn
		if err := ns.Do(func() (err error) {
			in, err = net.ListenUDP("udp6", &net.UDPAddr{IP: net.ParseIP("2001:db8:c::9"), Port: 999})
			return
		}); err != nil {
			t.Fatal(err)
		}
		var out net.Conn
		if err := ns.Do(func() (err error) { out, err = net.Dial("udp", "10.64.0.9:999"); return }); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		got := 0
		for end := time.Now().Add(20 * time.Second); got < 20 && time.Now().Before(end); {
			if _, err := out.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			// What is sent while the new device settles may be lost.
			in.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			n, from, err := in.ReadFromUDPAddrPort(buf)
			if err != nil {
				continue
			}
			got++
			if string(buf[:n]) != "hello" || from.Addr() != netip.MustParseAddr("2001:db8:64::a01:101") {
				t.Fatalf("%+v: %q from %v", o, buf[:n], from)
			}
		}
		out.Close()
		cancel()
		wg.Wait()
		if s := d.Stats(); got < 20 || s.Read < 20 || s.Written < 20 || s.Malformed != 0 {
			t.Errorf("%+v: %d arrived, %+v", o, got, s)
		}
		in.Close()
		d.Close()
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
	}{{"nat64", Options{Queues: -1}}, {"nat64", Options{Queues: 65}}, {"much-too-long-name", Options{}}, {"a/b", Options{}}, {"..", Options{}}, {"a b", Options{}}} {
		if _, err := Open(c.name, c.o); err == nil || !strings.HasPrefix(err.Error(), "tun: ") {
			t.Errorf("Open(%q, %+v) = %v", c.name, c.o, err)
		}
	}
	var names []string
	for _, o := range []Offload{0, OffloadChecksum, OffloadChecksum | OffloadTSO | OffloadUSO} {
		names = append(names, o.String())
	}
	if !slices.Equal(names, []string{"none", "csum", "csum,tso,uso"}) {
		t.Errorf("%q", names)
	}
}
