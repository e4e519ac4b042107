package fastpath

import "github.com/cilium/ebpf/asm"

// from4 translates IPv4 to IPv6.
func (a *assembler) from4() {
	c := a.cfg
	a.loadHeaders(28, "next")
	// The destination says whether the packet is for the translator.
	a.do(
		asm.LoadMem(asm.R1, asm.RFP, fPacket+16, asm.Word),
		asm.StoreMem(asm.RFP, fAddr, asm.R1, asm.Word),
	)
	a.map4(true, fHeader+24)

	a.do(
		asm.LoadMem(asm.R1, asm.RFP, fPacket, asm.Byte),
		asm.JNE.Imm(asm.R1, 0x45, punt(PuntFragment)),
		asm.LoadMem(asm.R1, asm.RFP, fPacket+6, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.Mov.Reg(asm.R8, asm.R1),
		asm.And.Imm(asm.R1, 0x3fff), // more fragments, or an offset
		asm.JNE.Imm(asm.R1, 0, punt(PuntFragment)),
		asm.And.Imm(asm.R8, 0x4000), // DF, kept for the size check
		asm.LoadMem(asm.R9, asm.RFP, fPacket+2, asm.Half),
		asm.HostTo(asm.BE, asm.R9, asm.Half),
		asm.JLT.Imm(asm.R9, 20, punt(PuntShort)),
		asm.LoadMem(asm.R1, asm.R6, ctxLen, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R9), asm.Add.Imm(asm.R2, a.l2),
		asm.JLT.Reg(asm.R1, asm.R2, punt(PuntShort)),
		asm.Sub.Imm(asm.R9, 20),
		asm.LoadMem(asm.R7, asm.RFP, fPacket+9, asm.Byte),
	)
	a.transport(fPacket+20, 1, [2]uint16{0x0800, 0x0000})
	a.do(
		asm.LoadMem(asm.R1, asm.RFP, fPacket+8, asm.Byte),
		asm.JLE.Imm(asm.R1, 1, punt(PuntHops)),
	)

	// Size (RFC 7915 section 4), in R3 the IPv6 length on the wire.
	dfSet := a.fresh()
	a.wireLength(20)
	a.do(
		asm.Add.Imm(asm.R3, 40),
		asm.JGT.Imm(asm.R3, int32(c.MTU6), punt(PuntTooBig)),
		asm.JNE.Imm(asm.R8, 0, dfSet),
	)
	if c.StrictFragmentHeader {
		a.do(asm.Ja.Label(punt(PuntFragment)))
	} else {
		a.do(asm.JGT.Imm(asm.R3, int32(c.LowestIPv6MTU), punt(PuntTooBig)))
	}
	a.mark(dfSet)
	// The header's checksum: nobody has looked at it yet.
	a.sum(asm.R3, fPacket, 20)
	a.fold(asm.R3)
	a.do(asm.JNE.Imm(asm.R3, 0xffff, punt(PuntShort)))

	a.do(
		asm.LoadMem(asm.R1, asm.RFP, fPacket+12, asm.Word),
		asm.StoreMem(asm.RFP, fAddr, asm.R1, asm.Word),
	)
	a.map4(false, fHeader+8)

	// Version, traffic class, flow label 0; payload length, next header.
	a.do(asm.Mov.Imm(asm.R1, 0))
	if !c.ResetTOS {
		a.do(asm.LoadMem(asm.R1, asm.RFP, fPacket+1, asm.Byte), asm.LSh.Imm(asm.R1, 20))
	}
	a.do(
		asm.Or.Imm(asm.R1, 0x60000000),
		asm.HostTo(asm.BE, asm.R1, asm.Word),
		asm.StoreMem(asm.RFP, fHeader, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.StoreMem(asm.RFP, fHeader+4, asm.R1, asm.Half),
	)
	notEcho := a.fresh()
	a.do(
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.JNE.Imm(asm.R7, 1, notEcho),
		asm.Mov.Imm(asm.R1, 58),
	)
	a.mark(notEcho)
	a.do(
		asm.StoreMem(asm.RFP, fHeader+6, asm.R1, asm.Byte),
		asm.LoadMem(asm.R1, asm.RFP, fPacket+8, asm.Byte),
	)
	if c.Neighbour6 != 0 {
		a.do(asm.Sub.Imm(asm.R1, 1))
	}
	a.do(asm.StoreMem(asm.RFP, fHeader+7, asm.R1, asm.Byte))

	echo, diff := a.fresh(), a.fresh()
	a.do(asm.JEq.Imm(asm.R7, 1, echo))
	a.csumDiff(fPacket+12, 8, fHeader+8, 32)
	a.do(asm.Ja.Label(diff))
	a.mark(echo)
	a.copy16(fICMP, fHeader+8)
	a.copy16(fICMP+16, fHeader+24)
	reply := a.fresh()
	a.do(
		asm.StoreImm(asm.RFP, fType, 0, asm.Word),
		asm.LoadMem(asm.R2, asm.RFP, fPacket+20, asm.Byte),
		asm.StoreMem(asm.RFP, fType, asm.R2, asm.Byte), // the old type, for the difference
		asm.Mov.Imm(asm.R1, 129),
		asm.JNE.Imm(asm.R2, 8, reply),
		asm.Mov.Imm(asm.R1, 128),
	)
	a.mark(reply)
	a.echoBlock()
	a.csumDiff(fType, 4, fICMP, 44)
	a.do( // the new type, to be stored
		asm.LoadMem(asm.R1, asm.RFP, fICMP+40, asm.Byte),
		asm.StoreMem(asm.RFP, fType, asm.R1, asm.Byte),
	)
	a.mark(diff)

	a.rewrite(0x86dd, 40)
	a.l4Checksum(40)
	a.countDone(slot46Packets, 20)
	a.leave(c.Neighbour6)
}

// map4 maps the IPv4 address in the key and writes the IPv6 address to a
// place of the frame.
func (a *assembler) map4(destination bool, dst int16) {
	none := punt(PuntAddress)
	if destination {
		none = "next"
	}
	prefix, pool, done := a.fresh(), a.fresh(), a.fresh()
	a.lookup(map46, 32)
	a.do(
		asm.JEq.Imm(asm.R0, 0, prefix),
		asm.LoadMem(asm.R4, asm.R0, 0, asm.Word),
		asm.JEq.Imm(asm.R4, kindPunt, none),
	)
	if !destination && a.cfg.HairpinSimple {
		a.do(asm.Ja.Label(punt(PuntAddress)))
	} else {
		a.embedEntry(dst, pool, done)
		a.mark(pool)
		if destination {
			a.noteUse(4)
			a.do(asm.Ja.Label(done))
		} else { // a source that is one of the pool's addresses is not simple
			a.do(asm.Ja.Label(punt(PuntAddress)))
		}
	}

	a.mark(prefix)
	if destination || !a.cfg.Prefix.IsValid() {
		// Every IPv4 destination could be embedded; that would be all of
		// the router's traffic.
		a.do(asm.Ja.Label(none))
	} else {
		base := a.cfg.Prefix.Netip().Addr().As16()
		a.do(asm.LoadImm(asm.R1, wire64(base[:8]), asm.DWord), asm.StoreMem(asm.RFP, dst, asm.R1, asm.DWord),
			asm.LoadImm(asm.R1, wire64(base[8:]), asm.DWord), asm.StoreMem(asm.RFP, dst+8, asm.R1, asm.DWord))
		for i, at := range octets(a.cfg.Prefix.Bits()) {
			a.do(
				asm.LoadMem(asm.R1, asm.RFP, fAddr+int16(i), asm.Byte),
				asm.StoreMem(asm.RFP, dst+at, asm.R1, asm.Byte),
			)
		}
	}
	a.mark(done)
	a.do(asm.Mov.Imm(asm.R0, 0))
}

// embedEntry writes the IPv6 address that the table entry at R0, of the kind
// in R4, makes of the IPv4 address in the key, and goes to one of the labels.
func (a *assembler) embedEntry(dst int16, pool, done string) {
	a.do(
		asm.LoadMem(asm.R1, asm.R0, 8, asm.DWord),
		asm.StoreMem(asm.RFP, dst, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, fAddr, asm.Word),
		asm.HostTo(asm.BE, asm.R1, asm.Word),
		asm.LoadMem(asm.R2, asm.R0, 24, asm.Word),
		asm.And.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, asm.R0, 28, asm.Word),
		asm.And.Imm(asm.R2, 63),
		asm.LSh.Reg(asm.R1, asm.R2),
		asm.LoadMem(asm.R2, asm.R0, 16, asm.DWord),
		asm.Or.Reg(asm.R1, asm.R2),
		asm.HostTo(asm.BE, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, dst+8, asm.R1, asm.DWord),
		asm.JEq.Imm(asm.R4, kindPool, pool),
		asm.Ja.Label(done),
	)
}
