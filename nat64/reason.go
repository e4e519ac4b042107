package nat64

import (
	"iter"
	"strconv"
)

// Reason says what became of a packet and by which rule. The counters of
// [Stats] are kept by reason.
type Reason uint8

// The reasons. String gives each one's short name, Rule its rule in words and
// Section the place that states it.
const (
	// Translated64 and the following are successes.
	Translated64 Reason = iota
	Translated46
	Hairpinned
	FragmentedV6
	FragmentedV4
	EchoAnswered

	// NotIP and the following say that a packet is damaged.
	NotIP
	Truncated
	BadHeader
	BadHeaderChecksum
	BadICMPChecksum
	BadOffload
	NoHeadroom

	// UntranslatableSource and the following concern addresses.
	UntranslatableSource
	UntranslatableDestination
	IllegalSource
	IllegalDestination
	NonGlobalWellKnown
	PoolExhausted

	// HopLimit and the following are answered with an ICMP error.
	HopLimit
	PacketTooBig
	SourceRoute
	SegmentsLeft
	ExtensionAfterFragment
	ZeroChecksumIPv4
	ZeroChecksumIPv6

	// FragmentedICMP and the following are protocols that do not cross.
	FragmentedICMP
	UnknownICMPType
	UnknownICMPCode
	ICMPPointer
	QuotedPacket
	ShortTransport
	UntranslatableProtocol

	numReasons
)

type reasonInfo struct{ name, rule, section string }

