package fastpath

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf/asm"

	"signalbox.example/nat64"
)

// Fields of the program's context, struct __sk_buff of linux/bpf.h.
const (
	ctxLen         = 0
	ctxProtocol    = 16
	ctxVLANPresent = 20
	ctxData        = 76
	ctxDataEnd     = 80
	ctxGSOSegs     = 164
	ctxGSOSize     = 176
)

// Verdicts of a tc program. With tcx, actUnspec passes the packet to the next
// program; with a clsact filter, to the next filter. Both end at the stack.
const (
	actUnspec = -1
	actOK     = 0
	actShot   = 2
)

// Flags of bpf_l4_csum_replace.
const (
	csumPseudo = 0x10 // the difference is one of the pseudo-header
	csumMangle = 0x20 // a UDP checksum of zero stays or becomes 0xffff
)

// The stack frame, by distance from the frame pointer. Everything is aligned
// to 8 octets where the program stores 8 octets at once; LPM keys are placed
// so that the address behind the prefix length is.
const (
	fPacket = -64  // 48 octets: IP header and 8 octets of transport header
	fKey    = -92  // LPM key: prefix length at -92, address at -88
	fAddr   = -88  // 16 octets
	fIndex  = -96  // array index u32
	fHeader = -136 // 40 octets: the new IP header
	fEther  = fHeader - 2
	fICMP   = -184 // 44 octets: addresses, length, next header, type
	fType   = -188 // new ICMP type, 4 octets
)

const (
	ethernetLen = 14
	idCounters  = 2048
	df          = 0x4000
	dfLimit     = 1260 // IPv4 length up to which DF stays clear, RFC 7915 section 5.1
)

// Slots of the counter map. From slotPunt on the slots follow Punt.
const (
	slot64Packets = iota
	slot64Bytes
	slot46Packets
	slot46Bytes
	slotPunt
	numSlots = slotPunt + int(numPunts)
)

// Punt is a reason why the program left a packet to the slow path.
type Punt uint8

// The reasons. Packets that are none of the translator's business are not
// counted.
const (
	PuntShort    Punt = iota // shorter than its headers say, or damaged
	PuntProtocol             // neither TCP, UDP nor echo; extension headers; ICMP errors
	PuntFragment             // IPv4 fragment or options
	PuntHops                 // hop limit or TTL about to run out
	PuntAddress              // an address that is mapped by nothing fast
	PuntTooBig               // to be fragmented, or refused as too big
	PuntChecksum             // UDP without checksum
	numPunts
)

// String returns a short name in lower case.
func (p Punt) String() string {
	if p < numPunts {
		return [...]string{"short", "protocol", "fragment", "hops", "address", "too-big", "checksum"}[p]
	}
	return fmt.Sprintf("punt-%d", uint8(p))
}

// The maps that a program uses, by symbol; they are resolved when it is
// loaded.
const (
	map64   = "table64"
	map46   = "table46"
	mapIDs  = "ids"
	mapHits = "counters"
	mapUsed = "used"
)

// Config is what the program is generated from: constants that are compiled
// in. Tables are data and not part of it.
type Config struct {
	// Prefix translates addresses that no table entry maps, if valid.
	Prefix nat64.Prefix
	// MTU4, MTU6 and LowestIPv6MTU are as in [nat64.Config], all set.
	MTU4, MTU6, LowestIPv6MTU int
	// ResetTOS clears TOS and traffic class.
	ResetTOS bool
	// PrefixAlone says that no table entry lies in the prefix or around it, so
	// that a destination in the prefix need not be looked up.
	PrefixAlone bool
	// EAMDestinations takes IPv6 packets whose destination only the table
	// maps.
	EAMDestinations bool
	// NoLinkHeader is for devices that carry bare IP packets.
	NoLinkHeader bool
	// Neighbour4 and Neighbour6 are the indexes of the interfaces that
	// packets of that family leave by, when they are to go straight to the
	// neighbour, past netfilter; 0: let the stack route.
	Neighbour4, Neighbour6 int
	// HairpinSimple leaves packets from IPv4 addresses of the EAM table to the
	// slow path (RFC 7757 section 4.2.1).
	HairpinSimple bool
	// StrictFragmentHeader leaves IPv4 packets without DF to the slow path,
	// which adds a fragment header to them.
	StrictFragmentHeader bool
}

