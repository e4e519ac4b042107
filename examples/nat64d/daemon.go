package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signalbox.example/nat64"
	"signalbox.example/nat64/fastpath"
	"signalbox.example/nat64/tayga"
	"signalbox.example/nat64/tun"
)

const (
	saveInterval  = time.Second // how soon a new binding is on disk
	ageInterval   = 10 * time.Minute
	sweepInterval = 45 * time.Second
)

// daemon is a running translator and what surrounds it.
type daemon struct {
	o              options
	stdout, stderr io.Writer
	t              *nat64.Translator
	dev            *tun.Device
	link           *fastpath.Link

	mu      sync.Mutex // configuration and what follows from it
	conf    *tayga.Config
	pool    *nat64.Pool
	saved   uint64 // version of the pool that is on disk
	savedAt time.Time
	failing bool // the last save failed and was reported

	reloads, refusals atomic.Uint64
}

func (d *daemon) log(format string, a ...any) { fmt.Fprintf(d.stderr, "nat64d: "+format+"\n", a...) }

func serve(ctx context.Context, o options, stdout, stderr io.Writer) error {
	d := &daemon{o: o, stdout: stdout, stderr: stderr}
	// Signals that arrive while we start are kept.
	hangup, user := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hangup, reloadSignals...)
	signal.Notify(user, statsSignals...)
	defer signal.Stop(hangup)
	defer signal.Stop(user)

	conf, cfg, err := read(o)
	if err != nil {
		return err
	}
	d.conf = conf
	if d.pool, err = d.openPool(conf); err != nil {
		return err
	}
	cfg.Pools = pools(d.pool)
	if d.t, err = nat64.New(cfg); err != nil {
		return err
	}
	if o.check {
		return d.print(conf)
	}
	if d.dev, err = tun.Open(conf.TunDevice, o.tun); err != nil {
		return err
	}
	defer d.dev.Close()
	if d.o.interfaces == nil {
		if d.o.interfaces, err = realInterfaces(d.dev.Name()); err != nil {
			return err
		}
	}
	if o.setup {
		err = d.runSetup(commands(conf, d.dev.Name(), d.o))
	} else {
		err = d.print(conf)
	}
	if err != nil {
		return err
	}
	if err := d.startFastPath(); err != nil {
		return err
	}
	if d.link != nil {
		defer d.link.Close()
	}
	metrics, err := d.startMetrics()
	if err != nil {
		return err
	}
	defer metrics()
	if err := dropPrivileges(o.user, d.link != nil); err != nil {
		return err
	}

	done := make(chan error, 1)
	go func() { done <- d.dev.Run(ctx, d.t) }()
	d.log("translating on %s (offloads %s, %d queues), fast path %s", d.dev.Name(), d.dev.Offloads(), d.dev.Queues(), d.fastPathState())
	save := time.NewTicker(saveInterval)
	defer save.Stop()
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		select {
		case err := <-done:
			d.save(true)
			return err
		case <-hangup:
			if err := d.reload(); err != nil {
				d.refusals.Add(1)
				report(d.stderr, err)
				d.log("the configuration stays as it was")
			} else {
				d.reloads.Add(1)
				d.log("configuration read again")
			}
		case <-user:
			d.writeStats(d.stderr)
		case <-save.C:
			d.save(false)
		case <-sweep.C:
			d.mu.Lock()
			if d.pool != nil {
				d.pool.Sweep()
			}
			d.mu.Unlock()
		}
	}
}

// read reads the configuration and makes of it, and of the options, one for
// the translator.
func read(o options) (*tayga.Config, nat64.Config, error) {
	conf, err := tayga.Read(o.config)
	if err != nil {
		return nil, nat64.Config{}, err
	}
	cfg, err := conf.Translator(o.mtu)
	cfg.RFC6791v4 = o.rfc6791
	return conf, cfg, err
}

func pools(p *nat64.Pool) []*nat64.Pool {
	if p == nil {
		return nil
	}
	return []*nat64.Pool{p}
}

// openPool makes the dynamic pool. Lines of its file that cannot be used are
// reported and left out. A file that cannot be read to its end is an error: the
// rest of it would be lost at the next save.
func (d *daemon) openPool(conf *tayga.Config) (*nat64.Pool, error) {
	p, err := conf.Pool(nat64.PoolOptions{})
	if p == nil {
		return nil, err
	}
	if err != nil {
		if !onlyLines(err) {
			return nil, fmt.Errorf("%s: %w", conf.DynamicMapPath(), err)
		}
		report(d.stderr, fmt.Errorf("%s: %w", conf.DynamicMapPath(), err))
	}
	d.saved, d.savedAt = p.Version(), time.Now()
	return p, nil
}

