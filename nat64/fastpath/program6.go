package fastpath

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
)

// from6 translates IPv6 to IPv4.
func (a *assembler) from6() {
	c := a.cfg
	// The header and 8 octets of transport; what is shorter is not simple.
	a.loadHeaders(48, "next")
	// Is it for the translator at all? Only its destination says so, and
	// nothing else of the router's traffic is to be counted.
	a.copy16(fAddr, fPacket+24)
	a.map6(true)
	a.do(asm.StoreMem(asm.RFP, fHeader+16, asm.R0, asm.Word))

	a.do(
		asm.LoadMem(asm.R1, asm.RFP, fPacket, asm.Byte),
		asm.RSh.Imm(asm.R1, 4),
		asm.JNE.Imm(asm.R1, 6, punt(PuntShort)),
		asm.LoadMem(asm.R9, asm.RFP, fPacket+4, asm.Half),
		asm.HostTo(asm.BE, asm.R9, asm.Half),
		asm.JGT.Imm(asm.R9, 65535-20, punt(PuntTooBig)), // no IPv4 length field for it
		asm.LoadMem(asm.R1, asm.R6, ctxLen, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R9), asm.Add.Imm(asm.R2, a.l2+40),
		asm.JLT.Reg(asm.R1, asm.R2, punt(PuntShort)),
		asm.LoadMem(asm.R7, asm.RFP, fPacket+6, asm.Byte),
	)
	a.transport(fPacket+40, 58, [2]uint16{0x8000, 0x8100})
	a.do(
		asm.LoadMem(asm.R1, asm.RFP, fPacket+7, asm.Byte),
		asm.JLE.Imm(asm.R1, 1, punt(PuntHops)),
	)
	a.copy16(fAddr, fPacket+8)
	a.map6(false)
	a.do(asm.StoreMem(asm.RFP, fHeader+12, asm.R0, asm.Word))

	// Size and DF (RFC 7915 section 5.1), in R3 the IPv4 length on the wire.
	small, ready := a.fresh(), a.fresh()
	a.wireLength(40)
	a.do(
		asm.Add.Imm(asm.R3, 20),
		asm.JGT.Imm(asm.R3, int32(c.MTU4), punt(PuntTooBig)),
		asm.JLE.Imm(asm.R3, dfLimit, small),
		asm.StoreImm(asm.RFP, fHeader+4, int64(be32(df)), asm.Word), // identification 0, DF
		asm.Ja.Label(ready),
	)
	a.mark(small)
	a.identification()
	a.do(
		asm.StoreMem(asm.RFP, fHeader+4, asm.R0, asm.Half),
		asm.StoreImm(asm.RFP, fHeader+6, 0, asm.Half),
	)
	a.mark(ready)

	// Version, header length, TOS, total length.
	a.do(asm.Mov.Imm(asm.R1, 0))
	if !c.ResetTOS {
		a.do(
			asm.LoadMem(asm.R1, asm.RFP, fPacket, asm.Half),
			asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.RSh.Imm(asm.R1, 4), asm.And.Imm(asm.R1, 0xff),
		)
	}
	a.do(
		asm.StoreMem(asm.RFP, fHeader+1, asm.R1, asm.Byte),
		asm.StoreImm(asm.RFP, fHeader, 0x45, asm.Byte),
		asm.Mov.Reg(asm.R1, asm.R9), asm.Add.Imm(asm.R1, 20),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.StoreMem(asm.RFP, fHeader+2, asm.R1, asm.Half),
	)
	// TTL: the stack decrements it when it routes; to a neighbour nobody does.
	a.do(asm.LoadMem(asm.R1, asm.RFP, fPacket+7, asm.Byte))
	if c.Neighbour4 != 0 {
		a.do(asm.Sub.Imm(asm.R1, 1))
	}
	notEcho := a.fresh()
	a.do(
		asm.StoreMem(asm.RFP, fHeader+8, asm.R1, asm.Byte),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.JNE.Imm(asm.R7, 58, notEcho),
		asm.Mov.Imm(asm.R1, 1),
	)
	a.mark(notEcho)
	a.do(
		asm.StoreMem(asm.RFP, fHeader+9, asm.R1, asm.Byte),
		asm.StoreImm(asm.RFP, fHeader+10, 0, asm.Half),
	)
	// Header checksum: the sum of nothing but the new header, inverted.
	a.sum(asm.R3, fHeader, 20)
	a.fold(asm.R3)
	a.do(asm.Xor.Imm(asm.R3, 0xffff), asm.StoreMem(asm.RFP, fHeader+10, asm.R3, asm.Half))

	// The difference of the transport checksum.
	echo, diff := a.fresh(), a.fresh()
	a.do(asm.JEq.Imm(asm.R7, 58, echo))
	a.csumDiff(fPacket+8, 32, fHeader+12, 8)
	a.do(asm.Ja.Label(diff))
	a.mark(echo)
	a.copy16(fICMP, fPacket+8)
	a.copy16(fICMP+16, fPacket+24)
	reply := a.fresh()
	a.do(
		asm.LoadMem(asm.R1, asm.RFP, fPacket+40, asm.Byte),
		asm.StoreImm(asm.RFP, fType, 0, asm.Word),
		asm.JNE.Imm(asm.R1, 128, reply), // 129, echo reply, becomes 0
		asm.StoreImm(asm.RFP, fType, 8, asm.Byte),
	)
	a.mark(reply)
	a.echoBlock()
	a.csumDiff(fICMP, 44, fType, 4)
	a.mark(diff)

	a.rewrite(0x0800, 20)
	a.l4Checksum(20)
	a.countDone(slot64Packets, 40)
	a.leave(c.Neighbour4)
}

