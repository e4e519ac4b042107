package xfrm

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
)

func samplePolicy() Policy {
	return Policy{Sel: Selector{Src: netip.MustParsePrefix("10.0.0.0/8"), Dst: netip.MustParsePrefix("10.1.0.0/16"), Family: IPv4},
		Dir: Out, Index: 9, Priority: 3, Templates: []Template{{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"),
			Family: IPv4, Proto: ESP, ReqID: 77}}}
}

// sampleEvents are events of every kind with every field in use.
func sampleEvents() []Event {
	v4a, v4b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	v6a, v6b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	sel := Selector{Src: netip.MustParsePrefix("192.0.2.1/32"), Dst: netip.MustParsePrefix("192.0.2.2/32"), Family: IPv4, Proto: 1}
	sel.SrcPort, sel.DstPort = ICMPMatch(8, 0)
	sub := samplePolicy()
	sub.Type, sub.Mark, sub.IfID = PolicySub, Mark{6, 7}, 5
	s := gcmSA()
	s.Sel.Family = IPv4
	s.Sel.Src, s.Sel.Dst = netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("0.0.0.0/0")
	return []Event{
		&SAChange{Type: NewSA, SA: s}, &SAChange{Type: UpdSA, SA: s}, &SAChange{Type: DelSA, SA: s},
		&PolicyChange{Type: NewPolicy, Policy: samplePolicy()}, &PolicyChange{Type: UpdPolicy, Policy: sub}, &PolicyChange{Type: DelPolicy, Policy: sub},
		&Acquire{Dst: v4b, Src: v4a, Proto: ESP, Sel: sel, Policy: sub, NoEnc: 1, Seq: 7, Dir: SAOut, PCPU: Some[uint32](0)},
		&Expire{SA: s, Hard: true}, &Expire{SA: s},
		&PolExpire{Policy: sub, Hard: true},
		&AsyncEvent{ID: SAID{Dst: v4b, Src: v4a, SPI: 5, Proto: ESP, Mark: Mark{1, 1}}, Flags: AECauseTimer, ReqID: 4,
			Replay: Some(ReplayState{1, 2, 3}), Lifetime: Some(Counters{1, 2, 3, 4}), ReplayThresh: Some[uint32](0),
			ETimerThresh: Some[uint32](10), IfID: 3, Dir: SAIn, PCPU: Some[uint32](1)},
		&AsyncEvent{ID: SAID{Dst: v6b, Src: v6a, SPI: 5, Proto: AH}, ReplayESN: Replay{Window: 64, Seq: 1, Reported: true, Bitmap: []uint32{1, 2}}},
		&Mapping{ID: SAID{Dst: v4b, SPI: 0x700, Proto: ESP}, ReqID: 5, OldSrc: v4a, NewSrc: v4b, OldPort: 4500, NewPort: 4501},
		&Report{Proto: HAO, Sel: sel, CoA: v4a},
		&Migrate{Policy: PolicyID{Sel: samplePolicy().Sel, Dir: Out, Type: PolicySub, Mark: Mark{1, 1}, IfID: 9},
			Migrations: []Migration{{v4a, v4b, v6a, v6b, ESP, Tunnel, 88}, {v6a, v6b, v4a, v4b, AH, BEET, 0}},
			KMAddress:  Some(KMAddress{v6a, v6b}), Encap: udp4500(), Offload: Some(Offload{3, OffloadInbound})},
		&MigrateState{ID: SAID{Dst: v4b, SPI: 1, Proto: ESP, Mark: Mark{6, 7}}, NewSrc: v6a, NewDst: v6b, NewSel: sel, NewReqID: 5,
			Flags: UpdateSel, Encap: Encap{Type: ESPInUDP, Src: 1, Dst: 2, Addr: v6a}, Offload: Some(Offload{}), NewMark: Some(Mark{}),
			SetMark: Mark{1, 2}, Keepalive: Some[uint32](0), MTimer: Some[uint32](9)},
		&Default{In: DefaultBlock, Fwd: DefaultKeep, Out: DefaultAccept},
		&Flush{Type: FlushSA, Proto: ESP}, &Flush{Type: FlushPolicy, PolicyType: PolicySub}, &Flush{Type: FlushPolicy},
	}
}

