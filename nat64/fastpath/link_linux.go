package fastpath

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"signalbox.example/nat64"
)

// Supported says why the fast path cannot run here, or returns nil. Probing
// loads tiny programs and leaves nothing behind.
func Supported() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("fastpath: uname: %w", err)
	}
	if err := checkRelease(unix.ByteSliceToString(u.Release[:])); err != nil {
		return err
	}
	for _, f := range []asm.BuiltinFunc{asm.FnSkbChangeProto, asm.FnL4CsumReplace, asm.FnCsumDiff, asm.FnRedirectNeigh} {
		if err := features.HaveProgramHelper(ebpf.SchedCLS, f); err != nil {
			return unsupported(f.String(), err)
		}
	}
	for _, m := range []ebpf.MapType{ebpf.LPMTrie, ebpf.PerCPUArray} {
		if err := features.HaveMapType(m); err != nil {
			return unsupported(m.String(), err)
		}
	}
	return nil
}

func unsupported(what string, err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("fastpath: no privilege to load programs (CAP_BPF and CAP_NET_ADMIN): %w", err)
	}
	return fmt.Errorf("fastpath: the kernel lacks %s: %w", what, err)
}

// tableSet are the maps that programs share. A new configuration gets a new
// set; the counters stay.
type tableSet struct {
	six, four, used *ebpf.Map
}

func (s *tableSet) close() {
	for _, m := range []*ebpf.Map{s.six, s.four, s.used} {
		if m != nil {
			m.Close()
		}
	}
}

// bound is a pool binding that is in the tables.
type bound struct {
	v6   netip.Addr
	pool *nat64.Pool
	slot uint32
}

// Link is the fast path of one translator, attached to interfaces.
type Link struct {
	t *nat64.Translator
	o Options

	mu       sync.Mutex
	cfg      nat64.Config // what the tables were made from
	tables   *tableSet
	ids      *ebpf.Map
	counters *ebpf.Map
	hooks    []*hook
	bound    map[netip.Addr]bound // by IPv4 address
	versions map[*nat64.Pool]uint64
	free     []uint32 // slots of the map of uses
	skipped  int
	added    [2]uint64 // packets already added to the translator's counters
	closed   bool

	stop chan struct{}
	done chan struct{}
}

// Attach puts the fast path of a translator on interfaces and keeps it in step
// with the pools. [Link.Sync] must be called after [nat64.Translator.Update].
// It needs CAP_BPF and CAP_NET_ADMIN in the namespace of the interfaces. After
// an error nothing is left attached.
func Attach(t *nat64.Translator, o Options) (_ *Link, err error) {
	if len(o.Interfaces) == 0 {
		return nil, errors.New("fastpath: no interfaces")
	}
	o.setDefaults()
	l := &Link{t: t, o: o, stop: make(chan struct{}), done: make(chan struct{})}
	defer func() {
		if err != nil {
			l.release()
		}
	}()
	if l.ids, err = newMap(&ebpf.MapSpec{Name: "sb_ids", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: idCounters}); err != nil {
		return nil, err
	}
	if l.counters, err = newMap(&ebpf.MapSpec{Name: "sb_counters", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: uint32(numSlots)}); err != nil {
		return nil, err
	}
	if err = l.seedIDs(); err != nil {
		return nil, err
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(o.Interfaces))) {
		h, err := newHook(name)
		if err != nil {
			return nil, err
		}
		l.hooks = append(l.hooks, h)
	}
	if err = l.sync(); err != nil {
		return nil, err
	}
	go l.maintain()
	return l, nil
}

func newMap(s *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(s)
	if err != nil {
		return nil, fmt.Errorf("fastpath: map %s (needs CAP_BPF): %w", s.Name, err)
	}
	return m, nil
}

// Sync rebuilds tables and programs from the translator's present
// configuration and swaps them in, one interface after the other; no packet is
// lost. After an error the former ones stay in place.
func (l *Link) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("fastpath: %w", os.ErrClosed)
	}
	return l.sync()
}

