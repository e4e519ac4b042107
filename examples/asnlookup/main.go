// Command asnlookup says which autonomous system addresses belong to: it reads
// lines that begin with an IPv4 or IPv6 address, a log say, and writes them
// with the number of the origin AS and the matching prefix appended.
//
//	$ echo 192.0.2.1 GET / | asnlookup
//	192.0.2.1 GET /	AS64496	192.0.2.0/24
//
// The table is compiled once into snapshots of lpctrie and radix6; lines are
// then looked up in batches, which hides most of the time that memory takes.
// -save keeps the compiled IPv4 table in a file, from which -snapshot loads it
// without parsing, sorting or compiling anything:
//
//	$ asnlookup -table routes.txt -save routes.lpc < /dev/null
//	$ asnlookup -snapshot routes.lpc < access.log
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"signalbox.example/lpctrie"
	"signalbox.example/radix6"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// builtin is a table of the prefixes and numbers reserved for documentation.
const builtin = `192.0.2.0/24 64496
198.51.100.0/24 64497
198.51.100.128/25 64498
203.0.113.0/24 64499
2001:db8::/32 64500
2001:db8:1::/48 64501
3fff::/20 64502
`

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("asnlookup", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	table := fs.String("table", "", "`file` of lines \"prefix number\" (a comma, a tab or AS before the number will do; default: a small table of documentation prefixes)")
	save := fs.String("save", "", "write the compiled IPv4 table to a `file`, for -snapshot")
	snapshot := fs.String("snapshot", "", "take the IPv4 table from a `file` that -save wrote, in milliseconds, and only the IPv6 one from -table")
	fast := fs.Bool("fast", false, "take up to 64 MiB more memory for faster lookups")
	quiet := fs.Bool("quiet", false, "no progress on standard error, even if it is a terminal")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: asnlookup [-table file] [-save file | -snapshot file] [-fast] [-quiet] < lines\n\n"+
			"Appends to each line AS number and prefix of the address it begins with,\nor \"-\" if there is no route to it, \"?\" if it begins with no address.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "asnlookup:", err)
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "asnlookup: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	if *save != "" && *snapshot != "" {
		fmt.Fprintln(stderr, "asnlookup: -save and -snapshot exclude each other")
		return 2
	}
	db, err := load(*table, *snapshot, *fast)
	if err == nil && *save != "" {
		err = db.save(*save)
	}
	if err != nil {
		fmt.Fprintf(stderr, "asnlookup: %v\n", err)
		return 1
	}
	var progress io.Writer
	if f, ok := stderr.(*os.File); ok && !*quiet && term.IsTerminal(int(f.Fd())) {
		progress = stderr
	}
	if err := db.enrich(stdin, stdout, progress); err != nil {
		fmt.Fprintf(stderr, "asnlookup: %v\n", err)
		return 1
	}
	return 0
}

// A database holds a snapshot for each family.
type database struct {
	v4 *lpctrie.Snapshot[uint32]
	v6 *radix6.Snapshot[uint32]
}

// load compiles the table of a file, or the built-in one. If snapshot is not
// empty the IPv4 part comes from that file instead.
func load(path, snapshot string, fast bool) (*database, error) {
	var r io.Reader = strings.NewReader(builtin)
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	} else {
		path = "built-in table"
	}
	var p4, p6 []netip.Prefix
	var a4, a6 []uint32
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == '\r' })
		if len(f) == 0 {
			continue
		}
		if len(f) < 2 {
			return nil, fmt.Errorf("%s: line %d: a prefix and a number are wanted", path, line)
		}
		p, err := netip.ParsePrefix(f[0])
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, line, err)
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(f[1], "AS"), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: no AS number: %q", path, line, f[1])
		}
		if p = p.Masked(); p.Addr().Is4() && snapshot != "" {
			continue
		} else if p.Addr().Is4() {
			p4, a4 = append(p4, p), append(a4, uint32(n))
		} else {
			p6, a6 = append(p6, p), append(a6, uint32(n))
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	o4, o6 := lpctrie.CompileOptions{Prefixes: true}, radix6.CompileOptions{Prefixes: true}
	if fast {
		o4.Layout, o6.Layout = lpctrie.Fast, radix6.Fast
	}
	v4, err := compile4(p4, a4, o4, snapshot)
	if err != nil {
		return nil, err
	}
	v6, err := radix6.Compile(p6, a6, o6)
	if err != nil {
		return nil, err
	}
	return &database{v4, v6}, nil
}