// map6 maps the IPv6 address in the key to an IPv4 address in R0, in network
// byte order. Of a destination that nothing maps the packet is not for the
// translator: it goes on uncounted.
func (a *assembler) map6(destination bool) {
	none := punt(PuntAddress)
	if destination {
		none = "next"
	}
	prefix, high, shifted, pool, done := a.fresh(), a.fresh(), a.fresh(), a.fresh(), a.fresh()
	embedded := a.fresh()
	if destination && a.cfg.PrefixAlone && a.cfg.Prefix.IsValid() {
		outside := a.fresh()
		a.inPrefix(outside)
		a.do(asm.Ja.Label(embedded))
		a.mark(outside)
	}
	a.lookup(map64, 128)
	a.do(asm.JEq.Imm(asm.R0, 0, prefix))
	if destination && !a.cfg.EAMDestinations {
		// Native traffic between mapped hosts looks like this, too: routing
		// knows. An entry may also forbid an address of the prefix.
		a.do(asm.Ja.Label("next"))
	} else {
		a.do(
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
			asm.JEq.Imm(asm.R1, kindPunt, none),
		)
		if destination { // a pool's host by its own address: native
			a.do(asm.JEq.Imm(asm.R1, kindPool, none))
		}
		a.do(
			asm.LoadMem(asm.R3, asm.R0, 16, asm.Word), // shift
			asm.JSGT.Imm32(asm.R3, -1, shifted),
			asm.LoadMem(asm.R2, asm.RFP, fAddr, asm.DWord),
			asm.Ja.Label(high),
		)
		a.mark(shifted)
		a.do(asm.LoadMem(asm.R2, asm.RFP, fAddr+8, asm.DWord))
		a.mark(high)
		a.do(
			asm.HostTo(asm.BE, asm.R2, asm.DWord),
			asm.And.Imm(asm.R3, 63),
			asm.RSh.Reg(asm.R2, asm.R3),
			asm.LoadMem(asm.R3, asm.R0, 8, asm.DWord),
			asm.And.Reg(asm.R2, asm.R3),
			asm.LoadMem(asm.R3, asm.R0, 4, asm.Word),
			asm.Or.Reg(asm.R2, asm.R3),
			asm.HostTo(asm.BE, asm.R2, asm.Word),
			asm.JEq.Imm(asm.R1, kindPool, pool),
			asm.Mov.Reg(asm.R0, asm.R2),
			asm.Ja.Label(done),
		)
		a.mark(pool)
		a.do(asm.Mov.Reg(asm.R8, asm.R2))
		a.noteUse(20)
		a.do(asm.Mov.Reg(asm.R0, asm.R8), asm.Ja.Label(done))
	}

	a.mark(prefix)
	if !a.cfg.Prefix.IsValid() {
		a.do(asm.Ja.Label(none))
		a.mark(done)
		a.do(asm.Mov.Reg(asm.R0, asm.R0))
		return
	}
	a.inPrefix(none)
	a.mark(embedded)
	for i, at := range octets(a.cfg.Prefix.Bits()) {
		a.do(
			asm.LoadMem(asm.R1, asm.RFP, fAddr+at, asm.Byte),
			asm.StoreMem(asm.RFP, fIndex+int16(i), asm.R1, asm.Byte),
		)
	}
	// An embedded address that the other table knows is one for hairpinning,
	// or forbidden, or the translator's own: all for the slow path.
	a.do(
		asm.LoadMem(asm.R8, asm.RFP, fIndex, asm.Word),
		asm.StoreMem(asm.RFP, fAddr, asm.R8, asm.Word),
	)
	a.lookup(map46, 32)
	a.do(asm.JNE.Imm(asm.R0, 0, punt(PuntAddress)), asm.Mov.Reg(asm.R0, asm.R8))
	a.mark(done)
	a.do(asm.Mov.Reg(asm.R0, asm.R0))
}

