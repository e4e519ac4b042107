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
// loads tiny programs and leaves nothing behind. Want of privilege is an error
// that wraps EPERM.
func Supported() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("fastpath: uname: %w", err)
	}
	if err := checkRelease(unix.ByteSliceToString(u.Release[:])); err != nil {
		return err
	}
	for _, f := range []asm.BuiltinFunc{asm.FnSkbChangeProto, asm.FnL4CsumReplace, asm.FnSkbPullData, asm.FnRedirectNeigh} {
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

// tableSet are the maps that the programs of one configuration share, and what
// is known of their contents. A new configuration gets a new set.
type tableSet struct {
	cfg             nat64.Config
	six, four, used *ebpf.Map
	bound           map[netip.Addr]bound // by IPv4 address
	versions        map[*nat64.Pool]uint64
	free            []uint32 // slots of the map of uses
	skipped         int
	crowded         bool // an entry from IPv6 overlaps the prefix
}

// bound is a pool binding that is in the tables.
type bound struct {
	v6   netip.Addr
	pool *nat64.Pool
	slot uint32
	both bool // in the table from IPv6, too, where nothing else maps the host
}

func (s *tableSet) close() {
	for _, m := range []*ebpf.Map{s.six, s.four, s.used} {
		if m != nil {
			m.Close()
		}
	}
}

// Link is the fast path of one translator, attached to interfaces. It has a
// goroutine of its own, which [Link.Close] ends.
type Link struct {
	t *nat64.Translator
	o Options

	mu       sync.Mutex
	tables   *tableSet
	ids      *ebpf.Map
	counters *ebpf.Map
	hooks    []*hook
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
// lost. It waits for no packet. If tables or programs cannot be made the former
// ones stay in place. An interface that refuses to swap has no program
// afterwards, so its packets take the slow path, the others have the new one;
// Sync may be called again.
func (l *Link) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("fastpath: %w", os.ErrClosed)
	}
	return l.sync()
}

func (l *Link) sync() error {
	// All that can fail for want of memory or privilege comes before the
	// first program is swapped in.
	tables, err := newTables(l.t.Config(), l.o.MaxBindings)
	if err != nil {
		return err
	}
	var programs []*ebpf.Program
	fail := func(err error) error {
		for _, p := range programs {
			p.Close()
		}
		tables.close()
		return err
	}
	if err := tables.syncPools(); err != nil {
		return fail(err)
	}
	for _, h := range l.hooks {
		p, err := l.load(tables, h)
		if err != nil {
			return fail(err)
		}
		programs = append(programs, p)
	}
	old := l.tables
	l.tables = tables
	// Where the swap fails the old program would go by tables that nobody
	// maintains any more: without one packets take the slow path.
	var failed error
	for i, h := range l.hooks {
		if err := h.attach(programs[i]); err != nil {
			programs[i].Close()
			failed = errors.Join(failed, err, h.close())
		}
	}
	if old != nil { // a program that still uses the maps holds on to them
		old.takeUses()
		old.close()
	}
	return failed
}

// newTables makes the tables of a configuration, with room for bindings.
func newTables(cfg nat64.Config, room int) (_ *tableSet, err error) {
	e := fromConfig(cfg)
	if len(cfg.Pools) == 0 {
		room = 1
	}
	s := &tableSet{cfg: cfg, bound: map[netip.Addr]bound{}, versions: map[*nat64.Pool]uint64{}}
	for i := room; i > 0; i-- {
		s.free = append(s.free, uint32(i-1))
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	const noPrealloc = unix.BPF_F_NO_PREALLOC // the kernel demands it of these maps
	if s.six, err = newMap(&ebpf.MapSpec{Name: "sb_table64", Type: ebpf.LPMTrie, KeySize: keyLen6, ValueSize: valueLen64, MaxEntries: uint32(len(e.v6) + room), Flags: noPrealloc}); err != nil {
		return nil, err
	}
	if s.four, err = newMap(&ebpf.MapSpec{Name: "sb_table46", Type: ebpf.LPMTrie, KeySize: keyLen4, ValueSize: valueLen46, MaxEntries: uint32(len(e.v4) + room), Flags: noPrealloc}); err != nil {
		return nil, err
	}
	if s.used, err = newMap(&ebpf.MapSpec{Name: "sb_used", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: uint32(room)}); err != nil {
		return nil, err
	}
	var key, value []byte
	for p, v := range e.v6 {
		if cfg.Prefix.IsValid() && p.Overlaps(cfg.Prefix.Netip()) {
			s.crowded = true
		}
		key, value = appendKey(key[:0], p), v.append(value[:0])
		if err := s.six.Put(key, value); err != nil {
			return nil, fmt.Errorf("fastpath: table entry %v: %w", p, err)
		}
	}
	for p, v := range e.v4 {
		key, value = appendKey(key[:0], p), v.append(value[:0])
		if err := s.four.Put(key, value); err != nil {
			return nil, fmt.Errorf("fastpath: table entry %v: %w", p, err)
		}
	}
	return s, nil
}

// prefixAlone reports whether nothing in the table from IPv6 overlaps the
// prefix. It stays so: a host in the prefix is mapped by it and never gets an
// address from a pool.
func (s *tableSet) prefixAlone() bool {
	if s.crowded || !s.cfg.Prefix.IsValid() {
		return false
	}
	p := s.cfg.Prefix.Netip()
	for _, b := range s.bound {
		if p.Contains(b.v6) {
			return false
		}
	}
	return true
}

// load assembles and loads the program for one interface.
func (l *Link) load(s *tableSet, h *hook) (*ebpf.Program, error) {
	c := FromTranslator(s.cfg)
	c.EAMDestinations = l.o.EAMDestinations
	c.NoLinkHeader = h.noLinkHeader
	for _, n := range []struct {
		name  string
		index *int
	}{{l.o.Neighbour4, &c.Neighbour4}, {l.o.Neighbour6, &c.Neighbour6}} {
		if n.name == "" {
			continue
		}
		i, err := net.InterfaceByName(n.name)
		if err != nil {
			return nil, fmt.Errorf("fastpath: interface %s: %w", n.name, err)
		}
		*n.index = i.Index
	}
	return loadProgram(c, s, l.ids, l.counters)
}

func loadProgram(c Config, s *tableSet, ids, counters *ebpf.Map) (*ebpf.Program, error) {
	c.PrefixAlone = s.prefixAlone()
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
			if err := l.tables.syncPools(); err != nil {
				l.tables.skipped++
			}
			l.mu.Unlock()
		case <-uses.C:
			l.mu.Lock()
			l.tables.takeUses()
			l.mu.Unlock()
			l.Stats()
		}
	}
}