func (l *Link) sync() error {
	cfg := l.t.Config()
	tables, err := l.build(cfg)
	if err != nil {
		return err
	}
	// Load all programs before the first is swapped in.
	var programs []*ebpf.Program
	fail := func(err error) error {
		for _, p := range programs {
			p.Close()
		}
		tables.close()
		return err
	}
	for _, h := range l.hooks {
		p, err := l.load(cfg, tables, h)
		if err != nil {
			return fail(err)
		}
		programs = append(programs, p)
	}
	old := l.tables
	// The new tables know no binding yet; fill them before packets need them.
	saved := l.bound
	l.tables, l.bound, l.versions, l.skipped = tables, map[netip.Addr]bound{}, map[*nat64.Pool]uint64{}, 0
	l.free = l.free[:0]
	for s := l.o.MaxBindings; s > 0; s-- {
		l.free = append(l.free, uint32(s-1))
	}
	if old != nil {
		l.takeUses(old, saved)
	}
	l.cfg = cfg
	if err := l.syncPools(); err != nil {
		l.tables, l.bound = old, saved
		return fail(err)
	}
	for i, h := range l.hooks {
		if err := h.attach(programs[i]); err != nil {
			// Interfaces before this one have the new program already: it
			// works with the new tables, so both sets stay until Close.
			for _, p := range programs[i:] {
				p.Close()
			}
			return err
		}
	}
	if old != nil {
		old.close()
	}
	return nil
}

// build makes the tables of a configuration.
func (l *Link) build(cfg nat64.Config) (_ *tableSet, err error) {
	e := fromConfig(cfg)
	room := l.o.MaxBindings
	if len(cfg.Pools) == 0 {
		room = 1
	}
	s := &tableSet{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	const noPrealloc = unix.BPF_F_NO_PREALLOC // the kernel demands it of these maps
	if s.six, err = newMap(&ebpf.MapSpec{Name: "sb_table64", Type: ebpf.LPMTrie, KeySize: keyLen6, ValueSize: valueLen64, MaxEntries: uint32(len(e.v6) + room + 1), Flags: noPrealloc}); err != nil {
		return nil, err
	}
	if s.four, err = newMap(&ebpf.MapSpec{Name: "sb_table46", Type: ebpf.LPMTrie, KeySize: keyLen4, ValueSize: valueLen46, MaxEntries: uint32(len(e.v4) + room + 1), Flags: noPrealloc}); err != nil {
		return nil, err
	}
	if s.used, err = newMap(&ebpf.MapSpec{Name: "sb_used", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: uint32(room)}); err != nil {
		return nil, err
	}
	for p, v := range e.v6 {
		if err := s.six.Put(appendKey(nil, p), v.append(nil)); err != nil {
			return nil, fmt.Errorf("fastpath: table entry %v: %w", p, err)
		}
	}
	for p, v := range e.v4 {
		if err := s.four.Put(appendKey(nil, p), v.append(nil)); err != nil {
			return nil, fmt.Errorf("fastpath: table entry %v: %w", p, err)
		}
	}
	return s, nil
}

// load assembles and loads the program for one interface.
func (l *Link) load(cfg nat64.Config, s *tableSet, h *hook) (*ebpf.Program, error) {
	c := FromTranslator(cfg)
	c.EAMDestinations = l.o.EAMDestinations
	c.NoLinkHeader = h.noLinkHeader
	for name, index := range map[string]*int{l.o.Neighbour4: &c.Neighbour4, l.o.Neighbour6: &c.Neighbour6} {
		if name == "" {
			continue
		}
		i, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("fastpath: interface %s: %w", name, err)
		}
		*index = i.Index
	}
	return loadProgram(c, s, l.ids, l.counters)
}

func loadProgram(c Config, s *tableSet, ids, counters *ebpf.Map) (*ebpf.Program, error) {
	ins, err := Program(c)
	if err != nil {
		return nil, err
	}
	for name, m := range map[string]*ebpf.Map{map64: s.six, map46: s.four, mapUsed: s.used, mapIDs: ids, mapHits: counters} {
		if err := ins.AssociateMap(name, m); err != nil && !errors.Is(err, asm.ErrUnreferencedSymbol) {
			return nil, fmt.Errorf("fastpath: map %s: %w", name, err)
		}
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "sb_nat64", Type: ebpf.SchedCLS, Instructions: ins, License: "BSD"})
	if err != nil {
		return nil, fmt.Errorf("fastpath: load: %w", err)
	}
	return p, nil
}

// maintain keeps the tables in step with the pools, tells the pools which
// bindings are in use, and the translator how many packets went by.
func (l *Link) maintain() {
	defer close(l.done)
	poll := time.NewTicker(l.o.PollInterval)
	defer poll.Stop()
	uses := time.NewTicker(useInterval)
	defer uses.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-poll.C:
			l.mu.Lock()
			// A table that cannot take a binding leaves it to the slow path;
			// there is nobody to tell but the counter.
			if err := l.syncPools(); err != nil {
				l.skipped++
			}
			l.mu.Unlock()
		case <-uses.C:
			l.mu.Lock()
			l.takeUses(l.tables, l.bound)
			l.mu.Unlock()
			l.Stats()
		}
	}
}