// FromTranslator takes the constants from a translator's configuration.
func FromTranslator(c nat64.Config) Config {
	or := func(v, def int) int {
		if v == 0 {
			return def
		}
		return v
	}
	f := Config{MTU4: or(c.MTU4, nat64.DefaultMTU), MTU6: or(c.MTU6, nat64.DefaultMTU),
		LowestIPv6MTU: or(c.LowestIPv6MTU, nat64.DefaultLowestIPv6MTU), ResetTOS: c.ResetTOS,
		HairpinSimple: c.Hairpin == nat64.HairpinSimple, StrictFragmentHeader: c.StrictFragmentHeader}
	f.LowestIPv6MTU = min(f.LowestIPv6MTU, f.MTU6)
	if c.Mapper == nil { // a mapper would be asked before the prefix
		f.Prefix = c.Prefix
	}
	return f
}

// An assembler collects instructions. Its small methods read as the machine
// does; registers keep these roles throughout:
//
//	R6 context   R7 transport protocol   R8 checksum difference   R9 length behind the IP header
type assembler struct {
	asm.Instructions
	cfg   Config
	l2    int32 // length of the link header
	label string
	n     int
}

func (a *assembler) do(ins ...asm.Instruction) {
	for _, i := range ins {
		if a.label != "" {
			i = i.WithSymbol(a.label)
			a.label = ""
		}
		a.Instructions = append(a.Instructions, i)
	}
}

// mark names the next instruction.
func (a *assembler) mark(label string) {
	if a.label != "" { // two names for one place: an instruction in between
		a.do(asm.Mov.Reg(asm.R6, asm.R6))
	}
	a.label = label
}

// fresh returns a label that nothing else uses.
func (a *assembler) fresh() string {
	a.n++
	return fmt.Sprintf("l%d", a.n)
}

// be16 and be32 turn a number into the constant that a load of its wire form
// gives on this machine.
func be16(v uint16) int32 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return int32(binary.NativeEndian.Uint16(b[:]))
}

func be32(v uint32) int32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return int32(binary.NativeEndian.Uint32(b[:]))
}

func wire64(b []byte) int64 { return int64(binary.NativeEndian.Uint64(b)) }

// frame puts the address of a place in the frame into a register.
func (a *assembler) frame(r asm.Register, off int32) {
	a.do(asm.Mov.Reg(r, asm.RFP), asm.Add.Imm(r, off))
}

func punt(p Punt) string { return "punt-" + p.String() }

// call calls a helper; the arguments are in R1 to R5.
func (a *assembler) call(f asm.BuiltinFunc) { a.do(f.Call()) }

// mapArg loads a map's pointer, which is filled in at load time.
func (a *assembler) mapArg(r asm.Register, name string) {
	a.do(asm.LoadMapPtr(r, 0).WithReference(name))
}

// direct puts the address of the link header into R2, or goes to the label
// where fewer than n octets behind that header can be reached without a helper:
// a packet may be in pieces. Behind an Ethernet header everything is aligned
// as strict machines want it; packets without one are left to helpers, and the
// answer is false.
func (a *assembler) direct(n int32, helper string) bool {
	if a.l2 != ethernetLen {
		return false
	}
	a.do(
		asm.LoadMem(asm.R2, asm.R6, ctxData, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, ctxDataEnd, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R2), asm.Add.Imm(asm.R1, a.l2+n),
		asm.JGT.Reg(asm.R1, asm.R3, helper),
	)
	return true
}

