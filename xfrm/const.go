package xfrm

import (
	"fmt"
	"strconv"
)

// MsgType is the type of an XFRM netlink message (XFRM_MSG_*).
type MsgType uint16

// Message types. NEWSA, NEWPOLICY and NEWSPDINFO serve both as requests and
// as the kernel's answers; UPDSA and UPDPOLICY notify under their own type.
const (
	NewSA           MsgType = 0x10 + iota // body: [SA]
	DelSA                                 // body: [SAID]; as a notification [SAID] and a whole [SA]
	GetSA                                 // body: [SAID], or nothing but attributes in a dump
	NewPolicy                             // body: [Policy]
	DelPolicy                             // body: [PolicyID]; as a notification with a whole [Policy]
	GetPolicy                             // body: [PolicyID], or nothing in a dump
	AllocSPI                              // body: [SPIRequest]
	MsgAcquire                            // body: [Acquire]
	MsgExpire                             // body: [Expire]
	UpdPolicy                             // body: [Policy]
	UpdSA                                 // body: [SA]
	MsgPolExpire                          // body: [PolExpire]
	FlushSA                               // body: one octet of protocol
	FlushPolicy                           // body: attributes only
	NewAE                                 // body: [AsyncEvent]
	GetAE                                 // body: [AsyncEvent]
	MsgReport                             // body: [Report]
	MsgMigrate                            // body: [Migrate]
	NewSADInfo                            // body: [SADInfo]
	GetSADInfo                            // body: 32 bits of flags
	NewSPDInfo                            // body: [SPDInfo]
	GetSPDInfo                            // body: 32 bits of flags
	MsgMapping                            // body: [Mapping]
	SetDefault                            // body: [Default]
	GetDefault                            // body: [Default]; also the answer and the notification
	MsgMigrateState                       // body: [MigrateState]
)

// Netlink's own message types, which share the number space.
const (
	MsgNoop  MsgType = 1
	MsgError MsgType = 2 // an acknowledgement or an error, see [ParseAck]
	MsgDone  MsgType = 3 // the end of a dump
)

var msgNames = [...]string{"newsa", "delsa", "getsa", "newpolicy", "delpolicy", "getpolicy", "allocspi", "acquire",
	"expire", "updpolicy", "updsa", "polexpire", "flushsa", "flushpolicy", "newae", "getae", "report", "migrate",
	"newsadinfo", "getsadinfo", "newspdinfo", "getspdinfo", "mapping", "setdefault", "getdefault", "migrate_state"}

func (t MsgType) String() string {
	switch {
	case t >= NewSA && t <= MsgMigrateState:
		return msgNames[t-NewSA]
	case t == MsgNoop:
		return "noop"
	case t == MsgError:
		return "error"
	case t == MsgDone:
		return "done"
	}
	return "0x" + strconv.FormatUint(uint64(t), 16)
}

// AttrType is the type of an XFRM attribute (XFRMA_*).
type AttrType uint16

// Attribute types, as of Linux 7.2.
const (
	AttrAuth            AttrType = 1 + iota // struct xfrm_algo
	AttrCrypt                               // struct xfrm_algo
	AttrComp                                // struct xfrm_algo
	AttrEncap                               // struct xfrm_encap_tmpl
	AttrTemplate                            // one or more struct xfrm_user_tmpl
	AttrSA                                  // struct xfrm_usersa_info
	AttrPolicy                              // struct xfrm_userpolicy_info
	AttrSecCtx                              // struct xfrm_user_sec_ctx and text
	AttrLifetime                            // struct xfrm_lifetime_cur
	AttrReplay                              // struct xfrm_replay_state
	AttrReplayThresh                        // u32 packets
	AttrETimerThresh                        // u32, 100 ms each
	AttrSrcAddr                             // xfrm_address_t
	AttrCoAddr                              // xfrm_address_t
	AttrLastUsed                            // u64 seconds
	AttrPolicyType                          // struct xfrm_userpolicy_type
	AttrMigrate                             // one or more struct xfrm_user_migrate
	AttrAEAD                                // struct xfrm_algo_aead
	AttrKMAddress                           // struct xfrm_user_kmaddress
	AttrAuthTrunc                           // struct xfrm_algo_auth
	AttrMark                                // struct xfrm_mark
	AttrTFCPad                              // u32 octets
	AttrReplayESN                           // struct xfrm_replay_state_esn
	AttrExtraFlags                          // u32
	AttrProto                               // u8
	AttrAddressFilter                       // struct xfrm_address_filter
	AttrPad                                 // padding before a 64-bit attribute
	AttrOffload                             // struct xfrm_user_offload
	AttrSetMark                             // u32
	AttrSetMarkMask                         // u32
	AttrIfID                                // u32 interface id
	AttrMTimerThresh                        // u32 seconds
	AttrSADir                               // u8
	AttrNATKeepalive                        // u32 seconds
	AttrSAPCPU                              // u32 CPU
	AttrIPTFSDropTime                       // u32 microseconds
	AttrIPTFSReorderWin                     // u16 packets
	AttrIPTFSDontFrag                       // flag
	AttrIPTFSInitDelay                      // u32 microseconds
	AttrIPTFSMaxQueue                       // u32 octets
	AttrIPTFSPktSize                        // u32 octets
)

