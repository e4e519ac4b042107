package fastpath

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Defaults of [Options].
const (
	DefaultMaxBindings  = 65536
	DefaultPollInterval = 10 * time.Millisecond
)

// useInterval is how often pools learn which of their bindings are in use.
const useInterval = 15 * time.Second

// Options says where and how the fast path works. Only Interfaces must be set.
type Options struct {
	// Interfaces are the real interfaces of both sides by name. VLAN devices
	// are named themselves. Do not name the TUN device of the slow path.
	Interfaces []string
	// EAMDestinations takes IPv6 packets for destinations that the EAM table
	// maps, too. Leave it off where mapped hosts talk to each other natively.
	EAMDestinations bool
	// Neighbour4 and Neighbour6 name the interface that all IPv4 and all IPv6
	// packets leave by after translation; they then go straight to the
	// neighbour, past the stack's routing and netfilter. "": the stack routes.
	Neighbour4, Neighbour6 string
	// MaxBindings bounds the pool bindings that go fast; further ones take
	// the slow path. 0: DefaultMaxBindings.
	MaxBindings int
	// PollInterval is how often pools are looked at for new bindings. 0:
	// DefaultPollInterval.
	PollInterval time.Duration
}

func (o *Options) setDefaults() {
	if o.MaxBindings <= 0 {
		o.MaxBindings = DefaultMaxBindings
	}
	if o.PollInterval <= 0 {
		o.PollInterval = DefaultPollInterval
	}
}

// Stats are the counters of a [Link]. Super-packets count once. Bytes are
// those of the IP packets as they came.
type Stats struct {
	Packets64, Bytes64 uint64 // IPv6 to IPv4
	Packets46, Bytes46 uint64 // IPv4 to IPv6
	// Punted counts packets for the translator that took the slow path, by
	// reason: Punted[PuntFragment] and so on.
	Punted [numPunts]uint64
	// Bindings is how many pool bindings go fast now, SkippedBindings how
	// often one found no room.
	Bindings, SkippedBindings int
}

// minMajor and minMinor are the first Linux release whose
// bpf_skb_change_proto leaves the segment size of super-packets alone.
const (
	minMajor = 5
	minMinor = 14
)

// checkRelease refuses kernels that are too old.
func checkRelease(release string) error {
	major, rest, _ := strings.Cut(release, ".")
	minor := rest
	for i, r := range rest {
		if r < '0' || r > '9' {
			minor = rest[:i]
			break
		}
	}
	x, err1 := strconv.Atoi(major)
	y, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("fastpath: kernel release %q cannot be read", release)
	}
	if x < minMajor || x == minMajor && y < minMinor {
		return fmt.Errorf("fastpath: Linux %s is too old: before %d.%d translation changes the segment size of super-packets", release, minMajor, minMinor)
	}
	return nil
}