// move copies n octets, a multiple of 4, with R1 as help.
func (a *assembler) move(to asm.Register, dst int16, from asm.Register, src int16, n int32) {
	for i := int16(0); i < int16(n); {
		size, step := asm.DWord, int16(8)
		if int16(n)-i < 8 {
			size, step = asm.Word, 4
		}
		a.do(asm.LoadMem(asm.R1, from, src+i, size), asm.StoreMem(to, dst+i, asm.R1, size))
		i += step
	}
}

// loadHeaders copies n octets from the start of the IP header to the frame's
// packet, or goes to the label. A packet in pieces is first put together as
// far as that, instead of copied by a helper: Linux 6.18 takes a place of the
// frame that is written by a store on one way and by a helper on another for a
// flaw of its verifier.
func (a *assembler) loadHeaders(n int32, fail string) {
	if a.l2 != ethernetLen {
		a.loadPacket(0, fPacket, n, fail)
		return
	}
	pull, copying := a.fresh(), a.fresh()
	a.direct(n, pull)
	a.do(asm.Ja.Label(copying))
	a.mark(pull)
	a.do(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, a.l2+n))
	a.call(asm.FnSkbPullData)
	a.do(asm.JNE.Imm(asm.R0, 0, fail))
	a.direct(n, fail)
	a.mark(copying)
	a.move(asm.RFP, fPacket, asm.R2, int16(a.l2), n)
}

// loadPacket copies n octets of the packet behind the link header into the
// frame, or goes to the label.
func (a *assembler) loadPacket(off, dst, n int32, fail string) {
	a.do(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, a.l2+off))
	a.frame(asm.R3, dst)
	a.do(asm.Mov.Imm(asm.R4, n))
	a.call(asm.FnSkbLoadBytes)
	a.do(asm.JNE.Imm(asm.R0, 0, fail))
}

// lookup looks the address in the frame's key up; R0 is the value or 0.
func (a *assembler) lookup(table string, bits int32) {
	a.do(asm.StoreImm(asm.RFP, fKey, int64(bits), asm.Word))
	a.mapArg(asm.R1, table)
	a.frame(asm.R2, fKey)
	a.call(asm.FnMapLookupElem)
}

// Program assembles the program for a tc ingress hook. It needs no privilege
// and no kernel. Its references to maps are by symbol and filled in when
// [Attach] loads it. It fails when a number of the configuration is out of
// range.
func Program(c Config) (asm.Instructions, error) {
	if c.MTU4 < 68 || c.MTU4 > 65535 || c.MTU6 < 1280 || c.MTU6 > 65535 || c.LowestIPv6MTU < 1280 || c.LowestIPv6MTU > c.MTU6 {
		return nil, fmt.Errorf("fastpath: MTUs %d, %d, %d out of range", c.MTU4, c.MTU6, c.LowestIPv6MTU)
	}
	a := &assembler{cfg: c, l2: ethernetLen}
	if c.NoLinkHeader {
		a.l2 = 0
	}
	a.do(
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, ctxVLANPresent, asm.Word),
		asm.JNE.Imm(asm.R2, 0, "next"), // the VLAN device sees it again
		asm.LoadMem(asm.R2, asm.R6, ctxProtocol, asm.Word),
		asm.JEq.Imm(asm.R2, be16(0x86dd), "six"),
		asm.JEq.Imm(asm.R2, be16(0x0800), "four"),
	)
	a.mark("next")
	a.do(asm.Mov.Imm(asm.R0, actUnspec), asm.Return())
	a.mark("six")
	a.from6()
	a.mark("four")
	a.from4()
	for p := range numPunts {
		a.mark(punt(p))
		a.do(asm.Mov.Imm(asm.R1, int32(slotPunt)+int32(p)), asm.Ja.Label("punt"))
	}
	a.mark("punt")
	a.do(asm.StoreMem(asm.RFP, fIndex, asm.R1, asm.Word))
	a.count(nil)
	a.do(asm.Mov.Imm(asm.R0, actUnspec), asm.Return())
	a.mark("shot") // half rewritten: it must not go anywhere
	a.do(asm.Mov.Imm(asm.R0, actShot), asm.Return())
	return a.Instructions, nil
}

