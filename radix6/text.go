package radix6

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// lines yields the lines of a text with blanks around and, where there may be any,
// comments (from # on) cut off, empty ones left out, and at the end the reader's
// error.
func lines(r io.Reader, comments bool, yield func(number int, text string, err error) bool) {
	sc := bufio.NewScanner(r)
	n := 1
	for ; sc.Scan(); n++ {
		text := sc.Text()
		if comments {
			text, _, _ = strings.Cut(text, "#")
		}
		if text = strings.TrimSpace(text); text != "" && !yield(n, text, nil) {
			return
		}
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		yield(n, "", lineError(n, "", "line is too long"))
	case err != nil:
		yield(n, "", err)
	}
}

// readLines parses each line into a T and stops behind the first error.
func readLines[T any](r io.Reader, comments bool, parse func(text string) (T, string)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		lines(r, comments, func(n int, text string, err error) bool {
			var zero T
			if err != nil {
				yield(zero, err)
				return false
			}
			v, why := parse(text)
			if why != "" {
				yield(zero, lineError(n, text, why))
				return false
			}
			return yield(v, nil)
		})
	}
}

// ReadPrefixes reads a plain list: one IPv6 prefix or address (taken as /128)
// a line, # begins a comment. It stops behind the first error, which is of
// type *[LineError] or the reader's own.
func ReadPrefixes(r io.Reader) iter.Seq2[netip.Prefix, error] {
	return readLines(r, true, parsePrefix)
}

func parsePrefix(s string) (p netip.Prefix, why string) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is6() || a.Zone() != "" {
			return p, "no IPv6 prefix or address"
		}
		return netip.PrefixFrom(a, 128), ""
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, "no IPv6 prefix or address"
	case !p.Addr().Is6():
		return p, "not IPv6"
	case p != p.Masked():
		return p, "host bits are set"
	}
	return p, ""
}

// WritePrefixes writes the prefixes that have routes, one a line, in the
// order of [Tree.All], each once.
func (t *Tree[V]) WritePrefixes(w io.Writer) error {
	b := bufio.NewWriter(w)
	var last netip.Prefix
	for r := range t.All() {
		if r.Prefix != last {
			b.Write(append(r.Prefix.AppendTo(b.AvailableBuffer()), '\n'))
			last = r.Prefix
		}
	}
	return b.Flush()
}

// A Command is one line of "ip -6 -batch" about a route.
type Command struct {
	// Delete tells "del" from the others, which Mode describes.
	Delete bool
	Mode   Mode
	// Route's metric is [DefaultMetric] where the line names none or 0, as
	// Linux has it; for Delete it is then 0, which means any to Linux.
	Route Route
	Table uint32 // 254 (main) where the line names none
	// Type is the word before the prefix, such as blackhole or unreachable;
	// empty means unicast.
	Type string
	Via  netip.Addr
	Dev  string
	// Other holds the words not understood above, such as proto, src or mtu
	// with their arguments, in their order.
	Other []string
}

var verbs = []struct {
	word string
	mode Mode
}{
	{"add", ModeAdd}, {"change", ModeChange}, {"chg", ModeChange}, {"replace", ModeReplace},
	{"append", ModeAppend}, {"prepend", Create}, {"del", 0}, {"delete", 0},
}

var tableNames = []struct {
	name   string
	number uint32
}{{"default", 253}, {"main", 254}, {"local", 255}}

var typeNames = []string{"unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw"}

// ReadBatch reads what "ip -6 -batch" reads, as far as it is about IPv6
// routes: lines like
//
//	route add table 100 2001:db8::/32 from 2001:db8:a::/48 via fe80::1 dev eth0 metric 5
//
// with the verbs add, append, change, del, prepend and replace, route types
// before the prefix, "default", and # comments. Host bits are cut off
// silently, as ip does. Any other line is an error; it stops behind the
// first, which is of type *[LineError] or the reader's own.
func ReadBatch(r io.Reader) iter.Seq2[Command, error] {
	return readLines(r, true, func(text string) (Command, string) { return parseCommand(strings.Fields(text)) })
}

// parseDestination reads a prefix as ip does: an address is a /128, "default"
// and "any" are ::/0, host bits are cut off.
func parseDestination(s string) (netip.Prefix, bool) {
	if s == "default" || s == "any" || s == "all" {
		return key{}.prefix(0), true
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, 128), a.Is6() && a.Zone() == ""
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err == nil && p.Addr().Is6()
}

