// Command bulkload loads many IPsec states and policies at once, from `ip
// -batch` files or CSV, and reports every line that the kernel refused:
//
//	$ bulkload policies.batch
//	bulkload: line 17: xfrm: newpolicy: file exists
//	bulkload: 9999 of 10000 loaded in 31ms
//
// It reads ahead while the kernel works on what went before, and sends many
// messages with one system call.
package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("bulkload", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	asCSV := fs.Bool("csv", false, "the input is CSV with a header of the words of ip xfrm policy add, such as src,dst,dir,priority,tmpl.src,tmpl.dst,tmpl.proto,tmpl.mode")
	dry := fs.Bool("dry", false, "only read and check, without a kernel")
	unchecked := fs.Bool("unchecked", false, "also send what xfrm's Check refuses")
	most := fs.Int("errors", 20, "print at most this many refusals")
	generate := fs.Int("generate", 0, "print a batch file of this many policies, and do nothing else")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: bulkload [-csv] [-dry] [-unchecked] [-errors n] [file]\n       bulkload -generate n\n\n"+
			"Loads states and policies from a file (default standard input) of commands, one\n"+
			"a line with or without \"ip\", or of CSV. The status is 0 if all were loaded, 1 if\nthe kernel refused some, 2 after an error.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "bulkload:", err)
		return 2
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "bulkload: %v\n", err)
		return 2
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case *most < 0:
		return fail(fmt.Errorf("-errors %d: want 0 or more", *most))
	case given["generate"] && *generate < 1:
		return fail(fmt.Errorf("-generate %d: want 1 or more", *generate))
	case given["generate"] && fs.NArg() > 0:
		return fail(errors.New("-generate takes no file"))
	}
	if given["generate"] {
		w := bufio.NewWriter(stdout)
		for i := range *generate {
			fmt.Fprintf(w, "xfrm policy add src 10.0.0.0/8 dst %s dir out priority %d tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid %d mode tunnel\n",
				dest(i), i, i%1000)
		}
		if err := w.Flush(); err != nil {
			return fail(err)
		}
		return 0
	}
	if fs.NArg() > 1 {
		return fail(errors.New("one file at most"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	in := stdin
	if name := fs.Arg(0); name != "" && name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fail(err)
		}
		defer f.Close()
		in = f
	}
	in = interruptible(ctx, in)
	l := &loader{unchecked: *unchecked, stderr: stderr, most: *most}
	if !*dry {
		c, err := conn.Dial(&conn.Options{Unchecked: true}) // checked while reading
		if err != nil {
			return fail(err)
		}
		defer c.Close()
		l.c = c
	}
	begin := time.Now()
	source := commands
	if *asCSV {
		source = csvLines
	}
	if err := l.load(ctx, in, source); err != nil {
		return fail(err)
	}
	if l.failed > l.most {
		fmt.Fprintf(stderr, "bulkload: and %d more\n", l.failed-l.most)
	}
	fmt.Fprintf(stderr, "bulkload: %d of %d loaded in %v\n", l.total-l.failed, l.total, time.Since(begin).Round(time.Millisecond))
	if l.failed > 0 {
		return 1
	}
	return 0
}

// interruptible reads from r until ctx is done: a terminal or pipe may wait for ever.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok {
		if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() {
			return r
		}
	}
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	return bufio.NewReaderSize(out, 1<<16)
}

// dest spreads policies over 11.0.0.0/8.
func dest(i int) string { return fmt.Sprintf("11.%d.%d.%d/32", i>>16&255, i>>8&255, i&255) }

// perBatch is how many requests are read ahead and sent at once.
const perBatch = 512

// chunk is what the reader hands to the sender.
type chunk struct {
	messages []byte
	start    []int // where each message begins
	line     []int // and the line that it comes from
}

type loader struct {
	c         *conn.Conn
	unchecked bool
	stderr    io.Writer
	most      int

	total, failed int
}

// lineSource calls yield with the commands of an input, by line number.
type lineSource func(r io.Reader, yield func(n int, line string) error) error

func (l *loader) refuse(n int, err error) {
	if l.failed++; l.failed <= l.most {
		fmt.Fprintf(l.stderr, "bulkload: line %d: %v\n", n, err)
	}
}

// refusal is a line that could not be read or passed no check.
type refusal struct {
	n   int
	err error
}

