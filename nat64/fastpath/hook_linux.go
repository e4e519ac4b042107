package fastpath

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	filterName     = "signalbox-nat64"
	filterHandle   = 0x5164
	filterPriority = 0x64
)

// hook is the place on one interface where the program sits: a tcx link, or a
// clsact filter where the kernel has no tcx (before Linux 6.6).
type hook struct {
	name         string
	index        int
	noLinkHeader bool

	tcx       link.Link
	filter    *netlink.BpfFilter
	madeQdisc bool
	program   *ebpf.Program
}

func newHook(name string) (*hook, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("fastpath: interface %s: %w", name, err)
	}
	h := &hook{name: name, index: l.Attrs().Index}
	switch l.Attrs().EncapType {
	case "ether", "loopback":
	case "none", "ppp", "tunnel", "tunnel6", "sit", "ipgre", "ip6gre":
		h.noLinkHeader = true
	default:
		return nil, fmt.Errorf("fastpath: interface %s has link type %q, which the program does not know", name, l.Attrs().EncapType)
	}
	return h, nil
}

// attach puts a program in place of the former one and takes it over.
func (h *hook) attach(p *ebpf.Program) error {
	var err error
	switch {
	case h.tcx != nil:
		err = h.tcx.Update(p)
	case h.filter != nil:
		err = h.setFilter(p)
	default:
		h.tcx, err = link.AttachTCX(link.TCXOptions{Interface: h.index, Program: p, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			h.tcx = nil
			if tcxErr := err; noTCX(err) {
				if err = h.setFilter(p); err != nil {
					err = errors.Join(err, tcxErr)
				}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("fastpath: attach to %s: %w", h.name, err)
	}
	if h.program != nil {
		h.program.Close()
	}
	h.program = p
	return nil
}

// noTCX recognises a kernel that does not know tcx links.
func noTCX(err error) bool {
	return errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL)
}

// setFilter attaches by a clsact filter, which replaces one that an earlier
// process left behind.
func (h *hook) setFilter(p *ebpf.Program) error {
	if h.filter == nil {
		qdisc := &netlink.GenericQdisc{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: h.index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
			QdiscType:  "clsact",
		}
		switch err := netlink.QdiscAdd(qdisc); {
		case err == nil:
			h.madeQdisc = true
		case !errors.Is(err, unix.EEXIST):
			return fmt.Errorf("clsact: %w", err)
		}
	}
	f := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: h.index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: filterHandle,
			Priority: filterPriority, Protocol: unix.ETH_P_ALL,
		},
		Fd: p.FD(), Name: filterName, DirectAction: true,
	}
	if err := netlink.FilterReplace(f); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	h.filter = f
	return nil
}

func (h *hook) how() string {
	if h.filter != nil {
		return "clsact"
	}
	return "tcx"
}

// close detaches. An interface that is gone took the program with it.
func (h *hook) close() error {
	var errs []error
	if h.tcx != nil {
		errs = append(errs, h.tcx.Close())
		h.tcx = nil
	}
	if h.filter != nil {
		if _, err := net.InterfaceByIndex(h.index); err == nil {
			errs = append(errs, netlink.FilterDel(h.filter))
			if h.madeQdisc {
				errs = append(errs, h.removeQdisc())
			}
		}
		h.filter = nil
	}
	if h.program != nil {
		errs = append(errs, h.program.Close())
		h.program = nil
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("fastpath: detach from %s: %w", h.name, err)
	}
	return nil
}

// removeQdisc removes the clsact qdisc that the hook made, unless somebody
// else has put filters there.
func (h *hook) removeQdisc() error {
	l, err := netlink.LinkByIndex(h.index)
	if err != nil {
		return err
	}
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		if list, err := netlink.FilterList(l, parent); err != nil || len(list) > 0 {
			return err
		}
	}
	return netlink.QdiscDel(&netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: h.index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
		QdiscType:  "clsact",
	})
}

// seedIDs starts the identification counters at random values.
func (l *Link) seedIDs() error {
	for i := range uint32(idCounters) {
		if err := l.ids.Put(i, rand.Uint32()); err != nil {
			return fmt.Errorf("fastpath: counters: %w", err)
		}
	}
	return nil
}
