// Command compare runs every comparison of the signalbox libraries with their
// peers that can run on this machine, each after a check that both sides give
// the right answers, and writes the tables into README.md and the plots into
// the folder plots beside it. Run it in the folder bench:
//
//	go run ./cmd/compare              # everything; as root; some 20 minutes
//	go run ./cmd/compare -list
//	go run ./cmd/compare -only nat64,xfrm
//	go run ./cmd/compare -quick -out elsewhere
//
// It ends with status 1 if a check or a measurement failed, and with 0 if
// some peers could not run here: those are listed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"signalbox.example/bench/internal/compare"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	only := fs.String("only", "", "run only these `sections`, with commas between them; README.md keeps the others")
	quick := fs.Bool("quick", false, "short runs that show that everything works; the figures say little")
	list := fs.Bool("list", false, "list the sections and what they need")
	out := fs.String("out", "", "write README.md and plots into this `folder`; default the bench module's own,\nwith -quick a temporary one, whose name is printed")
	raw := fs.String("raw", "", "write the output of every command into this `folder`, for benchstat")
	usage := func(w io.Writer) {
		fmt.Fprint(w, "usage: compare [-only names] [-quick] [-out folder] [-raw folder]\n       compare -list\n\n"+
			"Runs the comparisons with peers, each after a check of right answers, and\nwrites tables and plots.\n\n")
		fs.SetOutput(w)
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		usage(stdout)
		return 0
	} else if err != nil {
		fmt.Fprintf(stderr, "compare: %v\n", err)
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "compare: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	sections := compare.Sections()
	if *list {
		for _, s := range sections {
			needs := s.Needs
			if needs == "" {
				needs = "nothing but Go"
			}
			fmt.Fprintf(stdout, "%-12s %s; needs %s\n", s.Name, s.Title, needs)
		}
		return 0
	}
	if *only != "" {
		var chosen []compare.Section
		for name := range strings.SplitSeq(*only, ",") {
			i := slices.IndexFunc(sections, func(s compare.Section) bool { return s.Name == name })
			if i < 0 {
				fmt.Fprintf(stderr, "compare: no section %q; see -list\n", name)
				return 2
			}
			if !slices.ContainsFunc(chosen, func(s compare.Section) bool { return s.Name == name }) {
				chosen = append(chosen, sections[i])
			}
		}
		sections = chosen
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := compare.Options{Out: *out, Raw: *raw, Quick: *quick}
	var err error
	if o.Bench, err = moduleFolder(ctx, "signalbox.example/bench"); err == nil {
		o.Root, err = moduleFolder(ctx, "signalbox.example")
	}
	if err != nil {
		fmt.Fprintf(stderr, "compare: %v\n", err)
		return 1
	}
	if o.Out == "" {
		if o.Out = o.Bench; o.Quick { // rough figures never replace good ones by accident
			if o.Out, err = os.MkdirTemp("", "compare"); err != nil {
				fmt.Fprintf(stderr, "compare: %v\n", err)
				return 1
			}
			fmt.Fprintf(stdout, "writing into %s\n", o.Out)
		}
	}
	clear := func() {}
	if f, ok := stderr.(*os.File); ok && terminal(f) {
		o.Progress, clear = progress(f)
	}
	outcomes, err := compare.Run(ctx, o, sections)
	clear()
	status := 0
	var total time.Duration
	for _, c := range outcomes {
		total += c.Took
		switch {
		case c.Err == nil:
			fmt.Fprintf(stdout, "%-12s %6.1f s  measured\n", c.Name, c.Took.Seconds())
		case errors.Is(c.Err, compare.ErrNotRun):
			fmt.Fprintf(stdout, "%-12s %6.1f s  %v\n", c.Name, c.Took.Seconds(), c.Err)
		default:
			fmt.Fprintf(stdout, "%-12s %6.1f s  FAILED\n", c.Name, c.Took.Seconds())
			fmt.Fprintf(stderr, "compare: %s: %v\n", c.Name, c.Err)
			status = 1
		}
	}
	fmt.Fprintf(stdout, "%-12s %6.1f s\n", "total", total.Seconds())
	if err != nil {
		fmt.Fprintf(stderr, "compare: %v\n", err)
		status = 1
	}
	return status
}

func moduleFolder(ctx context.Context, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", path)
	out, err := cmd.Output()
	if dir := strings.TrimSpace(string(out)); err == nil && dir != "" {
		return dir, nil
	}
	return "", fmt.Errorf("run this in the folder bench: the module %s is not in reach", path)
}

func terminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// progress shows one line and for how long it has been true.
func progress(w io.Writer) (show func(string), clear func()) {
	var mu sync.Mutex
	what, since := "", time.Now()
	print := func() {
		if r := []rune(what); len(r) > 100 {
			what = string(r[:99]) + "…"
		}
		fmt.Fprintf(w, "\r%s (%d s)\x1b[K", what, int(time.Since(since).Seconds()))
	}
	tick, done := time.NewTicker(time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				mu.Lock()
				if what != "" {
					print()
				}
				mu.Unlock()
			}
		}
	}()
	show = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		what, since = s, time.Now()
		print()
	}
	clear = func() {
		tick.Stop()
		close(done)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprint(w, "\r\x1b[K")
	}
	return show, clear
}
