package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"signalbox.example/xfrm"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{"-frob"}, 2, "xfrm-monitor: flag provided"},
		{[]string{"acquire", "nothing"}, 2, "xfrm-monitor: no group \"nothing\""},
	} {
		var out, errs bytes.Buffer
		if code := run(c.args, nil, &out, &errs); code != c.code || !strings.HasPrefix(errs.String(), c.err) || out.Len() > 0 {
			t.Errorf("%v: %d %q %q", c.args, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-h"}, nil, &out, &errs); code != 0 || !strings.HasPrefix(out.String(), "usage: xfrm-monitor") || errs.Len() > 0 {
		t.Errorf("help: %d %q %q", code, out.String(), errs.String())
	}
}

func TestLines(t *testing.T) {
	s := xfrm.SA{SPI: 7, Proto: xfrm.ESP, AEAD: xfrm.AEAD{Name: "rfc4106(gcm(aes))", Key: xfrm.Key("0123456789abcdefsalt"), ICVBits: 128}}
	now := time.Date(2026, 12, 1, 2, 15, 4, 123e6, time.UTC)
	for _, c := range []struct {
		e    xfrm.Event
		name string
	}{{&xfrm.SAChange{Type: xfrm.NewSA, SA: s}, "newsa"}, {&xfrm.Acquire{Proto: xfrm.ESP}, "acquire"}, {&xfrm.Flush{Type: xfrm.FlushPolicy}, "flushpolicy"}} {
		b, err := appendEvent(nil, now, c.e, false)
		var v struct {
			Time, Event string
			Data        map[string]any
		}
		if err != nil || json.Unmarshal(b, &v) != nil || v.Event != c.name || v.Time != "2026-12-01T02:15:04.123Z" || b[len(b)-1] != '\n' {
			t.Errorf("%s %v", b, err)
		}
		if bytes.Contains(b, []byte("30313233")) {
			t.Errorf("a key in %s", b)
		}
	}
	b, err := appendEvent(nil, now, &xfrm.SAChange{Type: xfrm.NewSA, SA: s}, true)
	if err != nil || !bytes.Contains(b, []byte("30313233")) {
		t.Errorf("no key in %s", b)
	}
}