// onlyLines reports whether an error is about nothing but lines of a file.
func onlyLines(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !onlyLines(e) })
	}
	_, line := err.(*nat64.LineError)
	return line
}

// reload reads the configuration again. After an error nothing has changed.
func (d *daemon) reload() error {
	conf, cfg, err := read(d.o)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if conf.TunDevice != d.conf.TunDevice {
		return fmt.Errorf("tun-device cannot change from %s to %s while running", d.conf.TunDevice, conf.TunDevice)
	}
	pool, fresh := d.pool, false
	if conf.DynamicPool != d.conf.DynamicPool || conf.DataDir != d.conf.DataDir {
		d.savePool(true)
		if pool, err = d.openPool(conf); err != nil {
			return err
		}
		fresh = true
	}
	cfg.Pools = pools(pool)
	if err := d.t.Update(cfg); err != nil {
		return err
	}
	old := d.conf
	d.conf, d.pool = conf, pool
	if fresh && pool != nil {
		d.saved, d.savedAt = pool.Version(), time.Now()
	}
	if d.o.setup {
		if err := d.runSetup(changes(old, conf, d.dev.Name(), d.o)); err != nil {
			report(d.stderr, err) // the translation is right; a route may be missing
		}
	}
	if d.link != nil {
		if err := d.link.Sync(); err != nil {
			report(d.stderr, err)
			d.log("fast path off: it does not follow the new configuration")
			d.link.Close()
			d.link = nil
		}
	}
	return nil
}

// save writes the pool if it changed, or if the times in the file have become
// old; always when forced.
func (d *daemon) save(force bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.savePool(force)
}

func (d *daemon) savePool(force bool) {
	path := d.conf.DynamicMapPath()
	if d.pool == nil || path == "" {
		return
	}
	v := d.pool.Version()
	if !force && v == d.saved && time.Since(d.savedAt) < ageInterval {
		return
	}
	if err := d.pool.SaveFile(path); err != nil {
		if !d.failing { // once, not every second
			report(d.stderr, err)
		}
		d.failing = true
		return
	}
	d.saved, d.savedAt, d.failing = v, time.Now(), false
}

// startFastPath attaches the fast path as the options say.
func (d *daemon) startFastPath() error {
	if d.o.fastpath == "off" {
		return nil
	}
	err := fastpath.Supported()
	if err == nil {
		err = d.checkReversePath()
	}
	if err == nil {
		d.link, err = fastpath.Attach(d.t, fastpath.Options{Interfaces: d.o.interfaces, EAMDestinations: d.o.eamDest})
	}
	if err != nil {
		d.link = nil
		if d.o.fastpath == "require" {
			return err
		}
		d.log("fast path off: %v", err)
	}
	return nil
}

func (d *daemon) fastPathState() string {
	if d.link == nil {
		return "off"
	}
	return "on " + strings.Join(d.link.Interfaces(), ", ")
}

// writeStats prints the counters that are not zero.
func (d *daemon) writeStats(w io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	if d.link != nil {
		s := d.link.Stats()
		fmt.Fprintf(&b, "nat64d: fast path: 6to4 %d packets %d bytes, 4to6 %d packets %d bytes, %d bindings;", s.Packets64, s.Bytes64, s.Packets46, s.Bytes46, s.Bindings)
		for i, n := range s.Punted {
			if n > 0 {
				fmt.Fprintf(&b, " punted %s %d", fastpath.Punt(i), n)
			}
		}
		b.WriteByte('\n')
	}
	t := d.dev.Stats()
	fmt.Fprintf(&b, "nat64d: device: read %d packets %d bytes (%d super-packets), wrote %d packets %d bytes, %d write errors, %d malformed\n",
		t.Read, t.ReadBytes, t.Super, t.Written, t.WrittenBytes, t.WriteErrors, t.Malformed)
	s := d.t.Stats()
	for r, n := range s.All() {
		if n > 0 {
			fmt.Fprintf(&b, "nat64d: %s %d\n", r, n)
		}
	}
	fmt.Fprintf(&b, "nat64d: replies %d, suppressed %d", s.Replies, s.Suppressed)
	if d.pool != nil {
		fmt.Fprintf(&b, ", pool bindings %d", d.pool.Len())
	}
	fmt.Fprintln(&b)
	io.WriteString(w, b.String())
}

// errSetup marks a command that did not do its job.
var errSetup = errors.New("setting up failed")