// compile4 compiles the IPv4 table, or opens a snapshot of it.
func compile4(ps []netip.Prefix, asns []uint32, o lpctrie.CompileOptions, snapshot string) (*lpctrie.Snapshot[uint32], error) {
	if snapshot == "" {
		return lpctrie.Compile(ps, asns, o)
	}
	// A program of which many run at once would map the file instead of reading it.
	data, err := os.ReadFile(snapshot)
	if err != nil {
		return nil, err
	}
	s, err := lpctrie.Open[uint32](data, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", snapshot, err)
	}
	return s, nil
}

// save writes the IPv4 snapshot. It takes its name only when it is whole, so that nobody opens half of it.
func (db *database) save(path string) (err error) {
	// Renaming over a device or link (/dev/stdout) would replace it.
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".asnlookup-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := errors.Join(db.v4.Encode(f, nil), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// chunk is how many lines are read before they are looked up together.
const chunk = 4096

// A batch is a chunk's addresses of one family and their answers.
type batch struct {
	addrs []netip.Addr
	asns  []uint32
	oks   []bool
}

func (b *batch) add(a netip.Addr) {
	b.addrs, b.asns, b.oks = append(b.addrs, a), append(b.asns, 0), append(b.oks, false)
}

// firstWord returns what precedes the first blank behind leading ones.
func firstWord(line []byte) []byte {
	line = bytes.TrimLeft(line, " \t")
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		return line[:i]
	}
	return line
}

func (b *batch) reset() {
	b.addrs, b.asns, b.oks = b.addrs[:0], b.asns[:0], b.oks[:0]
}

// enrich copies lines from r to w. If progress is not nil it tells it every
// second how far it is.
func (db *database) enrich(r io.Reader, w io.Writer, progress io.Writer) error {
	in := bufio.NewReaderSize(r, 1<<16)
	out := bufio.NewWriterSize(w, 1<<16)
	var b4, b6 batch
	var text []byte    // the chunk's lines, one after the other
	var ends []int     // where each ends in text
	var kinds []string // what each gets unless it is found
	var found []int    // its place in b4, or in b6 counted from -1 down
	total, start := 0, time.Now()
	last := start
	report := func(end string) {
		if progress != nil {
			fmt.Fprintf(progress, "\rasnlookup: %d lines, %.0f a second%s", total, float64(total)/max(time.Since(start).Seconds(), 1e-3), end)
		}
	}
	for done := false; !done; {
		text, ends, kinds, found = text[:0], ends[:0], kinds[:0], found[:0]
		b4.reset()
		b6.reset()
		for len(ends) < chunk {
			from := len(text)
			part, err := in.ReadSlice('\n')
			text = append(text, part...)
			for errors.Is(err, bufio.ErrBufferFull) {
				part, err = in.ReadSlice('\n')
				text = append(text, part...)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return errors.Join(err, out.Flush())
			}
			done = err != nil
			if done && len(text) == from {
				break
			}
			line := bytes.TrimRight(text[from:], "\r\n")
			text = text[:from+len(line)]
			kind, place := "\t-\t-\n", 0
			switch a, err := netip.ParseAddr(string(firstWord(line))); {
			case err != nil:
				kind = "\t?\t?\n"
			case a.Unmap().Is4():
				b4.add(a.Unmap())
				place = len(b4.addrs)
			default:
				b6.add(a.WithZone(""))
				place = -len(b6.addrs)
			}
			ends, kinds, found = append(ends, len(text)), append(kinds, kind), append(found, place)
			if done || in.Buffered() == 0 { // somebody may be waiting for the answers
				break
			}
		}

		db.v4.LookupBatch(b4.addrs, b4.asns, b4.oks)
		db.v6.LookupBatch(b6.addrs, b6.asns, b6.oks)
		from := 0
		for i, end := range ends {
			out.Write(text[from:end])
			from = end
			var asn uint32
			var p netip.Prefix
			if n := found[i]; n > 0 && b4.oks[n-1] {
				asn = b4.asns[n-1]
				_, p, _ = db.v4.LookupPrefix(b4.addrs[n-1]) // warm now
			} else if n < 0 && b6.oks[-n-1] {
				asn = b6.asns[-n-1]
				_, p, _ = db.v6.LookupPrefix(b6.addrs[-n-1])
			} else {
				if _, err := out.WriteString(kinds[i]); err != nil {
					return err
				}
				continue
			}
			room := append(out.AvailableBuffer(), "\tAS"...)
			room = append(strconv.AppendUint(room, uint64(asn), 10), '\t')
			if _, err := out.Write(append(p.AppendTo(room), '\n')); err != nil {
				return err
			}
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if total += len(ends); time.Since(last) > time.Second {
			last = time.Now()
			report("")
		}
	}
	if total > 0 {
		report("\n")
	}
	return out.Flush()
}
