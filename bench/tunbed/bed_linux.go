package tunbed

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"signalbox.example/internal/netns"
)

// The addresses of the bed: the prefix, pool and map of the seed's setup.
const (
	clientV6    = "2001:db8:1::2"
	clientV4    = "10.1.0.2"
	serverV4    = "192.0.2.2"
	serverV6    = "2001:db8:2::2"
	prefix      = "2001:db8:64::/96"
	pool        = "10.64.0.0/24"
	mapped      = "10.64.0.10"            // the client, seen from the server
	serverIn6   = "2001:db8:64::c000:202" // the server, seen from the client
	tunDevice   = "nat64"
	readyWithin = 10 * time.Second
)

// Bed is the three namespaces.
type Bed struct {
	Client, Router, Server *netns.Namespace
	dir                    string
	translator             *process
}

// Missing lists what the bed needs and this machine lacks.
func Missing() []string {
	var m []string
	if os.Geteuid() != 0 {
		m = append(m, "root (network namespaces)")
	}
	for _, p := range []string{"ip", "iperf3", "ethtool", "sysctl", "tayga"} {
		if _, err := exec.LookPath(p); err != nil {
			m = append(m, "the program "+p)
		}
	}
	return m
}

// New builds the bed. Close removes it.
func New() (_ *Bed, err error) {
	b := &Bed{}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "tunbed"); err != nil {
		return nil, err
	}
	for _, n := range []struct {
		ns    **netns.Namespace
		label string
	}{{&b.Client, "c"}, {&b.Router, "r"}, {&b.Server, "s"}} {
		if *n.ns, err = netns.Create(n.label); err != nil {
			return nil, err
		}
	}
	if err := netns.Veth(b.Client, "c0", b.Router, "rc"); err != nil {
		return nil, err
	}
	if err := netns.Veth(b.Server, "s0", b.Router, "rs"); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		ns    *netns.Namespace
		lines string
	}{
		{b.Client, "ip addr add 2001:db8:1::2/64 dev c0 nodad|ip addr add 10.1.0.2/24 dev c0|ip -6 route add default via 2001:db8:1::1|ip route add default via 10.1.0.1"},
		{b.Server, "ip addr add 192.0.2.2/24 dev s0|ip addr add 2001:db8:2::2/64 dev s0 nodad|ip route add default via 192.0.2.1|ip -6 route add default via 2001:db8:2::1"},
		{b.Router, "ip addr add 2001:db8:1::1/64 dev rc nodad|ip addr add 10.1.0.1/24 dev rc|ip addr add 192.0.2.1/24 dev rs|ip addr add 2001:db8:2::1/64 dev rs nodad|" +
			"sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.rc.rp_filter=0 net.ipv4.conf.rs.rp_filter=0"},
	} {
		for _, l := range strings.Split(c.lines, "|") {
			f := strings.Fields(l)
			if _, err := c.ns.Run(f[0], f[1:]...); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// Close ends what runs in the bed and removes it.
func (b *Bed) Close() error {
	var errs []error
	if err := b.Stop(); err != nil {
		errs = append(errs, err)
	}
	for _, n := range []*netns.Namespace{b.Client, b.Router, b.Server} {
		if n != nil {
			errs = append(errs, n.Close())
		}
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// A Translator is what stands on the router.
type Translator struct {
	Name string
	// Plain: no translation; the hosts speak one family.
	Plain bool
	// Command is the translator's command line; %s stands for the
	// configuration file. Before are commands that run first.
	Command []string
	Before  []string
	// Ready is a text that the translator prints when it translates; ""
	// means that the device's appearance is enough.
	Ready string
	// Setup says that the bed configures the device and the routes.
	Setup bool
}

// Tayga is Debian's package as it is.
func Tayga() Translator {
	return Translator{Name: "tayga", Before: []string{"tayga -c %s --mktun"}, Command: []string{"tayga", "-c", "%s", "-d"}, Setup: true}
}

// Nat64d runs this project's daemon with further arguments.
func Nat64d(name, program string, args ...string) Translator {
	return Translator{Name: name, Command: append([]string{program, "-config", "%s", "-setup"}, args...), Ready: "translating"}
}

// Start puts a translator on the router.
func (b *Bed) Start(t Translator) error {
	if t.Plain {
		return nil
	}
	data := filepath.Join(b.dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	conf := filepath.Join(b.dir, "tayga.conf")
	text := fmt.Sprintf("tun-device %s\nipv4-addr 10.64.0.1\nipv6-addr 2001:db8:1::64\nprefix %s\ndynamic-pool %s\nmap %s %s\ndata-dir %s\n",
		tunDevice, prefix, pool, mapped, clientV6, data)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return err
	}
	for _, l := range t.Before {
		f := strings.Fields(strings.ReplaceAll(l, "%s", conf))
		if _, err := b.Router.Run(f[0], f[1:]...); err != nil {
			return err
		}
	}
	if t.Setup {
		for _, l := range []string{"ip link set " + tunDevice + " up", "ip route add " + pool + " dev " + tunDevice, "ip -6 route add " + prefix + " dev " + tunDevice} {
			f := strings.Fields(l)
			if _, err := b.Router.Run(f[0], f[1:]...); err != nil {
				return err
			}
		}
	}
	args := make([]string, len(t.Command))
	for i, a := range t.Command {
		args[i] = strings.ReplaceAll(a, "%s", conf)
	}
	p, err := start(b.Router.Command(args[0], args[1:]...), t.Ready)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	b.translator = p
	// The first packet through the pool makes the binding; wait for it.
	end := time.Now().Add(readyWithin)
	for {
		_, err := b.Client.Run("ping", "-6", "-c", "1", "-W", "1", serverIn6)
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			b.Stop()
			return fmt.Errorf("%s does not translate: %w\n%s", t.Name, err, p.output())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Stop ends the translator and removes its device.
func (b *Bed) Stop() error {
	if b.translator == nil {
		return nil
	}
	b.translator.stop()
	b.translator = nil
	if out, err := b.Router.Run("ip", "link", "show", tunDevice); err == nil && out != "" {
		if _, err := b.Router.Run("ip", "link", "del", tunDevice); err != nil {
			return err
		}
	}
	return nil
}

// process is a program that runs until it is stopped.
type process struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	text strings.Builder
	done chan struct{}
}

func start(cmd *exec.Cmd, ready string) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		read.Close()
		write.Close()
		return nil, err
	}
	write.Close()
	seen := make(chan struct{})
	go func() {
		defer read.Close()
		once := sync.OnceFunc(func() { close(seen) })
		if ready == "" {
			once()
		}
		for s := bufio.NewScanner(read); s.Scan(); {
			p.mu.Lock()
			if p.text.Len() < 1<<16 {
				p.text.WriteString(s.Text() + "\n")
			}
			p.mu.Unlock()
			if ready != "" && strings.Contains(s.Text(), ready) {
				once()
			}
		}
	}()
	go func() { cmd.Wait(); close(p.done) }()
	select {
	case <-seen:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("ended at once: %s", p.output())
	case <-time.After(readyWithin):
		p.stop()
		return nil, fmt.Errorf("not ready within %v: %s", readyWithin, p.output())
	}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
	}
}

// cpu returns the processor time that the process has used.
func (p *process) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// machineCPU returns the time that all processors were busy, from /proc/stat.
func machineCPU() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var busy int
	for i, f := range strings.Fields(line)[1:] {
		if i == 3 || i == 4 || i >= 7 { // idle, iowait; steal, guest
			continue
		}
		n, _ := strconv.Atoi(f)
		busy += n
	}
	return time.Duration(busy) * 10 * time.Millisecond
}