// load reads in one goroutine and sends in this one.
func (l *loader) load(ctx context.Context, in io.Reader, source lineSource) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks := make(chan *chunk, 4)
	free := make(chan *chunk, 8)
	var refused []refusal // as many as are printed at most
	others := 0
	var readErr error
	total := 0
	go func() {
		defer close(chunks)
		o := &xfrm.ReadOptions{IfIndex: func(name string) (int, error) {
			i, err := net.InterfaceByName(name)
			if err != nil {
				return 0, err
			}
			return i.Index, nil
		}}
		cur := newChunk(free)
		hand := func() error {
			select {
			case chunks <- cur:
			case <-ctx.Done():
				return ctx.Err()
			}
			cur = newChunk(free)
			return nil
		}
		readErr = source(in, func(n int, line string) error {
			total++
			if err := cur.add(n, line, o, l.unchecked); err != nil {
				if len(refused) < l.most {
					refused = append(refused, refusal{n, err})
				} else {
					others++
				}
			} else if len(cur.start) == perBatch {
				return hand()
			}
			return nil
		})
		if readErr == nil && len(cur.start) > 0 {
			readErr = hand()
		}
	}()
	var sendErr error
	for ch := range chunks {
		if l.c != nil && sendErr == nil {
			if sendErr = l.send(ctx, ch); sendErr != nil {
				cancel()
			}
		}
		clear(ch.messages) // keys
		select {
		case free <- ch:
		default:
		}
	}
	l.total = total
	for _, r := range refused {
		l.refuse(r.n, r.err)
	}
	l.failed += others
	if sendErr != nil {
		return sendErr
	}
	return readErr
}

func newChunk(free chan *chunk) *chunk {
	select {
	case c := <-free:
		c.messages, c.start, c.line = c.messages[:0], c.start[:0], c.line[:0]
		return c
	default:
		return &chunk{messages: make([]byte, 0, perBatch*300)}
	}
}

// add appends the message of a command.
func (c *chunk) add(n int, line string, o *xfrm.ReadOptions, unchecked bool) error {
	cmd, err := xfrm.ParseCommand(line, o)
	if err != nil {
		return err
	}
	switch r := cmd.Request.(type) {
	case *xfrm.SA:
		defer r.ClearKeys()
		if !unchecked {
			err = r.Check()
		}
	case *xfrm.Policy:
		if !unchecked {
			err = r.Check()
		}
	default:
		err = errors.New("not an add or update command of state or policy")
	}
	if err != nil {
		return err
	}
	cmd.Flags = xfrm.FlagRequest // the batch asks for acknowledgements
	b := xfrm.Pad(c.messages)
	start := len(b)
	if b, err = cmd.Append(b, xfrm.Header{}); err != nil {
		return err
	}
	c.messages, c.start, c.line = b, append(c.start, start), append(c.line, n)
	return nil
}

func (l *loader) send(ctx context.Context, ch *chunk) error {
	b := l.c.Batch()
	for i, start := range ch.start {
		end := len(ch.messages)
		if i+1 < len(ch.start) {
			end = ch.start[i+1]
		}
		if err := b.Append(func(buf []byte, _ xfrm.Header) ([]byte, error) {
			return append(buf, ch.messages[start:end]...), nil
		}); err != nil {
			return err
		}
	}
	failures, err := b.Flush(ctx)
	for _, f := range failures {
		l.refuse(ch.line[f.Index], f.Err)
	}
	return err
}

func commands(r io.Reader, yield func(int, string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := yield(n, line); err != nil {
			return err
		}
	}
	return s.Err()
}

// csvLines turns rows into commands. A column "tmpl.X" belongs to the
// template; empty cells are left out.
func csvLines(r io.Reader, yield func(int, string) error) error {
	rows := csv.NewReader(bufio.NewReader(r))
	rows.ReuseRecord = true
	first, err := rows.Read()
	if err == io.EOF {
		return errors.New("the CSV has no header")
	}
	if err != nil {
		return err
	}
	header := slices.Clone(first)
	for _, h := range header {
		if strings.ContainsAny(h, " \t'\"\\#") {
			return fmt.Errorf("column %q is no word of a command", h)
		}
	}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var policy, tmpl strings.Builder
		for i, v := range row {
			if v == "" {
				continue
			}
			name, w := header[i], &policy
			if t, ok := strings.CutPrefix(name, "tmpl."); ok {
				name, w = t, &tmpl
			}
			fmt.Fprintf(w, " %s '%s'", name, strings.ReplaceAll(v, "'", ""))
		}
		line := "xfrm policy add" + policy.String()
		if tmpl.Len() > 0 {
			line += " tmpl" + tmpl.String()
		}
		n, _ := rows.FieldPos(0)
		if err := yield(n, line); err != nil {
			return err
		}
	}
}
