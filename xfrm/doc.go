// Package xfrm speaks Linux's IPsec netlink protocol, the XFRM user API, as
// plain bytes: it builds, parses and checks every message, and prints and
// reads what `ip xfrm` prints. It needs no kernel, builds on every system and
// depends on nothing; package conn beside it is the socket.
//
// A state, checked and built:
//
//	aead, err := xfrm.AESGCM16(keyAndSalt) // 20, 28 or 36 octets
//	if err != nil { ... }
//	sa, err := xfrm.NewInbound(xfrm.SA{
//		Src: src, Dst: dst, SPI: 0x1000, Proto: xfrm.ESP, Mode: xfrm.Tunnel, AEAD: aead,
//	}, 64) // the replay window has to be chosen
//	if err != nil { ... }
//	if err := sa.Check(); err != nil { ... }
//	msg, err := xfrm.AppendNewSA(nil, xfrm.Header{Flags: xfrm.FlagRequest | xfrm.FlagAck, Seq: 1}, &sa)
//
// [AppendNewSA], [AppendNewPolicy] and their like append a message to a
// buffer; [SA.Parse], [Policy.Parse] and [ParseEvent] read one. [Messages]
// walks a datagram. [SA.AppendText] and [ParseText] are the text of `ip
// xfrm`, [ParseCommand] reads its commands, [AppendJSON] writes JSON, [Diff]
// computes the least changes between two sets. Attributes that this package
// does not know are kept and sent again.
//
// # When to use it
//
// Use it to manage or watch IPsec states and policies from Go: many at once,
// with rules checked before they are sent, in text that `ip xfrm` understands,
// or away from Linux. The file matrix.md beside the source lists what is proven
// with packets on which kernel. A program that already uses
// github.com/vishvananda/netlink for links, addresses and routes and has a
// handful of states can stay with it: this package knows nothing of those but
// the vti, vti6 and xfrm interfaces that IPsec needs. It does not negotiate keys
// either: for IKE run strongSwan or libreswan, which install their states
// themselves, and which this package can then watch. At a shell
// `ip xfrm` is enough.
//
// # Units and byte order
//
// Fields are in host order with the units in their names; lifetimes are in
// seconds, octets and packets, lengths of ICVs in bits, keys in octets. On the
// wire everything is in the system's byte order but ports, SPIs, addresses
// and the keys of vti devices. Structures follow the alignment of GOARCH: 386
// aligns 64-bit integers to 4 octets, all others to 8. Messages of another
// architecture cannot be read.
//
// Zero values are the harmless choice: a [Lifetime] of zeros has no limit, a
// [Template] permits every algorithm, a replay window of 0 has to be asked for
// by name. An address family comes from the message's family field and never
// from its octets.
//
// Text is that of iproute2 6.1, including its oddities; with [TextOptions.Full]
// lines that begin with "extra" say what iproute2 has no words for, and
// nothing is lost. Names that could forge a line are quoted.
//
// # Check
//
// [SA.Check] and [Policy.Check] apply the kernel's rules, in the kernel's
// words, and some of this package's own. Refused on purpose, although Linux
// accepts it:
//
//   - SPI 0 for ESP, AH and IPComp: such a state cannot be deleted by name
//   - an ESP cipher without authentication (other than the null cipher), also
//     with digest_null
//   - SHA-256 without an explicit truncation, which Linux cuts to 96 bits
//   - an empty HMAC key; a truncation below 64 bits or not of whole octets
//   - a window above 32 in the octet of the fixed part, which Linux caps
//   - a mark whose value has bits outside of its mask: it never matches; an
//     output mark of which only the mask is given: it does nothing
//   - a byte or packet limit of zero, which the first packet exceeds
//   - route optimization or a care-of address with an IPsec protocol
//   - a template that permits no authentication algorithm
//   - with [SA.CheckOn], what the kernel in question would silently ignore
//
// Linux 6.12 refuses, and Check accepts unless told of that kernel, IP-TFS
// (6.14), MIGRATE_STATE (7.2) and ESP in TCP where it is not compiled in.
//
// # Buffers
//
// AppendNewSA and the other functions that make a message append it to the
// buffer that they are given, as the built-in append does. Between two messages
// of one datagram call [Pad]. After an error they return the buffer as it was,
// [AppendChange] excepted. The Parse methods copy what they keep; only [Message] and the
// attributes of [Attrs] and [Message.Attributes] refer to the octets they were
// found in. Parsing into the same value again reuses its memory.
//
// The functions that make an algorithm of a key ([AESGCM16], [HMACSHA256] and
// so on) copy the key. A key of a wrong length gives a [*RuleError].
//
// # Secrets
//
// A [Key] prints as a placeholder in every format of package fmt and in JSON;
// [SA.AppendText] and [AppendJSON] show it only if asked to. Errors never hold
// key material. [SA.ClearKeys] overwrites it, also where a shorter key
// replaced a longer one.
//
// # Errors
//
// Malformed messages and values that do not fit give a [*FormatError] that
// wraps one of the sentinels ([ErrShort] and the others); broken rules a
// [*RuleError] with the field; text a [*SyntaxError] with the line; the
// kernel's refusals an [*AckError] with errno, text and, after
// [AckError.Locate], the attribute it points at.
//
// # Concurrency
//
// Functions may be called from any goroutine. A value may be read by several
// at once; Parse and ClearKeys need it alone.
//
// # Specifications
//
//   - [1] Linux, include/uapi/linux/xfrm.h as of 7.2, net/xfrm
//   - [2] RFC 3549, netlink; RFC 4301, IPsec
//   - [3] RFC 4303, RFC 4302, RFC 3173: ESP, AH, IPComp
//   - [4] RFC 4106, 4309, 4543, 7634: combined algorithms
//   - [5] RFC 4868, 2404, 3566, 4494: authentication and its truncation
//   - [6] RFC 9347, IP-TFS; RFC 6275, Mobile IPv6; RFC 3948, UDP encapsulation
//   - [7] ip-xfrm(8) of iproute2
package xfrm
