// Command xfrm-monitor prints what the kernel tells about IPsec, all groups or
// some, as JSON lines:
//
//	$ xfrm-monitor acquire expire
//	{"time":"2026-12-01T02:15:04.123Z","event":"acquire","data":{"dst":"192.0.2.2",...}}
//
// Keys of new states are hidden unless -keys is given. It needs CAP_NET_ADMIN.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("xfrm-monitor", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	keys := fs.Bool("keys", false, "show key material")
	count := fs.Int("n", 0, "end after this many events; 0 for never")
	limit := fs.Duration("for", 0, "end after this time; 0 for never")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: xfrm-monitor [-keys] [-n count] [-for duration] [group ...]\n\n"+
			"Groups: acquire expire sa policy aevents report migrate mapping; all of them\nif none is named.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "xfrm-monitor:", err)
		return 2
	}
	var groups []xfrm.Group
	for _, a := range fs.Args() {
		g, ok := group(a)
		if !ok {
			fmt.Fprintf(stderr, "xfrm-monitor: no group %q\n", a)
			return 2
		}
		groups = append(groups, g)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	events, err := conn.Listen(ctx, nil, groups...)
	if err != nil {
		fmt.Fprintf(stderr, "xfrm-monitor: %v\n", err)
		return 1
	}
	n := 0
	for e, err := range events {
		if err != nil {
			fmt.Fprintf(stderr, "xfrm-monitor: %v\n", err)
			if errors.Is(err, conn.ErrLost) || errors.As(err, new(*xfrm.FormatError)) {
				continue
			}
			return 1
		}
		line, err := appendEvent(nil, time.Now(), e, *keys)
		if err == nil {
			_, err = stdout.Write(line)
		}
		if err != nil {
			fmt.Fprintf(stderr, "xfrm-monitor: %v\n", err)
			return 1
		}
		if n++; n == *count {
			break
		}
	}
	return 0
}

func group(name string) (xfrm.Group, bool) {
	for _, g := range conn.AllGroups() {
		if g.String() == name {
			return g, true
		}
	}
	return 0, false
}

// kind is the event's name.
func kind(e xfrm.Event) string {
	switch e := e.(type) {
	case *xfrm.SAChange:
		return e.Type.String()
	case *xfrm.PolicyChange:
		return e.Type.String()
	case *xfrm.Flush:
		return e.Type.String()
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "*xfrm."))
}

func appendEvent(b []byte, now time.Time, e xfrm.Event, keys bool) ([]byte, error) {
	b = append(b, `{"time":"`...)
	b = now.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = fmt.Appendf(b, `","event":%q,"data":`, kind(e))
	b, err := xfrm.AppendJSON(b, e, xfrm.TextOptions{Keys: keys})
	return append(b, "}\n"...), err
}