func parseCommand(f []string) (c Command, why string) {
	if len(f) > 0 && f[0] == "-6" {
		f = f[1:]
	}
	if len(f) < 3 || f[0] != "route" && f[0] != "ro" && f[0] != "r" {
		return c, "not a route command"
	}
	known := false
	for _, v := range verbs {
		if v.word == f[1] {
			c.Mode, c.Delete, known = v.mode, v.mode == 0, true
		}
	}
	if !known {
		return c, "unknown verb " + strconv.Quote(f[1])
	}
	c.Table = 254
	for f = f[2:]; len(f) > 0; {
		word := f[0]
		f = f[1:]
		arg := ""
		switch word {
		case "to":
			continue
		case "table", "metric", "priority", "preference", "via", "dev", "from", "type":
			if len(f) == 0 {
				return c, word + " without a value"
			}
			arg, f = f[0], f[1:]
			if word == "via" && (arg == "inet6" || arg == "inet") && len(f) > 0 { // via [FAMILY] ADDRESS
				arg, f = f[0], f[1:]
			}
		}
		ok := true
		var err error
		switch word {
		case "table":
			c.Table, ok = parseTable(arg)
		case "metric", "priority", "preference":
			var v uint64
			v, err = strconv.ParseUint(arg, 0, 32)
			c.Route.Metric = uint32(v)
		case "via":
			c.Via, err = netip.ParseAddr(arg)
		case "dev":
			c.Dev = arg
		case "from":
			c.Route.From, ok = parseDestination(arg)
		case "type":
			ok = slices.Contains(typeNames, arg)
			c.Type = arg
		default:
			switch p, is := parseDestination(word); {
			case c.Route.Prefix.IsValid():
				c.Other = append(c.Other, word)
			case is:
				c.Route.Prefix = p
			case slices.Contains(typeNames, word):
				c.Type = word
			default:
				return c, "no IPv6 prefix: " + strconv.Quote(word)
			}
		}
		if !ok || err != nil {
			return c, fmt.Sprintf("%s does not take %q", word, arg)
		}
	}
	if !c.Route.Prefix.IsValid() {
		return c, "no prefix"
	}
	if c.Type == "unicast" {
		c.Type = ""
	}
	if c.Route.From.IsValid() && c.Route.From.Bits() == 0 {
		c.Route.From = netip.Prefix{}
	}
	if c.Route.Metric == 0 && !c.Delete {
		c.Route.Metric = DefaultMetric
	}
	return c, ""
}

func parseTable(s string) (uint32, bool) {
	for _, t := range tableNames {
		if t.name == s {
			return t.number, true
		}
	}
	n, err := strconv.ParseUint(s, 0, 32)
	return uint32(n), err == nil
}

// String returns the command as a line that ip and [ReadBatch] read.
func (c Command) String() string {
	verb := "del"
	if !c.Delete {
		switch {
		case c.Mode&Excl != 0:
			verb = "add"
		case c.Mode&Replace != 0 && c.Mode&Create == 0:
			verb = "change"
		case c.Mode&Replace != 0:
			verb = "replace"
		default:
			verb = "append"
		}
	}
	b := append([]byte("route "), verb...)
	if c.Type != "" {
		b = append(append(b, ' '), c.Type...)
	}
	b = c.Route.Prefix.AppendTo(append(b, ' '))
	if c.Route.From.IsValid() {
		b = c.Route.From.AppendTo(append(b, " from "...))
	}
	if c.Via.IsValid() {
		b = c.Via.AppendTo(append(b, " via "...))
	}
	if c.Dev != "" {
		b = append(append(b, " dev "...), c.Dev...)
	}
	if c.Table != 0 && c.Table != 254 {
		b = strconv.AppendUint(append(b, " table "...), uint64(c.Table), 10)
	}
	if c.Route.Metric != 0 {
		b = strconv.AppendUint(append(b, " metric "...), uint64(c.Route.Metric), 10)
	}
	for _, w := range c.Other {
		b = append(append(b, ' '), w...)
	}
	return string(b)
}

// WriteBatch writes an "append" command for each route, in the order of
// [Tree.All], so that ip loads an equal table from it. Describe, which may be
// nil, fills in what only the value knows: table, type, next hop, device.
func (t *Tree[V]) WriteBatch(w io.Writer, describe func(c *Command, v V)) error {
	b := bufio.NewWriter(w)
	for r, v := range t.All() {
		c := Command{Mode: ModeAppend, Route: r}
		if describe != nil {
			describe(&c, v)
		}
		b.WriteString(c.String())
		b.WriteByte('\n')
	}
	return b.Flush()
}