// inPrefix goes to the label unless the address in the key has the prefix.
func (a *assembler) inPrefix(fail string) {
	bits := a.cfg.Prefix.Bits()
	base := a.cfg.Prefix.Netip().Addr().As16()
	n := min(bits, 64)
	var mask [8]byte
	binary.BigEndian.PutUint64(mask[:], ^uint64(0)<<(64-n))
	a.do(asm.LoadMem(asm.R1, asm.RFP, fAddr, asm.DWord))
	if n < 64 {
		a.do(asm.LoadImm(asm.R2, wire64(mask[:]), asm.DWord), asm.And.Reg(asm.R1, asm.R2))
	}
	a.do(asm.LoadImm(asm.R2, wire64(base[:8]), asm.DWord), asm.JNE.Reg(asm.R1, asm.R2, fail))
	if bits == 96 {
		a.do(
			asm.LoadMem(asm.R1, asm.RFP, fAddr+8, asm.Word),
			asm.JNE.Imm32(asm.R1, int32(binary.NativeEndian.Uint32(base[8:])), fail),
		)
	}
}

// identification puts an IPv4 identification in network byte order into R0:
// from a counter that flows of the same hash share, advanced by the number of
// segments (RFC 6864), never 0.
func (a *assembler) identification() {
	nonzero, one := a.fresh(), a.fresh()
	a.do(
		asm.LoadMem(asm.R1, asm.RFP, fHeader+12, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, fHeader+16, asm.Word),
		asm.LSh.Imm(asm.R2, 32), asm.Or.Reg(asm.R1, asm.R2),
		asm.Mov.Reg(asm.R2, asm.R7), asm.LSh.Imm(asm.R2, 20), asm.Xor.Reg(asm.R1, asm.R2),
		asm.LoadImm(asm.R2, hashMultiplier, asm.DWord), asm.Mul.Reg(asm.R1, asm.R2),
		asm.RSh.Imm(asm.R1, 64-11), // idCounters is 1<<11
		asm.StoreMem(asm.RFP, fIndex, asm.R1, asm.Word),
	)
	a.mapArg(asm.R1, mapIDs)
	a.frame(asm.R2, fIndex)
	a.call(asm.FnMapLookupElem)
	a.do(
		asm.JEq.Imm(asm.R0, 0, punt(PuntShort)), // cannot be
		asm.LoadMem(asm.R1, asm.R6, ctxGSOSegs, asm.Word),
		asm.JNE.Imm(asm.R1, 0, one),
		asm.Mov.Imm(asm.R1, 1),
	)
	a.mark(one)
	a.do(
		asm.FetchAdd.Mem(asm.R0, asm.R1, asm.Word, 0),
		asm.Mov.Reg(asm.R0, asm.R1),
	)
	a.do(
		asm.And.Imm(asm.R0, 0xffff),
		asm.JNE.Imm(asm.R0, 0, nonzero),
		asm.Mov.Imm(asm.R0, 1),
	)
	a.mark(nonzero)
	a.do(asm.HostTo(asm.BE, asm.R0, asm.Half))
}

// hashMultiplier spreads flows over the counters; any odd number with mixed
// bits will do.
const hashMultiplier = -0x61c8864680b583eb