// count adds to the counter whose index stands in the frame: 1, or the value
// that amount puts into R1.
func (a *assembler) count(amount func()) {
	skip := a.fresh()
	a.mapArg(asm.R1, mapHits)
	a.frame(asm.R2, fIndex)
	a.call(asm.FnMapLookupElem)
	a.do(asm.JEq.Imm(asm.R0, 0, skip))
	if amount == nil {
		a.do(asm.Mov.Imm(asm.R1, 1))
	} else {
		amount()
	}
	// The map is per processor: nobody else adds to this counter.
	a.do(
		asm.LoadMem(asm.R2, asm.R0, 0, asm.DWord),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.StoreMem(asm.R0, 0, asm.R2, asm.DWord),
	)
	a.mark(skip)
	a.do(asm.Mov.Imm(asm.R0, 0))
}

// countDone counts a translated packet and its octets. R9 holds the length
// behind the IP header.
func (a *assembler) countDone(packets int32, header int32) {
	a.do(asm.StoreImm(asm.RFP, fIndex, int64(packets), asm.Word))
	a.count(nil)
	a.do(asm.StoreImm(asm.RFP, fIndex, int64(packets)+1, asm.Word))
	a.count(func() { a.do(asm.Mov.Reg(asm.R1, asm.R9), asm.Add.Imm(asm.R1, header)) })
}

// noteUse marks a pool binding as used. R0 points to a table value whose slot
// lies at the offset.
func (a *assembler) noteUse(slot int16) {
	skip := a.fresh()
	a.do(
		asm.LoadMem(asm.R1, asm.R0, slot, asm.Word),
		asm.StoreMem(asm.RFP, fIndex, asm.R1, asm.Word),
	)
	a.mapArg(asm.R1, mapUsed)
	a.frame(asm.R2, fIndex)
	a.call(asm.FnMapLookupElem)
	a.do(
		asm.JEq.Imm(asm.R0, 0, skip),
		// Write only when it changes something, to leave the line shared.
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.JNE.Imm(asm.R1, 0, skip),
		asm.StoreImm(asm.R0, 0, 1, asm.Word),
	)
	a.mark(skip)
	a.do(asm.Mov.Imm(asm.R0, 0))
}

// echoBlock writes the ICMP part of the checksum difference, behind the
// addresses that stand at fICMP: length, next header 58 and the ICMPv6 type.
// R1 holds the type octet, R9 the length.
func (a *assembler) echoBlock() {
	a.do(
		asm.Mov.Reg(asm.R2, asm.R9),
		asm.HostTo(asm.BE, asm.R2, asm.Word),
		asm.StoreMem(asm.RFP, fICMP+32, asm.R2, asm.Word),
		asm.StoreImm(asm.RFP, fICMP+36, int64(be32(58)), asm.Word),
		asm.StoreImm(asm.RFP, fICMP+40, 0, asm.Word),
		asm.StoreMem(asm.RFP, fICMP+40, asm.R1, asm.Byte),
	)
}

// copy16 copies 16 octets within the frame, both places aligned to 8.
func (a *assembler) copy16(dst, src int16) {
	for i := int16(0); i < 16; i += 8 {
		a.do(asm.LoadMem(asm.R1, asm.RFP, src+i, asm.DWord), asm.StoreMem(asm.RFP, dst+i, asm.R1, asm.DWord))
	}
}

// sum puts the sum of n octets of the frame, a multiple of 4, as numbers of 32
// bits into a register, with R1 as help.
func (a *assembler) sum(r asm.Register, off int16, n int16) {
	a.do(asm.LoadMem(r, asm.RFP, off, asm.Word))
	for i := int16(4); i < n; i += 4 {
		a.do(asm.LoadMem(asm.R1, asm.RFP, off+i, asm.Word), asm.Add.Reg(r, asm.R1))
	}
}