// ProcRoute is one line of /proc/net/ipv6_route, which lists the routes of all
// tables without saying which table.
type ProcRoute struct {
	Route   Route
	Gateway netip.Addr // zero where the file has ::, for no gateway
	Refs    uint32     // reference count
	Uses    uint32     // always 0 since Linux 4.15
	Flags   uint32     // RTF_ flags of <linux/route.h> and <linux/ipv6_route.h>
	Dev     string
}

// Flags of a [ProcRoute].
const (
	FlagUp      = 0x0001     // RTF_UP
	FlagGateway = 0x0002     // RTF_GATEWAY
	FlagHost    = 0x0004     // RTF_HOST
	FlagReject  = 0x0200     // RTF_REJECT: unreachable, prohibit, blackhole, or through lo
	FlagExpires = 0x00400000 // RTF_EXPIRES
	FlagCache   = 0x01000000 // RTF_CACHE: an exception; Linux lists none since 4.15
	FlagLocal   = 0x80000000 // RTF_LOCAL
)

// ReadProcRoute reads /proc/net/ipv6_route. It stops behind the first error,
// which is of type *[LineError] or the reader's own.
//
// Besides the routes the file lists, for each table that is not empty, the
// entry that stands for no route: ::/0 on lo with [FlagReject] and the metric
// 4294967295.
func ReadProcRoute(r io.Reader) iter.Seq2[ProcRoute, error] {
	return readLines(r, false, parseProcRoute) // a device may have # in its name
}

func parseProcRoute(text string) (p ProcRoute, why string) {
	f := strings.Fields(text)
	if len(f) != 10 {
		return p, fmt.Sprintf("%d fields, want 10", len(f))
	}
	var ok bool
	if p.Route.Prefix, ok = hexPrefix(f[0], f[1]); !ok {
		return p, "wrong destination"
	}
	if p.Route.From, ok = hexPrefix(f[2], f[3]); !ok {
		return p, "wrong source"
	}
	if p.Route.From.Bits() == 0 {
		p.Route.From = netip.Prefix{}
	}
	gw, ok := hexAddr(f[4])
	if !ok {
		return p, "wrong gateway"
	}
	if gw != (key{}) {
		p.Gateway = gw.addr()
	}
	for i, to := range []*uint32{&p.Route.Metric, &p.Refs, &p.Uses, &p.Flags} {
		v, err := strconv.ParseUint(f[5+i], 16, 32)
		if err != nil || len(f[5+i]) != 8 {
			return p, "not 8 hexadecimal digits: " + strconv.Quote(f[5+i])
		}
		*to = uint32(v)
	}
	p.Dev = f[9]
	return p, ""
}

func hexAddr(s string) (k key, ok bool) {
	if len(s) != 32 {
		return k, false
	}
	hi, err1 := strconv.ParseUint(s[:16], 16, 64)
	lo, err2 := strconv.ParseUint(s[16:], 16, 64)
	return key{hi, lo}, err1 == nil && err2 == nil
}

func hexPrefix(addr, length string) (netip.Prefix, bool) {
	k, ok := hexAddr(addr)
	n, err := strconv.ParseUint(length, 16, 8)
	if !ok || err != nil || len(length) != 2 || n > 128 || k.mask(int(n)) != k {
		return netip.Prefix{}, false
	}
	return k.prefix(int(n)), true
}

// String returns the line without its line end.
func (p ProcRoute) String() string {
	var d, s, g key
	d.hi, d.lo, _ = addrKey(p.Route.Prefix.Addr())
	s.hi, s.lo, _ = addrKey(p.Route.From.Addr())
	g.hi, g.lo, _ = addrKey(p.Gateway)
	return fmt.Sprintf("%016x%016x %02x %016x%016x %02x %016x%016x %08x %08x %08x %08x %8s",
		d.hi, d.lo, max(0, p.Route.Prefix.Bits()), s.hi, s.lo, max(0, p.Route.From.Bits()), g.hi, g.lo,
		p.Route.Metric, p.Refs, p.Uses, p.Flags, p.Dev)
}

// WriteProcRoute writes the routes as /proc/net/ipv6_route would list them, in
// its order. Describe, which may be nil, fills in what only the value knows:
// gateway, flags, device, counters.
func (t *Tree[V]) WriteProcRoute(w io.Writer, describe func(p *ProcRoute, v V)) error {
	b := bufio.NewWriter(w)
	for r, v := range t.KernelOrder() {
		p := ProcRoute{Route: r, Flags: FlagUp}
		if describe != nil {
			describe(&p, v)
		}
		b.WriteString(p.String())
		b.WriteByte('\n')
	}
	return b.Flush()
}
