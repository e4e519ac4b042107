package xfrm

import (
	"encoding/hex"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

// TestLayout compares sizes, offsets and constants with what a C compiler
// says about the kernel's headers on x86-64.
func TestLayout(t *testing.T) {
	if tailPad != 0 {
		t.Skip("layout.tsv is for 64-bit alignment")
	}
	sizes := map[string]int{
		"xfrm_selector": sizeSelector, "xfrm_id": sizeID, "xfrm_lifetime_cfg": sizeLftCfg, "xfrm_lifetime_cur": sizeLftCur,
		"xfrm_stats": saSeq - saStats, "xfrm_algo": sizeAlgo, "xfrm_algo_auth": sizeAlgoAuth, "xfrm_algo_aead": sizeAlgoAuth,
		"xfrm_usersa_info": sizeSA, "xfrm_usersa_id": sizeSAID, "xfrm_aevent_id": sizeAE, "xfrm_userspi_info": sizeSPI,
		"xfrm_userpolicy_info": sizePolicy, "xfrm_userpolicy_id": sizePolicyID, "xfrm_userpolicy_type": sizePolType,
		"xfrm_user_tmpl": sizeTmpl, "xfrm_encap_tmpl": sizeEncap, "xfrm_user_acquire": sizeAcquire, "xfrm_user_expire": sizeExpire,
		"xfrm_user_polexpire": sizePolExpire, "xfrm_usersa_flush": 1, "xfrm_user_report": sizeReport,
		"xfrm_user_kmaddress": sizeKMAddress, "xfrm_user_migrate": sizeMigrate, "xfrm_user_migrate_state": sizeMigState,
		"xfrm_user_mapping": sizeMapping, "xfrm_address_filter": sizeFilter, "xfrm_user_offload": sizeOffload,
		"xfrm_userpolicy_default": sizeDefault, "xfrm_replay_state": 12, "xfrm_replay_state_esn": sizeESN, "xfrm_mark": 8,
		"xfrm_user_sec_ctx": sizeSecCtx, "xfrmu_sadhinfo": sizeInfoHash, "xfrmu_spdinfo": sizeSPDInfo,
		"xfrmu_spdhinfo": sizeInfoHash, "xfrmu_spdhthresh": sizeInfoThresh,
	}
	// Where a field is, as this package writes it: a marked value is put and
	// looked for.
	offsets := fieldOffsets(t)
	consts := map[string]int{}
	for i := AttrAuth; i <= AttrIPTFSPktSize; i++ {
		consts["XFRMA_"+strings.ToUpper(i.String())] = int(i)
	}
	for i := NewSA; i <= MsgMigrateState; i++ {
		consts["XFRM_MSG_"+strings.ToUpper(i.String())] = int(i)
	}
	for i := GroupAcquire; i <= GroupMapping; i++ {
		consts["XFRMNLGRP_"+strings.ToUpper(i.String())] = int(i)
	}
	for k, v := range map[string]AttrType{"XFRMA_SAD_CNT": attrSADCount, "XFRMA_SAD_HINFO": attrSADHash, "XFRMA_SPD_INFO": attrSPDInfo,
		"XFRMA_SPD_HINFO": attrSPDHash, "XFRMA_SPD_IPV4_HTHRESH": attrSPDThresh4, "XFRMA_SPD_IPV6_HTHRESH": attrSPDThresh6} {
		consts[k] = int(v)
	}
	n := 0
	for _, l := range vectors.Lines(t, "xfrm/layout.tsv") {
		f := strings.Split(l, "\t")
		v, err := strconv.Atoi(f[3])
		if err != nil {
			t.Fatal(err)
		}
		var got int
		var ok bool
		switch f[0] {
		case "struct":
			got, ok = sizes[f[1]]
		case "field":
			got, ok = offsets[f[1]]
		case "const":
			got, ok = consts[f[1]]
		}
		if !ok || got != v {
			t.Errorf("%s %s: %d (known: %v), want %d", f[0], f[1], got, ok, v)
		}
		n++
	}
	if n < 150 {
		t.Errorf("only %d lines", n)
	}
}

// find returns where a pattern begins, which must occur once.
func find(t *testing.T, where, b []byte, what string) int {
	t.Helper()
	if strings.Count(string(where), string(b)) != 1 {
		t.Fatalf("%s: pattern %x in %x", what, b, where)
	}
	return strings.Index(string(where), string(b))
}

func u16(v uint16) []byte { return ne.AppendUint16(nil, v) }
func u32(v uint32) []byte { return ne.AppendUint32(nil, v) }

func fieldOffsets(t *testing.T) map[string]int {
	out := map[string]int{}
	d4, s4 := netip.MustParseAddr("2001:db8:aaaa::1"), netip.MustParseAddr("2001:db8:bbbb::2")
	sel := Selector{Src: netip.PrefixFrom(s4, 0x61), Dst: netip.PrefixFrom(d4, 0x62), Proto: 0x63, SrcPort: PortMatch{0x6465, 0x6667},
		DstPort: PortMatch{0x6869, 0x6a6b}, IfIndex: 0x6c6d6e6f, UID: 0x70717273}
	var p [sizeSelector]byte
	if err := sel.put(p[:]); err != nil {
		t.Fatal(err)
	}
	for name, pat := range map[string][]byte{"daddr": d4.AsSlice(), "saddr": s4.AsSlice(), "dport": {0x68, 0x69}, "dport_mask": {0x6a, 0x6b},
		"sport": {0x64, 0x65}, "sport_mask": {0x66, 0x67}, "prefixlen_d": {0x62}, "prefixlen_s": {0x61}, "proto": {0x63},
		"ifindex": u32(0x6c6d6e6f), "user": u32(0x70717273)} {
		out["xfrm_selector."+name] = find(t, p[:], pat, name)
	}
	out["xfrm_selector.family"] = find(t, p[32:], u16(10), "family") + 32

	s := SA{Src: s4, Dst: d4, SPI: 0x41424344, Proto: 0x45, Mode: 0x46, ReqID: 0x4748494a, Seq: 0x4b4c4d4e, Flags: 0x4f,
		Replay: Replay{Window: 0x50, Form: ReplayLegacy}, Sel: Selector{Proto: 0x51},
		Lifetime: Lifetime{SoftBytes: 0x5253545556575859}, Cur: Counters{Bytes: 0x5a5b5c5d5e5f6061}, Stats: Stats{ReplayWindow: 0x62636465}}
	var q [sizeSA]byte
	if err := s.put(&q); err != nil {
		t.Fatal(err)
	}
	for name, pat := range map[string][]byte{"id": d4.AsSlice(), "saddr": s4.AsSlice(), "lft": ne.AppendUint64(nil, 0x5253545556575859),
		"curlft": ne.AppendUint64(nil, 0x5a5b5c5d5e5f6061), "stats": u32(0x62636465), "seq": u32(0x4b4c4d4e), "reqid": u32(0x4748494a),
		"mode": {0x46}, "replay_window": {0x50}, "flags": {0x4f}} {
		out["xfrm_usersa_info."+name] = find(t, q[:], pat, name)
	}
	out["xfrm_usersa_info.sel"] = find(t, q[:], []byte{0x51}, "sel") - 44
	out["xfrm_usersa_info.family"] = find(t, q[saReqID+4:], u16(10), "family") + saReqID + 4

	x := Policy{Sel: Selector{Src: netip.PrefixFrom(s4, 1), Dst: netip.PrefixFrom(d4, 2)}, Lifetime: s.Lifetime, Cur: s.Cur,
		Priority: 0x41424344, Index: 0x45464748, Dir: 0x49, Action: 0x4a, Flags: 0x4b, Share: 0x4c}
	var r [sizePolicy]byte
	if err := x.put(r[:]); err != nil {
		t.Fatal(err)
	}
	for name, pat := range map[string][]byte{"lft": ne.AppendUint64(nil, 0x5253545556575859), "curlft": ne.AppendUint64(nil, 0x5a5b5c5d5e5f6061),
		"priority": u32(0x41424344), "index": u32(0x45464748), "dir": {0x49}, "action": {0x4a}, "flags": {0x4b}, "share": {0x4c}} {
		out["xfrm_userpolicy_info."+name] = find(t, r[:], pat, name)
	}

	tm := Template{Src: s4, Dst: d4, Proto: ESP, ReqID: 0x41424344, Mode: 0x45, Share: 0x46, Level: 0x47, NoAuth: ^uint32(0x48494a4b),
		NoEnc: ^uint32(0x4c4d4e4f), NoComp: ^uint32(0x50515253)}
	var u [sizeTmpl]byte
	if err := tm.put(u[:], 0); err != nil {
		t.Fatal(err)
	}
	for name, pat := range map[string][]byte{"id": d4.AsSlice(), "saddr": s4.AsSlice(), "reqid": u32(0x41424344), "mode": {0x45}, "share": {0x46},
		"optional": {0x47}, "aalgos": u32(0x48494a4b), "ealgos": u32(0x4c4d4e4f), "calgos": u32(0x50515253)} {
		out["xfrm_user_tmpl."+name] = find(t, u[:], pat, name)
	}
	out["xfrm_user_tmpl.family"] = find(t, u[20:], u16(10), "family") + 20

	b, err := AppendAcquire(nil, Header{}, &Acquire{Dst: d4, Src: s4, Proto: ESP, Sel: Selector{Proto: 0x41, Family: IPv6},
		Policy: Policy{Priority: 0x42434445}, NoAuth: ^uint32(0x46474849), Seq: 0x4a4b4c4d})
	if err != nil {
		t.Fatal(err)
	}
	b = b[sizeHeader:]
	out["xfrm_user_acquire.sel"] = find(t, b, []byte{0x41, 0, 0, 0, 0}, "sel") - 44
	out["xfrm_user_acquire.policy"] = find(t, b, u32(0x42434445), "policy") - polPriority
	out["xfrm_user_acquire.aalgos"] = find(t, b, u32(0x46474849), "aalgos")
	out["xfrm_user_acquire.seq"] = find(t, b, u32(0x4a4b4c4d), "seq")
	b, err = AppendReport(nil, Header{}, &Report{Proto: HAO, Sel: Selector{Proto: 0x41}})
	if err != nil {
		t.Fatal(err)
	}
	out["xfrm_user_report.sel"] = find(t, b[sizeHeader:], []byte{0x41}, "sel") - 44
	return out
}

// TestLayoutByArchitecture holds the sizes that alignment changes, as
// compilers for each of these systems give them.
func TestLayoutByArchitecture(t *testing.T) {
	want := [...]int{224, 232, 168, 280, 232, 176}
	if runtime.GOARCH == "386" {
		want = [...]int{220, 228, 164, 276, 224, 168}
	}
	if got := [...]int{sizeSA, sizeSPI, sizePolicy, sizeAcquire, sizeExpire, sizePolExpire}; got != want {
		t.Errorf("sizes %v, want %v", got, want)
	}
}

// TestBytesByArchitecture holds one whole message per byte order and
// alignment.
func TestBytesByArchitecture(t *testing.T) {
	c, err := ParseCommand("ip xfrm policy add src 10.0.0.0/8 dst 10.1.0.0/16 proto tcp dport 443 dir out priority 7 if_id 5", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Append(nil, Header{Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	le, be := ne.Uint16([]byte{1, 0}) == 1, ne.Uint16([]byte{0, 1}) == 1
	inf, zero := strings.Repeat("ff", 32), strings.Repeat("00", 32)
	var want string
	switch {
	case le && tailPad == 0:
		want = "c000000013000500010000000000000" + "0" +
			"0a010000" + zero[:24] + "0a000000" + zero[:24] + "01bbffff00000000" + "02001008" + "06000000" + "0000000000000000" +
			inf + zero + zero + "07000000000000000100000000000000" + "08001f0005000000"
	case le:
		want = "bc000000130005000100000000000000" +
			"0a010000" + zero[:24] + "0a000000" + zero[:24] + "01bbffff00000000" + "02001008" + "06000000" + "0000000000000000" +
			inf + zero + zero + "070000000000000001000000" + "08001f0005000000"
	case be && tailPad == 0:
		want = "000000c0001300050000000100000000" +
			"0a010000" + zero[:24] + "0a000000" + zero[:24] + "01bbffff00000000" + "00021008" + "06000000" + "0000000000000000" +
			inf + zero + zero + "00000007000000000100000000000000" + "0008001f00000005"
	}
	if hex.EncodeToString(got) != want {
		t.Errorf("\n got %x\nwant %s", got, want)
	}
}