var attrNames = [...]string{"unspec", "alg_auth", "alg_crypt", "alg_comp", "encap", "tmpl", "sa", "policy", "sec_ctx",
	"ltime_val", "replay_val", "replay_thresh", "etimer_thresh", "srcaddr", "coaddr", "lastused", "policy_type",
	"migrate", "alg_aead", "kmaddress", "alg_auth_trunc", "mark", "tfcpad", "replay_esn_val", "sa_extra_flags",
	"proto", "address_filter", "pad", "offload_dev", "set_mark", "set_mark_mask", "if_id", "mtimer_thresh", "sa_dir",
	"nat_keepalive_interval", "sa_pcpu", "iptfs_drop_time", "iptfs_reorder_window", "iptfs_dont_frag",
	"iptfs_init_delay", "iptfs_max_qsize", "iptfs_pkt_size"}

func (t AttrType) String() string {
	if int(t) < len(attrNames) {
		return attrNames[t]
	}
	return "attr" + strconv.Itoa(int(t))
}

// Group is a netlink multicast group of the XFRM family (XFRMNLGRP_*). Join
// it by number (NETLINK_ADD_MEMBERSHIP); the old bit mask covers only some.
type Group uint32

// Multicast groups.
const (
	GroupAcquire Group = 1 + iota // [Acquire]
	GroupExpire                   // [Expire] and [PolExpire]
	GroupSA                       // [SAChange], and [Flush] of states
	GroupPolicy                   // [PolicyChange], [Flush] of policies, [Default]
	GroupAEvents                  // [AsyncEvent]
	GroupReport                   // [Report]
	GroupMigrate                  // [Migrate]
	GroupMapping                  // [Mapping]
)

var groupNames = [...]string{"none", "acquire", "expire", "sa", "policy", "aevents", "report", "migrate", "mapping"}

func (g Group) String() string {
	if int(g) < len(groupNames) {
		return groupNames[g]
	}
	return strconv.FormatUint(uint64(g), 10)
}

// Family is an address family of the kernel, with Linux's numbers on every
// system.
type Family uint16

// Address families.
const (
	Unspec Family = 0
	IPv4   Family = 2
	IPv6   Family = 10
)

func (f Family) String() string {
	switch f {
	case Unspec:
		return "unspec"
	case IPv4:
		return "inet"
	case IPv6:
		return "inet6"
	}
	return strconv.Itoa(int(f))
}

// Proto is the protocol of a state or template: an IPsec or Mobile IPv6
// protocol by its IP protocol number.
type Proto uint8

// Protocols. AnyIPsec in a flush or dump means ESP, AH and IPComp.
const (
	AnyProto Proto = 0
	IPIP     Proto = 4
	IP6IP    Proto = 41
	Route2   Proto = 43 // Mobile IPv6 type 2 routing header
	ESP      Proto = 50
	AH       Proto = 51
	HAO      Proto = 60 // Mobile IPv6 home address option
	Comp     Proto = 108
	AnyIPsec Proto = 255
)

func (p Proto) String() string {
	switch p {
	case ESP:
		return "esp"
	case AH:
		return "ah"
	case Comp:
		return "comp"
	case Route2:
		return "route2"
	case HAO:
		return "hao"
	case AnyIPsec:
		return "ipsec-any"
	}
	return strconv.Itoa(int(p))
}