func (r Reason) info() reasonInfo {
	switch r {
	case Translated64:
		return reasonInfo{"translated-6to4", "IPv6 packet translated to IPv4", "RFC 7915 section 5"}
	case Translated46:
		return reasonInfo{"translated-4to6", "IPv4 packet translated to IPv6", "RFC 7915 section 4"}
	case Hairpinned:
		return reasonInfo{"hairpinned", "packet from one EAM host to another's IPv4 address, translated there and back", "RFC 7757 section 4.2.2"}
	case FragmentedV6:
		return reasonInfo{"fragmented-ipv6", "IPv4 packet without DF, larger than the lowest IPv6 MTU: translated to IPv6 fragments", "RFC 7915 section 4"}
	case FragmentedV4:
		return reasonInfo{"fragmented-ipv4", "IPv6 packet translated to IPv4 without DF and cut to the IPv4 MTU", "RFC 7915 section 5.1, RFC 791 section 3.2"}
	case EchoAnswered:
		return reasonInfo{"echo-answered", "echo request to the translator's own address, answered", "RFC 792, RFC 4443 section 4.2"}
	case NotIP:
		return reasonInfo{"not-ip", "neither an IPv4 nor an IPv6 packet", "RFC 791 section 3.1, RFC 8200 section 3"}
	case Truncated:
		return reasonInfo{"truncated", "packet ends before its length field or one of its headers says", "RFC 791 section 3.1, RFC 8200 section 3"}
	case BadHeader:
		return reasonInfo{"bad-header", "IP header with an impossible length or fragment", "RFC 791 section 3.1, RFC 8200 section 4.5"}
	case BadHeaderChecksum:
		return reasonInfo{"bad-header-checksum", "IPv4 header checksum is wrong", "RFC 1812 section 5.2.2"}
	case BadICMPChecksum:
		return reasonInfo{"bad-icmp-checksum", "ICMP error with a wrong checksum", "RFC 1122 section 3.2.2, RFC 4443 section 2.3"}
	case BadOffload:
		return reasonInfo{"bad-offload", "offload header that does not fit its packet", "VirtIO 1.2 section 5.1.6"}
	case NoHeadroom:
		return reasonInfo{"no-headroom", "fewer octets in front of the packet than the longer header needs", "Translate"}
	case UntranslatableSource:
		return reasonInfo{"untranslatable-source", "no mapping for the source address", "RFC 7915 sections 4.1 and 5.1"}
	case UntranslatableDestination:
		return reasonInfo{"untranslatable-destination", "no mapping for the destination address", "RFC 7915 sections 4.1 and 5.1"}
	case IllegalSource:
		return reasonInfo{"illegal-source", "source that no host can have: this network, loopback, multicast, reserved", "RFC 7915 section 4.1, RFC 1812 section 5.3.7"}
	case IllegalDestination:
		return reasonInfo{"illegal-destination", "destination that no router forwards to: this network, loopback, multicast, reserved", "RFC 7915 section 1.2, RFC 1812 section 5.3.7"}
	case NonGlobalWellKnown:
		return reasonInfo{"non-global-well-known", "address that is not global behind the well-known prefix", "RFC 6052 section 3.1"}
	case PoolExhausted:
		return reasonInfo{"pool-exhausted", "all addresses of the dynamic pool are in use", "Pool"}
	case HopLimit:
		return reasonInfo{"hop-limit", "time to live or hop limit ran out here", "RFC 7915 sections 4.1 and 5.1"}
	case PacketTooBig:
		return reasonInfo{"packet-too-big", "larger than the next link takes and not to be fragmented", "RFC 7915 sections 4 and 5.1"}
	case SourceRoute:
		return reasonInfo{"source-route", "unexpired source route option", "RFC 7915 section 4.1"}
	case SegmentsLeft:
		return reasonInfo{"segments-left", "routing header with segments left", "RFC 7915 section 5.1"}
	case ExtensionAfterFragment:
		return reasonInfo{"extension-after-fragment", "extension header behind the fragment header", "RFC 7915 section 5.1.1"}
	case ZeroChecksumIPv4:
		return reasonInfo{"zero-checksum-ipv4", "UDP over IPv4 without a checksum", "RFC 7915 section 4.5"}
	case ZeroChecksumIPv6:
		return reasonInfo{"zero-checksum-ipv6", "UDP over IPv6 without a checksum", "RFC 8200 section 8.1"}
	case FragmentedICMP:
		return reasonInfo{"fragmented-icmp", "fragment of an ICMP message: its checksum cannot be translated", "RFC 7915 section 1.2"}
	case UnknownICMPType:
		return reasonInfo{"icmp-type", "ICMP type without a counterpart", "RFC 7915 sections 4.2 and 5.2"}
	case UnknownICMPCode:
		return reasonInfo{"icmp-code", "ICMP code without a counterpart", "RFC 7915 sections 4.2 and 5.2"}
	case ICMPPointer:
		return reasonInfo{"icmp-pointer", "parameter problem at a field without a counterpart", "RFC 7915 figures 3 and 6"}
	case QuotedPacket:
		return reasonInfo{"quoted-packet", "ICMP error whose quoted packet cannot be translated", "RFC 7915 sections 4.3 and 5.3"}
	case ShortTransport:
		return reasonInfo{"short-transport", "packet or first fragment too short for its transport header", "RFC 7915 sections 4.5 and 5.5"}
	case UntranslatableProtocol:
		return reasonInfo{"protocol", "protocol number that means something else, or nothing, in the other family", "RFC 7915 sections 4.1, 4.2 and 5.1"}
	}
	return reasonInfo{"reason-" + strconv.Itoa(int(r)), "", ""}
}

// String returns a short name in lower case, such as "hop-limit".
func (r Reason) String() string { return r.info().name }

// Rule returns the rule in words.
func (r Reason) Rule() string { return r.info().rule }

// Section names the section of the specification that states the rule.
func (r Reason) Section() string { return r.info().section }

// Success reports whether the packet went on, translated or answered.
func (r Reason) Success() bool { return r <= EchoAnswered }

// Reasons returns all reasons in order.
func Reasons() iter.Seq[Reason] {
	return func(yield func(Reason) bool) {
		for r := Reason(0); r < numReasons; r++ {
			if !yield(r) {
				return
			}
		}
	}
}