// syncPools brings the tables in step with bindings that were made or ended.
func (s *tableSet) syncPools() error {
	for _, pool := range s.cfg.Pools {
		v := pool.Version()
		if known, ok := s.versions[pool]; ok && known == v {
			continue
		}
		now := map[netip.Addr]netip.Addr{}
		for b := range pool.Bindings() {
			now[b.V4] = b.V6
		}
		for v4, b := range s.bound {
			if b.pool == pool && now[v4] != b.v6 {
				if err := s.unbind(v4, b); err != nil {
					return err
				}
			}
		}
		for v4, v6 := range now {
			if _, ok := s.bound[v4]; ok {
				continue
			}
			if len(s.free) == 0 {
				s.skipped++ // it keeps to the slow path
				continue
			}
			slot := s.free[len(s.free)-1]
			p6, x, p4, y := binding(v4, v6, slot)
			b := bound{v6, pool, slot, !s.mapped(p6)}
			if b.both {
				if err := s.six.Put(appendKey(nil, p6), x.append(nil)); err != nil {
					return err
				}
			}
			if err := s.four.Put(appendKey(nil, p4), y.append(nil)); err != nil {
				if b.both {
					err = errors.Join(err, remove(s.six, p6))
				}
				return err
			}
			s.free = s.free[:len(s.free)-1]
			s.bound[v4] = b
		}
		s.versions[pool] = v
	}
	return nil
}

func (s *tableSet) unbind(v4 netip.Addr, b bound) error {
	p6, _, p4, _ := binding(v4, b.v6, b.slot)
	err := errors.Join(remove(s.four, p4), s.used.Put(b.slot, uint32(0)))
	if b.both {
		err = errors.Join(err, remove(s.six, p6))
	}
	if err != nil {
		return fmt.Errorf("fastpath: remove %v: %w", v4, err)
	}
	delete(s.bound, v4)
	s.free = append(s.free, b.slot)
	return nil
}

// mapped reports whether something that the translator asks before this pool
// maps a host: an EAM, the prefix, a pool that knows it already.
func (s *tableSet) mapped(host netip.Prefix) bool {
	if s.cfg.Prefix.Contains(host.Addr()) {
		return true
	}
	var v [valueLen64]byte
	return !errors.Is(s.six.Lookup(appendKey(nil, host), &v), ebpf.ErrKeyNotExist)
}

// remove deletes an entry, if it is not gone already.
func remove(m *ebpf.Map, p netip.Prefix) error {
	if err := m.Delete(appendKey(nil, p)); !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// takeUses touches the bindings that packets used since the last time.
func (s *tableSet) takeUses() {
	for _, b := range s.bound {
		var used uint32
		if s.used.Lookup(b.slot, &used) == nil && used != 0 {
			if s.used.Put(b.slot, uint32(0)) == nil {
				b.pool.Touch(b.v6)
			}
		}
	}
}

// Stats returns the counters since Attach, and adds what is new of the packets
// translated to the counters of the translator ([nat64.Translator.Add]). The Link
// does so by itself every 15 s.
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
	if l.tables != nil {
		s.Bindings, s.SkippedBindings = len(l.tables.bound), l.tables.skipped
	}
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
	l.tables.takeUses()
	return l.release()
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