// fold32 folds the sum in a register to 32 bits, with R1 as help.
func (a *assembler) fold32(r asm.Register) {
	for range 2 {
		a.do(asm.Mov.Reg(asm.R1, r), asm.RSh.Imm(asm.R1, 32), asm.Mov.Reg32(r, r), asm.Add.Reg(r, asm.R1))
	}
}

// csumDiff puts the difference that replacing one place of the frame by
// another makes to a checksum (RFC 1624) into R8.
func (a *assembler) csumDiff(from, fromLen, to, toLen int16) {
	a.sum(asm.R3, from, fromLen)
	a.fold32(asm.R3)
	a.do(asm.Xor.Imm32(asm.R3, -1))
	a.sum(asm.R8, to, toLen)
	a.do(asm.Add.Reg(asm.R8, asm.R3))
	a.fold32(asm.R8)
}

// fold folds the sum in a register to 16 bits, with R1 and R2 as help. Three
// steps: the sum has at most 32 bits then and two carries can follow.
func (a *assembler) fold(r asm.Register) {
	a.fold32(r)
	for range 3 {
		a.do(
			asm.Mov.Reg(asm.R2, r), asm.RSh.Imm(asm.R2, 16),
			asm.And.Imm(r, 0xffff), asm.Add.Reg(r, asm.R2),
		)
	}
}

// wireLength puts the length of the transport part of the largest packet on
// the wire into R3: of a segment where the packet is a super-packet. header
// is the length of the IP header that the packet has now.
func (a *assembler) wireLength(header int32) {
	done, udp := a.fresh(), a.fresh()
	a.do(
		asm.Mov.Reg(asm.R3, asm.R9),
		asm.LoadMem(asm.R1, asm.R6, ctxGSOSize, asm.Word),
		asm.JEq.Imm(asm.R1, 0, done),
		asm.Mov.Imm(asm.R3, 8),
		asm.JEq.Imm(asm.R7, 17, udp),
		asm.JNE.Imm(asm.R7, 6, punt(PuntProtocol)), // segments of what?
	)
	// The TCP header's length is the high half of its 13th octet, times 4.
	a.loadPacket(header+12, fIndex, 1, punt(PuntShort))
	a.do(
		asm.LoadMem(asm.R3, asm.RFP, fIndex, asm.Byte),
		asm.RSh.Imm(asm.R3, 4), asm.LSh.Imm(asm.R3, 2),
		asm.LoadMem(asm.R1, asm.R6, ctxGSOSize, asm.Word),
	)
	a.mark(udp)
	a.do(asm.Add.Reg(asm.R3, asm.R1))
	a.mark(done)
	a.do(asm.Mov.Reg(asm.R0, asm.R3))
}

// transport checks the transport header at an offset of the frame's packet
// and goes on when it is one the program translates. icmp is the protocol's
// number in this family; echo its first two octets for request and reply.
func (a *assembler) transport(at int16, icmp int32, echo [2]uint16) {
	tcp, udp, ok := a.fresh(), a.fresh(), a.fresh()
	a.do(
		asm.JEq.Imm(asm.R7, 6, tcp),
		asm.JEq.Imm(asm.R7, 17, udp),
		asm.JNE.Imm(asm.R7, icmp, punt(PuntProtocol)),
		asm.LoadMem(asm.R1, asm.RFP, at, asm.Half),
		asm.JEq.Imm(asm.R1, be16(echo[0]), ok),
		asm.JEq.Imm(asm.R1, be16(echo[1]), ok),
		asm.Ja.Label(punt(PuntProtocol)),
	)
	a.mark(tcp)
	a.do(asm.JLT.Imm(asm.R9, 20, punt(PuntShort)), asm.Ja.Label(ok))
	a.mark(udp)
	a.do(
		asm.LoadMem(asm.R1, asm.RFP, at+6, asm.Half),
		asm.JEq.Imm(asm.R1, 0, punt(PuntChecksum)),
	)
	a.mark(ok)
	a.do(asm.JLT.Imm(asm.R9, 8, punt(PuntShort)))
}

