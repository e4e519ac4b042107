package lpctrie

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

// lines yields the lines of a text with comments (from # on) and blanks
// around cut off, empty ones left out, and at the end the reader's error.
func lines(r io.Reader, yield func(number int, text string, err error) bool) {
	sc := bufio.NewScanner(r)
	n := 1
	for ; sc.Scan(); n++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		if text = strings.TrimSpace(text); text != "" && !yield(n, text, nil) {
			return
		}
	}
	if err := scanError(sc, n); err != nil {
		yield(n, "", err)
	}
}

// scanError is sc.Err(), with the number of a line that is too long.
func scanError(sc *bufio.Scanner, line int) error {
	if err := sc.Err(); !errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	return lineError(line, "", "line is too long")
}

// ReadPrefixes reads a plain list: one IPv4 prefix or address (taken as /32)
// a line, # begins a comment. It stops behind the first error, which is of
// type *[LineError] or the reader's own.
func ReadPrefixes(r io.Reader) iter.Seq2[netip.Prefix, error] {
	return func(yield func(netip.Prefix, error) bool) {
		lines(r, func(n int, text string, err error) bool {
			if err != nil {
				return yield(netip.Prefix{}, err)
			}
			p, why := parsePrefix(text)
			if why != "" {
				yield(netip.Prefix{}, lineError(n, text, "%s", why))
				return false
			}
			return yield(p, nil)
		})
	}
}

func parsePrefix(s string) (p netip.Prefix, why string) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is4() {
			return p, "no IPv4 prefix or address"
		}
		return netip.PrefixFrom(a, 32), ""
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, "no IPv4 prefix or address"
	case !p.Addr().Is4():
		return p, "not IPv4"
	case p != p.Masked():
		return p, "host bits are set"
	}
	return p, ""
}

// A Command is one line of "ip -batch" about a route.
type Command struct {
	// Delete tells "del" from the others, which Mode describes.
	Delete bool
	Mode   Mode
	Route  Route // Table is 254 (main) where the line names none
	Via    netip.Addr
	Dev    string
	// Other holds the words not understood above, such as proto, src or mtu
	// with their arguments, in their order.
	Other []string
}

var verbs = []struct {
	word string
	mode Mode
}{
	{"add", ModeAdd}, {"change", ModeChange}, {"chg", ModeChange}, {"replace", ModeReplace},
	{"append", ModeAppend}, {"prepend", ModePrepend}, {"del", 0}, {"delete", 0},
}

var tables = []struct {
	name   string
	number uint32
}{{"main", 254}, {"local", 255}, {"default", 253}}

// ReadBatch reads what "ip -batch" reads, as far as it is about IPv4 routes:
// lines like
//
//	route add table 100 10.0.0.0/24 via 192.0.2.1 dev eth0 metric 5 tos 0x10
//
// with the verbs add, append, change, del, prepend and replace, route types
// (blackhole, local, ...) before the prefix, "default", and # comments. TOS
// numbers are hexadecimal with or without 0x, as ip reads them. Host bits are
// cut off silently, as ip does. The scope, where it is not given, is chosen as
// ip does. Any other line is an error; it stops behind the first, which is of
// type *[LineError] or the reader's own.
func ReadBatch(r io.Reader) iter.Seq2[Command, error] {
	return func(yield func(Command, error) bool) {
		lines(r, func(n int, text string, err error) bool {
			if err != nil {
				return yield(Command{}, err)
			}
			c, why := parseCommand(strings.Fields(text))
			if why != "" {
				yield(Command{}, lineError(n, text, "%s", why))
				return false
			}
			return yield(c, nil)
		})
	}
}

func parseCommand(f []string) (c Command, why string) {
	if len(f) > 0 && f[0] == "-4" {
		f = f[1:]
	}
	if len(f) < 3 || f[0] != "route" && f[0] != "ro" && f[0] != "r" {
		return c, "not a route command"
	}
	i := slices.IndexFunc(verbs, func(v struct {
		word string
		mode Mode
	}) bool {
		return v.word == f[1]
	})
	if i < 0 {
		return c, "unknown verb " + strconv.Quote(f[1])
	}
	c.Mode, c.Delete = verbs[i].mode, verbs[i].mode == 0
	c.Route.Table = 254
	haveScope := false
	next := func(f []string) (string, []string) {
		if len(f) == 0 {
			return "", nil
		}
		return f[0], f[1:]
	}
	for f = f[2:]; len(f) > 0; {
		var word, arg string
		word, f = f[0], f[1:]
		switch word {
		case "to":
			continue
		case "table", "tos", "dsfield", "metric", "priority", "preference", "via", "dev", "scope", "type":
			if arg, f = next(f); arg == "" {
				return c, word + " without a value"
			}
		}
		ok := true
		switch word {
		case "table":
			c.Route.Table, ok = parseTable(arg)
		case "tos", "dsfield":
			v, err := strconv.ParseUint(strings.TrimPrefix(arg, "0x"), 16, 8)
			c.Route.TOS, ok = uint8(v), err == nil
		case "metric", "priority", "preference":
			v, err := strconv.ParseUint(arg, 0, 32)
			c.Route.Priority, ok = uint32(v), err == nil
		case "via":
			var err error
			if (arg == "inet" || arg == "inet6") && len(f) > 0 { // via [FAMILY] ADDRESS
				arg, f = next(f)
			}
			c.Via, err = netip.ParseAddr(arg)
			ok = err == nil
		case "dev":
			c.Dev = arg
		case "scope":
			if c.Route.Scope, ok = parseScope(arg); !ok {
				v, err := strconv.ParseUint(arg, 0, 8)
				c.Route.Scope, ok = Scope(v), err == nil
			}
			haveScope = true
		case "type":
			c.Route.Type, ok = parseType(arg)
		default:
			if t, is := parseType(word); is && !c.Route.Prefix.IsValid() {
				c.Route.Type = t
			} else if p, is := parseDestination(word); is && !c.Route.Prefix.IsValid() {
				c.Route.Prefix = p
			} else if !c.Route.Prefix.IsValid() {
				return c, "no IPv4 prefix: " + strconv.Quote(word)
			} else {
				c.Other = append(c.Other, word)
			}
		}
		if !ok {
			return c, fmt.Sprintf("%s does not take %q", word, arg)
		}
	}
	if !c.Route.Prefix.IsValid() {
		return c, "no prefix"
	}
	if c.Delete {
		return c, ""
	}
	if c.Route.Type == 0 {
		c.Route.Type = Unicast
	}
	if !haveScope {
		c.Route.Scope = defaultScope(c.Route.Type, c.Via.IsValid())
	}
	return c, ""
}