// appendEvent builds the message that tells an event.
func appendEvent(e Event) ([]byte, error) {
	h := Header{}
	switch e := e.(type) {
	case *SAChange:
		if e.Type != DelSA {
			return appendSA(nil, e.Type, h, &e.SA, nil)
		}
		// DELSA: the name, then the whole state and its attributes.
		id := e.SA.ID()
		b, p := begin(nil, DelSA, h, sizeSAID)
		if err := id.put(p); err != nil {
			return nil, err
		}
		b, p = appendAttr(b, AttrSA, sizeSA)
		if err := e.SA.put((*[sizeSA]byte)(p)); err != nil {
			return nil, err
		}
		b, err := appendSAAttrs(b, &e.SA, nil)
		return finish(b, 0), err
	case *PolicyChange:
		if e.Type != DelPolicy {
			return appendPolicy(nil, e.Type, h, &e.Policy, true, nil)
		}
		id := e.Policy.ID()
		b, p := begin(nil, DelPolicy, h, sizePolicyID)
		if err := id.put(p); err != nil {
			return nil, err
		}
		b, p = appendAttr(b, AttrPolicy, sizePolicy)
		if err := e.Policy.put(p); err != nil {
			return nil, err
		}
		whole, err := appendPolicy(nil, NewPolicy, h, &e.Policy, true, nil)
		if err != nil {
			return nil, err
		}
		return finish(append(b, whole[sizeHeader+sizePolicy:]...), 0), nil
	case *Acquire:
		return AppendAcquire(nil, h, e)
	case *Expire:
		return AppendExpire(nil, h, e)
	case *PolExpire:
		return AppendPolExpire(nil, h, e)
	case *AsyncEvent:
		return AppendNewAE(nil, h, e)
	case *Migrate:
		return AppendMigrate(nil, h, e)
	case *MigrateState:
		return AppendMigrateState(nil, h, e)
	case *Mapping:
		return AppendMapping(nil, h, e)
	case *Report:
		return AppendReport(nil, h, e)
	case *Default:
		return appendDefault(nil, GetDefault, h, *e), nil
	case *Flush:
		if e.Type == FlushSA {
			return AppendFlushSA(nil, h, e.Proto), nil
		}
		return AppendFlushPolicy(nil, h, e.PolicyType), nil
	}
	return nil, fmt.Errorf("no message for %T", e)
}

func TestEventsThereAndBack(t *testing.T) {
	for _, e := range sampleEvents() {
		b, err := appendEvent(e)
		if err != nil {
			t.Errorf("%T: %v", e, err)
			continue
		}
		got, err := ParseEvent(message(t, b, nil))
		if err != nil {
			t.Errorf("%T: %v", e, err)
			continue
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("%T:\n got %+v\nwant %+v", e, got, e)
		}
		for _, o := range fuzzOptions() {
			if text, err := AppendMessageText(nil, message(t, b, nil), o); err != nil || len(text) == 0 || text[len(text)-1] != '\n' {
				t.Errorf("%T: text %q, %v", e, text, err)
			}
		}
		// Cut anywhere, it is an error or another valid message, never a panic.
		for n := range len(b) {
			short := bytes.Clone(b[:n])
			if n >= sizeHeader {
				finish(short, 0)
			}
			if m, _, err := FirstMessage(short); err == nil {
				_, _ = ParseEvent(m)
			}
		}
	}
}

func TestInfoThereAndBack(t *testing.T) {
	sad := SADInfo{Count: 25, Buckets: 32, MaxBuckets: 1048576}
	var gotSAD SADInfo
	if err := gotSAD.Parse(message(t, AppendNewSADInfo(nil, Header{}, &sad), nil)); err != nil || gotSAD != sad {
		t.Errorf("%+v, %v", gotSAD, err)
	}
	spd := SPDInfo{1, 2, 3, 4, 5, 6, 7, 8, Some(Thresholds{24, 25}), Some(Thresholds{64, 65})}
	var gotSPD SPDInfo
	if err := gotSPD.Parse(message(t, AppendNewSPDInfo(nil, Header{}, &spd), nil)); err != nil || gotSPD != spd {
		t.Errorf("%+v, %v", gotSPD, err)
	}
	ae := AsyncEvent{ID: gcmSAID(), Flags: AEReplay | AELifetime}
	b, err := AppendGetAE(nil, Header{}, &ae)
	var gotAE AsyncEvent
	if err := gotAE.Parse(message(t, b, err)); err != nil || !reflect.DeepEqual(gotAE, ae) {
		t.Errorf("%+v, %v", gotAE, err)
	}
	spi := SPIRequest{SA: gcmSA(), Min: 5, Max: 9}
	b, err = AppendAllocSPI(nil, Header{}, &spi)
	var gotSPI SPIRequest
	if err := gotSPI.Parse(message(t, b, err)); err != nil || gotSPI.Min != 5 || gotSPI.Max != 9 || gotSPI.SA.Dst != spi.SA.Dst {
		t.Errorf("%+v, %v", gotSPI, err)
	}
}

func gcmSAID() SAID {
	s := gcmSA()
	return s.ID()
}
