// Command livetable answers route lookups over HTTP while a feed of updates
// changes the table underneath: lpctrie.Live for IPv4, radix6.Live for IPv6.
// Lookups never wait for updates, and see each of them whole.
//
//	$ livetable -listen 127.0.0.1:8080 -feed - <<. &
//	add 192.0.2.0/24 AS64496
//	add 192.0.2.128/25 AS64497
//	del 192.0.2.128/25
//	.
//	$ curl 'http://127.0.0.1:8080/lookup?addr=192.0.2.200'
//	{"addr":"192.0.2.200","prefix":"192.0.2.0/24","value":"AS64496"}
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return runUntil(ctx, args, stdin, stdout, stderr)
}

func runUntil(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("livetable", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	listen := fs.String("listen", "127.0.0.1:8080", "`address` to serve HTTP on; port 0 takes a free one")
	routes := fs.String("routes", "", "`file` of lines \"prefix value\" to begin with")
	feed := fs.String("feed", "", "`file` of updates to follow, - for standard input: \"add prefix value\", \"del prefix\"; lines between \"begin\" and \"commit\" take effect together")
	churn := fs.Int("churn", 0, "also take away and put back routes, `n` updates a second")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: livetable [-listen address] [-routes file] [-feed file] [-churn n]\n\n"+
			"Serves /lookup?addr=ADDRESS and /stats until it is interrupted.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "livetable:", err)
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "livetable: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	if *churn < 0 {
		fmt.Fprintln(stderr, "livetable: -churn must not be negative")
		return 2
	}
	if err := serve(ctx, *listen, *routes, *feed, *churn, stdin, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "livetable: %v\n", err)
		return 1
	}
	return 0
}

// A family is one address family's live table.
type family interface {
	// apply makes changes, all at once or none.
	apply(cs []change) error
	lookup(a netip.Addr) (value string, p netip.Prefix, ok bool)
	count() int
}

// A change adds or replaces a route, or deletes it.
type change struct {
	prefix netip.Prefix
	value  string
	del    bool
}

// A server has the tables of both families.
type server struct {
	v4, v6           family
	updates, lookups atomic.Uint64
}

func newServer() *server { return &server{v4: newIPv4(), v6: newIPv6()} }

func (s *server) of(a netip.Addr) family {
	if a.Is4() {
		return s.v4
	}
	return s.v6
}

// apply makes changes. Those of one family take effect together.
func (s *server) apply(cs []change) error {
	var split [2][]change
	for _, c := range cs {
		i := 0
		if !c.prefix.Addr().Is4() {
			i = 1
		}
		split[i] = append(split[i], c)
	}
	for i, f := range []family{s.v4, s.v6} {
		if len(split[i]) > 0 {
			if err := f.apply(split[i]); err != nil {
				return err
			}
		}
	}
	s.updates.Add(uint64(len(cs)))
	return nil
}

func serve(ctx context.Context, listen, routes, feed string, churn int, stdin io.Reader, stdout, stderr io.Writer) error {
	s := newServer()
	if routes != "" {
		f, err := os.Open(routes)
		if err != nil {
			return err
		}
		err = s.load(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", routes, err)
		}
	}
	var in io.ReadCloser
	switch feed {
	case "":
	case "-":
		in = io.NopCloser(stdin)
	default:
		f, err := os.Open(feed)
		if err != nil {
			return err
		}
		in = f
		defer f.Close()
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "http://%v\n", l.Addr())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in != nil {
		// A read from a terminal or pipe cannot be interrupted: it is left
		// behind when the program ends.
		go func() {
			if err := s.follow(ctx, in); err != nil {
				fmt.Fprintf(stderr, "livetable: feed: %v\n", err)
			}
		}()
	}
	if churn > 0 {
		go s.churn(ctx, churn)
	}
	h := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { h.Close() })
	defer stopped()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// parseChange reads "prefix value" or, to delete, "prefix".
func parseChange(f []string, del bool) (c change, err error) {
	if want := 2; del && len(f) != 1 || !del && len(f) != want {
		return c, errors.New("wrong number of words")
	}
	if c.prefix, err = netip.ParsePrefix(f[0]); err != nil {
		return c, err
	}
	if c.prefix != c.prefix.Masked() {
		return c, fmt.Errorf("host bits are set in %v", c.prefix)
	}
	if c.del = del; !del {
		c.value = f[1]
	}
	return c, nil
}

// load reads the first routes, in one update for each family.
func (s *server) load(r io.Reader) error {
	var cs []change
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		c, err := parseChange(f, false)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		cs = append(cs, c)
	}
	return errors.Join(sc.Err(), s.apply(cs))
}

// follow applies a feed until it ends. A wrong line ends it too.
func (s *server) follow(ctx context.Context, r io.Reader) error {
	sc := bufio.NewScanner(r)
	var group []change
	inGroup := false
	for line := 1; sc.Scan() && ctx.Err() == nil; line++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		var err error
		switch {
		case f[0] == "begin" && len(f) == 1 && !inGroup:
			inGroup = true
		case f[0] == "commit" && len(f) == 1 && inGroup:
			err = s.apply(group)
			inGroup, group = false, group[:0]
		case f[0] == "add" || f[0] == "del":
			var c change
			if c, err = parseChange(f[1:], f[0] == "del"); err == nil {
				if group = append(group, c); !inGroup {
					err = s.apply(group)
					group = group[:0]
				}
			}
		default:
			err = fmt.Errorf("not an update: %q", text)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return sc.Err()
}

// churn takes routes away and puts them back, n updates a second.
func (s *server) churn(ctx context.Context, n int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var away []change
	due := 0.0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due += float64(n) / 100; due >= 1; due-- {
			if len(away) > 0 && rand.IntN(2) == 0 {
				i := rand.IntN(len(away))
				_ = s.apply(away[i : i+1]) // it was there before
				away = append(away[:i], away[i+1:]...)
				continue
			}
			// Some route that serves a random address.
			a := netip.AddrFrom4([4]byte{byte(rand.IntN(224)), byte(rand.IntN(256)), byte(rand.IntN(256)), 1})
			if v, p, ok := s.v4.lookup(a); ok && len(away) < 1000 {
				if s.apply([]change{{prefix: p, del: true}}) == nil {
					away = append(away, change{prefix: p, value: v})
				}
			}
		}
	}
}

func (s *server) handler() http.Handler {
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /lookup", func(w http.ResponseWriter, r *http.Request) {
		s.lookups.Add(1)
		a, err := netip.ParseAddr(r.URL.Query().Get("addr"))
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]string{"error": "addr: " + err.Error()})
			return
		}
		v, p, ok := s.of(a).lookup(a)
		if !ok {
			answer(w, http.StatusNotFound, map[string]string{"addr": a.String(), "error": "no route"})
			return
		}
		answer(w, http.StatusOK, struct {
			Addr   netip.Addr   `json:"addr"`
			Prefix netip.Prefix `json:"prefix"`
			Value  string       `json:"value"`
		}{a, p, v})
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, struct {
			IPv4    int    `json:"ipv4_routes"`
			IPv6    int    `json:"ipv6_routes"`
			Updates uint64 `json:"updates"`
			Lookups uint64 `json:"lookups"`
		}{s.v4.count(), s.v6.count(), s.updates.Load(), s.lookups.Load()})
	})
	return mux
}