// defaultScope is ip(8)'s choice for a route that names none.
func defaultScope(t RouteType, gateway bool) Scope {
	switch t {
	case Local, NAT:
		return ScopeHost
	case Broadcast, Multicast, Anycast:
		return ScopeLink
	case Unicast:
		if !gateway {
			return ScopeLink
		}
	}
	return ScopeUniverse
}

func parseTable(s string) (uint32, bool) {
	for _, t := range tables {
		if t.name == s {
			return t.number, true
		}
	}
	v, err := strconv.ParseUint(s, 0, 32)
	if v == 0 {
		v = 254 // "unspecified" ends up in main
	}
	return uint32(v), err == nil
}

func parseType(s string) (RouteType, bool) {
	for i, name := range typeNames {
		if i > 0 && strings.EqualFold(name, s) && s == strings.ToLower(s) {
			return RouteType(i), true
		}
	}
	return 0, false
}

func parseDestination(s string) (netip.Prefix, bool) {
	if s == "default" || s == "all" || s == "any" {
		return prefixOf(0, 32), true
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), p.Addr().Is4()
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, 32), true
}

// String returns the line for "ip -batch" without a line end. A table of 0 is
// left out, so that ip takes its own default.
func (c Command) String() string {
	var b strings.Builder
	b.WriteString("route ")
	verb := "add"
	for _, v := range verbs {
		if c.Delete && v.word == "del" || !c.Delete && v.mode == c.Mode && v.mode != 0 {
			verb = v.word
			break
		}
	}
	b.WriteString(verb)
	r := c.Route
	if r.Type > Unicast {
		if int(r.Type) < len(typeNames) {
			fmt.Fprintf(&b, " %s", strings.ToLower(typeNames[r.Type]))
		}
	}
	fmt.Fprintf(&b, " %v", r.Prefix)
	if c.Via.Is6() {
		fmt.Fprintf(&b, " via inet6 %v", c.Via)
	} else if c.Via.IsValid() {
		fmt.Fprintf(&b, " via %v", c.Via)
	}
	if c.Dev != "" {
		fmt.Fprintf(&b, " dev %s", c.Dev)
	}
	if r.Table != 0 {
		fmt.Fprintf(&b, " table %d", r.Table)
	}
	if r.TOS != 0 {
		fmt.Fprintf(&b, " tos 0x%02x", r.TOS)
	}
	if r.Priority != 0 {
		fmt.Fprintf(&b, " metric %d", r.Priority)
	}
	if !c.Delete && r.Scope != defaultScope(max(r.Type, Unicast), c.Via.IsValid()) {
		name := r.Scope.String()
		if _, ok := parseScope(name); !ok {
			name = strconv.Itoa(int(r.Scope))
		}
		fmt.Fprintf(&b, " scope %s", name)
	}
	for _, w := range c.Other {
		b.WriteByte(' ')
		b.WriteString(w)
	}
	return b.String()
}

// WriteBatch writes every route of the table as a line for "ip -batch" that
// appends it. Describe may complete a command, with a device say, from the
// route's value; nil adds nothing.
func (t *Table[V]) WriteBatch(w io.Writer, describe func(c *Command, v V)) error {
	bw := bufio.NewWriter(w)
	for r, v := range t.All() {
		c := Command{Mode: ModeAppend, Route: r}
		if describe != nil {
			describe(&c, v)
		}
		if _, err := fmt.Fprintln(bw, c); err != nil {
			return err
		}
	}
	return bw.Flush()
}

// WritePrefixes writes the plain list of the table's prefixes, each once.
func (t *Table[V]) WritePrefixes(w io.Writer) error {
	bw := bufio.NewWriter(w)
	var last netip.Prefix
	for r := range t.All() {
		if r.Prefix == last {
			continue
		}
		last = r.Prefix
		if _, err := fmt.Fprintln(bw, r.Prefix); err != nil {
			return err
		}
	}
	return bw.Flush()
}