// syncPools brings the tables in step with bindings that were made or ended.
func (l *Link) syncPools() error {
	for _, pool := range l.cfg.Pools {
		v := pool.Version()
		if known, ok := l.versions[pool]; ok && known == v {
			continue
		}
		now := map[netip.Addr]netip.Addr{}
		for b := range pool.Bindings() {
			now[b.V4] = b.V6
		}
		for v4, b := range l.bound {
			if b.pool == pool && now[v4] != b.v6 {
				if err := l.unbind(v4, b); err != nil {
					return err
				}
			}
		}
		for v4, v6 := range now {
			if _, ok := l.bound[v4]; ok {
				continue
			}
			if len(l.free) == 0 {
				l.skipped++ // it keeps to the slow path
				continue
			}
			slot := l.free[len(l.free)-1]
			p6, x, p4, y := binding(v4, v6, slot)
			if err := l.tables.six.Put(appendKey(nil, p6), x.append(nil)); err != nil {
				return err
			}
			if err := l.tables.four.Put(appendKey(nil, p4), y.append(nil)); err != nil {
				return errors.Join(err, l.tables.six.Delete(appendKey(nil, p6)))
			}
			l.free = l.free[:len(l.free)-1]
			l.bound[v4] = bound{v6, pool, slot}
		}
		l.versions[pool] = v
	}
	return nil
}

func (l *Link) unbind(v4 netip.Addr, b bound) error {
	p6, _, p4, _ := binding(v4, b.v6, b.slot)
	err := errors.Join(l.tables.six.Delete(appendKey(nil, p6)), l.tables.four.Delete(appendKey(nil, p4)), l.tables.used.Put(b.slot, uint32(0)))
	if err != nil {
		return fmt.Errorf("fastpath: remove %v: %w", v4, err)
	}
	delete(l.bound, v4)
	l.free = append(l.free, b.slot)
	return nil
}

// takeUses touches the bindings that packets used since the last time.
func (l *Link) takeUses(s *tableSet, list map[netip.Addr]bound) {
	for _, b := range list {
		var used uint32
		if s.used.Lookup(b.slot, &used) == nil && used != 0 {
			if s.used.Put(b.slot, uint32(0)) == nil {
				b.pool.Touch(b.v6)
			}
		}
	}
}

// Stats returns the counters since Attach, and adds what is new to the
// counters of the translator.
func (l *Link) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats()
}

func (l *Link) stats() Stats {
	var s Stats
	if l.counters == nil {
		return s
	}
	var sums [numSlots]uint64
	for i := range sums {
		var per []uint64
		if l.counters.Lookup(uint32(i), &per) == nil {
			for _, n := range per {
				sums[i] += n
			}
		}
	}
	s.Packets64, s.Bytes64 = sums[slot64Packets], sums[slot64Bytes]
	s.Packets46, s.Bytes46 = sums[slot46Packets], sums[slot46Bytes]
	copy(s.Punted[:], sums[slotPunt:])
	s.Bindings, s.SkippedBindings = len(l.bound), l.skipped
	l.t.Add(nat64.Translated64, s.Packets64-l.added[0])
	l.t.Add(nat64.Translated46, s.Packets46-l.added[1])
	l.added = [2]uint64{s.Packets64, s.Packets46}
	return s
}

// Interfaces lists the interfaces and how the program is attached to each,
// such as "wan0 (tcx)".
func (l *Link) Interfaces() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var s []string
	for _, h := range l.hooks {
		s = append(s, h.name+" ("+h.how()+")")
	}
	return s
}

// Close detaches the programs and frees everything. Packets take the slow
// path from then on. It is safe to call twice.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	close(l.stop)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeUses(l.tables, l.bound)
	err := l.release()
	return err
}

// release frees whatever there is, counting the last packets.
func (l *Link) release() error {
	var errs []error
	for _, h := range l.hooks {
		errs = append(errs, h.close())
	}
	l.stats()
	if l.tables != nil {
		l.tables.close()
	}
	for _, m := range []*ebpf.Map{l.ids, l.counters} {
		if m != nil {
			m.Close()
		}
	}
	l.counters = nil
	return errors.Join(errs...)
}