// ipsec reports whether the protocol is one of ESP, AH and IPComp, which have
// an SPI and algorithms.
func (p Proto) ipsec() bool { return p == ESP || p == AH || p == Comp }

// Mode says how a state transforms packets.
type Mode uint8

// Modes.
const (
	Transport Mode = iota
	Tunnel
	RouteOptimization // Mobile IPv6
	InTrigger         // Mobile IPv6
	BEET              // bound end-to-end tunnel
	IPTFS             // RFC 9347, Linux 6.14
)

var modeNames = [...]string{"transport", "tunnel", "ro", "in_trigger", "beet", "iptfs"}

func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return strconv.Itoa(int(m))
}

// Dir is the direction of a policy.
type Dir uint8

// Policy directions. Policies of sockets have the numbers 3 (in), 4 (out) and
// 5 (fwd).
const (
	In  Dir = iota // packets for this host
	Out            // packets that leave
	Fwd            // packets that are forwarded
)

func (d Dir) String() string {
	switch d {
	case In:
		return "in"
	case Out:
		return "out"
	case Fwd:
		return "fwd"
	}
	if d >= 3 && d <= 5 {
		return "socket " + (d - 3).String()
	}
	return strconv.Itoa(int(d))
}

// SADir is the direction of a state (XFRMA_SA_DIR, Linux 6.10). The zero
// value leaves it open, as every older kernel does.
type SADir uint8

// State directions.
const (
	SAIn  SADir = 1
	SAOut SADir = 2
)

func (d SADir) String() string {
	switch d {
	case 0:
		return "any"
	case SAIn:
		return "in"
	case SAOut:
		return "out"
	}
	return strconv.Itoa(int(d))
}

// PolicyType separates the main policies from the sub policies of Mobile
// IPv6, which are looked up first.
type PolicyType uint8

// Policy types.
const (
	PolicyMain PolicyType = 0
	PolicySub  PolicyType = 1
	PolicyAny  PolicyType = 255 // the kernel's own word for both
)

func (t PolicyType) String() string {
	switch t {
	case PolicyMain:
		return "main"
	case PolicySub:
		return "sub"
	}
	return strconv.Itoa(int(t))
}

// Action is what a policy does with a packet.
type Action uint8

// Policy actions.
const (
	Allow Action = 0
	Block Action = 1
)

func (a Action) String() string {
	switch a {
	case Allow:
		return "allow"
	case Block:
		return "block"
	}
	return strconv.Itoa(int(a))
}

// Share says who may share the states of a template.
type Share uint8

// Share values, by iproute2's names. The kernel stores and reports them.
const (
	ShareAny Share = iota
	ShareSession
	ShareUser
	ShareUnique
)

func (s Share) String() string {
	switch s {
	case ShareAny:
		return "any"
	case ShareSession:
		return "session"
	case ShareUser:
		return "user"
	case ShareUnique:
		return "unique"
	}
	return strconv.Itoa(int(s))
}

// Level says whether a template must be met.
type Level uint8

// Levels.
const (
	Required Level = 0 // without a state the packet does not pass
	Use      Level = 1 // without a state the template is skipped
)

func (l Level) String() string {
	switch l {
	case Required:
		return "required"
	case Use:
		return "use"
	}
	return strconv.Itoa(int(l))
}

// SAFlags are the flags of a state.
type SAFlags uint8

// State flags.
const (
	NoECN      SAFlags = 1 << iota // do not copy ECN bits from the outer header
	DecapDSCP                      // copy the DSCP from the outer header
	NoPMTUDisc                     // do not discover the path's MTU
	WildRecv                       // any source address is accepted
	ICMP                           // also transform ICMP errors about the flow
	AFUnspec                       // one tunnel state for both address families
	Align4                         // IPv6 AH: align to 4, not 8
	ESN                            // extended sequence numbers
)

var saFlagNames = []string{"noecn", "decap-dscp", "nopmtudisc", "wildrecv", "icmp", "af-unspec", "align4", "esn"}

func (f SAFlags) String() string { return flagText(uint32(f), saFlagNames) }

// ExtraFlags are the further flags of a state (XFRMA_SA_EXTRA_FLAGS).
type ExtraFlags uint32

