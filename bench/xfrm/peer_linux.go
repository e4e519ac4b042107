// Package xfrm measures signalbox's xfrm beside vishvananda/netlink, the Go
// package that everybody uses, and beside iproute2.
package xfrm

import (
	"net"
	_ "unsafe" // for go:linkname

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The peer has no exported way to build or parse a message without a socket;
// these are its own functions.

//go:linkname parseXfrmState github.com/vishvananda/netlink.parseXfrmState
func parseXfrmState(m []byte, family int) (*netlink.XfrmState, error)

//go:linkname parseXfrmPolicy github.com/vishvananda/netlink.parseXfrmPolicy
func parseXfrmPolicy(m []byte, family int) (*netlink.XfrmPolicy, error)

//go:linkname xfrmUsersaInfoFromXfrmState github.com/vishvananda/netlink.xfrmUsersaInfoFromXfrmState
func xfrmUsersaInfoFromXfrmState(state *netlink.XfrmState) *nl.XfrmUsersaInfo

//go:linkname limitsToLft github.com/vishvananda/netlink.limitsToLft
func limitsToLft(lmts netlink.XfrmStateLimits, lft *nl.XfrmLifetimeCfg)

//go:linkname writeStateAlgoAead github.com/vishvananda/netlink.writeStateAlgoAead
func writeStateAlgoAead(a *netlink.XfrmStateAlgo) []byte

//go:linkname writeMark github.com/vishvananda/netlink.writeMark
func writeMark(m *netlink.XfrmMark) []byte

// peerBuildSA does what the peer's XfrmStateAdd does up to its socket, for a
// state with AEAD, mark and interface id.
func peerBuildSA(state *netlink.XfrmState) []byte {
	req := nl.NewNetlinkRequest(nl.XFRM_MSG_NEWSA, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	msg := xfrmUsersaInfoFromXfrmState(state)
	limitsToLft(state.Limits, &msg.Lft)
	req.AddData(msg)
	if state.Aead != nil {
		req.AddData(nl.NewRtAttr(nl.XFRMA_ALG_AEAD, writeStateAlgoAead(state.Aead)))
	}
	if state.Mark != nil {
		req.AddData(nl.NewRtAttr(nl.XFRMA_MARK, writeMark(state.Mark)))
	}
	if state.Ifid != 0 {
		req.AddData(nl.NewRtAttr(nl.XFRMA_IF_ID, nl.Uint32Attr(uint32(state.Ifid))))
	}
	return req.Serialize()
}

// peerSA is the state of [ourSA] in the peer's terms.
func peerSA() *netlink.XfrmState {
	key := make([]byte, 36)
	for i := range key {
		key[i] = byte(i)
	}
	return &netlink.XfrmState{
		Src: net.ParseIP("2001:db8:1::1"), Dst: net.ParseIP("2001:db8:2::2"), Spi: 0xc0000002, Proto: netlink.XFRM_PROTO_ESP,
		Mode: netlink.XFRM_MODE_TUNNEL, Reqid: 6, ReplayWindow: 32, Ifid: 0x42,
		Mark: &netlink.XfrmMark{Value: 6, Mask: 0xffffffff},
		Aead: &netlink.XfrmStateAlgo{Name: "rfc4106(gcm(aes))", Key: key, ICVLen: 128},
	}
}

// peerPolicy is policy number i in the peer's terms.
func peerPolicy(i int) *netlink.XfrmPolicy {
	_, src, _ := net.ParseCIDR("10.0.0.0/8")
	return &netlink.XfrmPolicy{
		Src: src, Dst: &net.IPNet{IP: net.IPv4(11, byte(i>>16), byte(i>>8), byte(i)).To4(), Mask: net.CIDRMask(32, 32)},
		Dir: netlink.XFRM_DIR_OUT, Priority: i,
		Tmpls: []netlink.XfrmPolicyTmpl{{Src: net.IPv4(192, 0, 2, 1), Dst: net.IPv4(192, 0, 2, 2), Proto: netlink.XFRM_PROTO_ESP,
			Mode: netlink.XFRM_MODE_TUNNEL, Reqid: i % 1000}},
	}
}
