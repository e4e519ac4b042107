package main

import (
	"fmt"
	"io"
	"net/netip"

	"signalbox.example/xfrm"
)

// xfrmSection builds a route-based VPN without a kernel: policies and states
// with mark 6, and the vti6 device whose key that mark is.
func xfrmSection(w io.Writer) error {
	local, remote := netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:2::2")
	mark := xfrm.Mark{Value: 6, Mask: 0xffffffff}
	h := xfrm.Header{Flags: xfrm.FlagRequest | xfrm.FlagAck}
	octets := 0
	for _, dir := range []xfrm.Dir{xfrm.Out, xfrm.In, xfrm.Fwd} {
		src, dst := remote, local
		if dir == xfrm.Out {
			src, dst = local, remote
		}
		p := xfrm.Policy{Sel: xfrm.Selector{Family: xfrm.IPv6}, Dir: dir, Priority: 399999, Mark: mark,
			Templates: []xfrm.Template{{Src: src, Dst: dst, Proto: xfrm.ESP, ReqID: 6, Mode: xfrm.Tunnel}}}
		if err := p.Check(); err != nil {
			return err
		}
		msg, err := xfrm.AppendNewPolicy(nil, h, &p)
		if err != nil {
			return err
		}
		octets += len(msg)
		if _, err := w.Write(p.AppendText(nil, xfrm.TextOptions{})); err != nil {
			return err
		}
	}
	key := make([]byte, 36) // 256 bits and the salt; a real one is random
	for i := range key {
		key[i] = byte(i)
	}
	aead, err := xfrm.AESGCM16(key)
	if err != nil {
		return err
	}
	base := xfrm.SA{Src: remote, Dst: local, SPI: 0xc0000002, Proto: xfrm.ESP, ReqID: 6, Mode: xfrm.Tunnel, Flags: xfrm.AFUnspec, Mark: mark, AEAD: aead}
	in, err := xfrm.NewInbound(base, 32)
	if err != nil {
		return err
	}
	base.Src, base.Dst, base.SPI = local, remote, 0xc0000001
	out := xfrm.NewOutbound(base)
	for _, s := range []*xfrm.SA{&out, &in} {
		if err := s.Check(); err != nil {
			return err
		}
		msg, err := xfrm.AppendNewSA(nil, h, s)
		if err != nil {
			return err
		}
		octets += len(msg)
		if _, err := w.Write(s.AppendText(nil, xfrm.TextOptions{})); err != nil { // keys hidden
			return err
		}
	}
	link, err := xfrm.AppendLink(nil, h, &xfrm.Link{Name: "vti6", Kind: "vti6", Local: local, Remote: remote, IKey: mark.Value, OKey: mark.Value})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n5 messages of %d octets for the kernel, and one of %d for the vti6 device\n", octets, len(link))
	in.Flags |= xfrm.NoPMTUDisc
	fmt.Fprintf(w, "what the kernel would say to a mistake: %v\n", in.Check())
	in.ClearKeys()
	out.ClearKeys()
	return nil
}