// l4Checksum applies the difference in R8 to the transport checksum of a
// packet that has been rewritten, with an IP header of that length.
func (a *assembler) l4Checksum(header int32) {
	tcp, udp, done := a.fresh(), a.fresh(), a.fresh()
	call := func(off, flags int32) {
		a.do(
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, a.l2+header+off),
			asm.Mov.Imm(asm.R3, 0), asm.Mov.Reg(asm.R4, asm.R8), asm.Mov.Imm(asm.R5, flags),
		)
		a.call(asm.FnL4CsumReplace)
		a.do(asm.JNE.Imm(asm.R0, 0, "shot"))
	}
	a.do(asm.JEq.Imm(asm.R7, 6, tcp), asm.JEq.Imm(asm.R7, 17, udp))
	// ICMP: its checksum covers the new type as well.
	call(2, 0)
	a.do(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, a.l2+header))
	a.frame(asm.R3, fType)
	a.do(asm.Mov.Imm(asm.R4, 1), asm.Mov.Imm(asm.R5, 0))
	a.call(asm.FnSkbStoreBytes)
	a.do(asm.JNE.Imm(asm.R0, 0, "shot"), asm.Ja.Label(done))
	a.mark(tcp)
	call(16, csumPseudo)
	a.do(asm.Ja.Label(done))
	a.mark(udp)
	call(6, csumPseudo|csumMangle)
	a.mark(done)
	a.do(asm.Mov.Imm(asm.R0, 0))
}

// rewrite changes the packet's family and writes the header in the frame.
func (a *assembler) rewrite(ethertype uint16, header int32) {
	a.do(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, be16(ethertype)), asm.Mov.Imm(asm.R3, 0))
	a.call(asm.FnSkbChangeProto)
	a.do(asm.JNE.Imm(asm.R0, 0, "shot"))
	helper, done := a.fresh(), a.fresh()
	if a.direct(header, helper) {
		a.do(asm.StoreImm(asm.R2, int16(a.l2)-2, int64(be16(ethertype)), asm.Half))
		a.move(asm.R2, int16(a.l2), asm.RFP, fHeader, header)
		a.do(asm.Ja.Label(done))
		a.mark(helper)
	}
	start, n, off := int32(fHeader), header, a.l2
	if a.l2 != 0 { // the type field of Ethernet stands right in front
		start, n, off = fEther, header+2, a.l2-2
		a.do(asm.StoreImm(asm.RFP, fEther, int64(be16(ethertype)), asm.Half))
	}
	a.do(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, off))
	a.frame(asm.R3, start)
	a.do(asm.Mov.Imm(asm.R4, n), asm.Mov.Imm(asm.R5, 0))
	a.call(asm.FnSkbStoreBytes)
	a.do(asm.JNE.Imm(asm.R0, 0, "shot"))
	a.mark(done)
	a.do(asm.Mov.Imm(asm.R0, 0))
}

// leave ends the translation: to the stack, or to a neighbour.
func (a *assembler) leave(ifindex int) {
	if ifindex == 0 {
		a.do(asm.Mov.Imm(asm.R0, actOK), asm.Return())
		return
	}
	a.do(asm.Mov.Imm(asm.R1, int32(ifindex)), asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 0), asm.Mov.Imm(asm.R4, 0))
	a.call(asm.FnRedirectNeigh)
	a.do(asm.Return())
}

// octets lists where the octets of an embedded IPv4 address stand (RFC 6052
// section 2.2).
func octets(bits int) [4]int16 {
	var at [4]int16
	i := int16(bits / 8)
	for n := range at {
		if i == 8 {
			i++ // the reserved octet
		}
		at[n] = i
		i++
	}
	return at
}