// Extra state flags.
const (
	DontEncapDSCP ExtraFlags = 1 << iota // outer DSCP 0 instead of a copy
	OSeqMayWrap                          // the outbound sequence number may wrap
)

var extraFlagNames = []string{"dont-encap-dscp", "oseq-may-wrap"}

func (f ExtraFlags) String() string { return flagText(uint32(f), extraFlagNames) }

// PolicyFlags are the flags of a policy.
type PolicyFlags uint8

// Policy flags.
const (
	LocalOK    PolicyFlags = 1 << iota // a socket's policy may override it
	PolicyICMP                         // also covers ICMP errors about the flow
	CPUAcquire                         // acquire a state per CPU (Linux 6.12)
)

var policyFlagNames = []string{"localok", "icmp", "cpu-acquire"}

func (f PolicyFlags) String() string { return flagText(uint32(f), policyFlagNames) }

// flagText joins the names of the bits that are set; bits without a name
// follow as one hexadecimal number.
func flagText(f uint32, names []string) string {
	return string(appendFlags(nil, f, names))
}

func appendFlags(b []byte, f uint32, names []string) []byte {
	sep := false
	for i, n := range names {
		if f&(1<<i) == 0 {
			continue
		}
		f &^= 1 << i
		if sep {
			b = append(b, ' ')
		}
		b, sep = append(b, n...), true
	}
	if f != 0 {
		if sep {
			b = append(b, ' ')
		}
		b = fmt.Appendf(b, "0x%x", f)
	}
	return b
}

// EncapType is how ESP is wrapped for its way through NAT.
type EncapType uint16

// Encapsulation types.
const (
	ESPInUDPNonIKE EncapType = 1 // the draft's form, with eight octets of zero before ESP
	ESPInUDP       EncapType = 2 // RFC 3948
	ESPInTCP       EncapType = 7 // RFC 8229
)

func (e EncapType) String() string {
	switch e {
	case ESPInUDPNonIKE:
		return "espinudp-nonike"
	case ESPInUDP:
		return "espinudp"
	case ESPInTCP:
		return "espintcp"
	}
	return strconv.Itoa(int(e))
}

// DefaultAction is what happens to packets that no policy covers.
type DefaultAction uint8

// Default actions. In a request DefaultKeep leaves a direction as it is.
const (
	DefaultKeep   DefaultAction = 0
	DefaultBlock  DefaultAction = 1
	DefaultAccept DefaultAction = 2
)

func (a DefaultAction) String() string {
	switch a {
	case DefaultKeep:
		return "unspec"
	case DefaultBlock:
		return "block"
	case DefaultAccept:
		return "accept"
	}
	return strconv.Itoa(int(a))
}

// AEFlags say what an asynchronous event carries and why it was sent.
type AEFlags uint32

// Event flags: what is asked for or carried, then the cause of a notification.
const (
	AEReplayThresh AEFlags = 1 << iota // ReplayThresh
	AEReplay                           // Replay or ReplayESN
	AELifetime                         // Lifetime
	AETimerThresh                      // ETimerThresh
	AECauseReplay                      // so many packets passed
	AECauseTimer                       // so much time passed
	AECausePolicy                      // somebody set the values
)

var aeFlagNames = []string{"replay-thresh", "replay", "lifetime", "timer-thresh", "cause-replay", "cause-timer", "cause-policy"}

func (f AEFlags) String() string { return flagText(uint32(f), aeFlagNames) }

// OffloadFlags are the flags of a hardware offload request.
type OffloadFlags uint8

// Offload flags.
const (
	OffloadIPv6    OffloadFlags = 1 << iota // reserved: exposed once, never supported
	OffloadInbound                          // the state is an inbound one
	OffloadPacket                           // whole packets, not only cryptography
)

// Netlink header flags that XFRM requests use.
const (
	FlagRequest  uint16 = 0x001
	FlagMulti    uint16 = 0x002
	FlagAck      uint16 = 0x004
	FlagDumpIntr uint16 = 0x010 // the dump was interrupted: its entries may be inconsistent
	FlagReplace  uint16 = 0x100 // required in NewAE
	FlagDump     uint16 = 0x300
	FlagCapped   uint16 = 0x100 // in an acknowledgement: only the header of the request is echoed
	FlagTLVs     uint16 = 0x200 // in an acknowledgement: extended-ack attributes follow
)
