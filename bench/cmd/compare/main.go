// Command compare runs every comparison of the signalbox libraries with their
// peers that can run on this machine, each after a check that both sides give
// the right answers, and writes tables into the README files of the repository,
// between markers, and plots into bench/plots. Run it in the folder bench:
//
//	go run ./cmd/compare              # everything; as root
//	go run ./cmd/compare -list        # the sections, what they need, how long they take
//	go run ./cmd/compare -only nat64,xfrm
//	go run ./cmd/compare -quick -out elsewhere
//
// Each section is written as soon as it is done. One that fails leaves what
// the files say of it, and the others run all the same; the command then ends
// with status 1, and after a misuse with 2. Peers that cannot run here are
// listed and are no failure.
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
	only := fs.String("only", "", "run only these `sections`, with commas between them; the files keep the others")
	quick := fs.Bool("quick", false, "short runs that show that everything works; the figures say little")
	list := fs.Bool("list", false, "list the sections and what they need")
	out := fs.String("out", "", "write into copies of the README files in this `folder`; default the repository\nitself, with -quick a temporary folder, whose name is printed")
	raw := fs.String("raw", "", "write the output of every command into this `folder`, for benchstat")
	show := fs.Bool("progress", false, "print what is done now, command by command, where standard error is no terminal, too")
	sections := compare.Sections()
	usage := func(w io.Writer) {
		fmt.Fprint(w, "usage: compare [-only names] [-quick] [-out folder] [-raw folder]\n       compare -list\n\n"+
			"Runs the comparisons with peers, each after a check of right answers, and\nwrites tables and plots. Sections and how long they take on two quiet cores:\n\n")
		describe(w, sections, false)
		fmt.Fprintln(w)
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
	if *list {
		describe(stdout, sections, true)
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
		if o.Out = o.Root; o.Quick { // rough figures never replace good ones by accident
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
	} else if *show {
		o.Progress = func(what string) { fmt.Fprintf(stderr, "%s %s\n", time.Now().Format(time.TimeOnly), what) }
	}
	status, total := 0, time.Duration(0)
	o.Done = func(c compare.Outcome) {
		clear()
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
	_, err = compare.Run(ctx, o, sections)
	clear()
	fmt.Fprintf(stdout, "%-12s %6.1f s\n", "total", total.Seconds())
	if err != nil {
		fmt.Fprintf(stderr, "compare: %v\n", err)
		status = 1
	}
	return status
}

// describe lists sections, with what they need if that is asked for.
func describe(w io.Writer, sections []compare.Section, needs bool) {
	var total time.Duration
	for _, s := range sections {
		total += s.Takes
		fmt.Fprintf(w, "  %-12s %7s  %s", s.Name, compare.Length(s.Takes), s.Title)
		if needs && s.Needs != "" {
			fmt.Fprintf(w, "; needs %s", s.Needs)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  %-12s %7s\n", "all", compare.Length(total))
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

// progress shows one line and for how long it has been true, until it is
// cleared, for as long as the program runs.
func progress(w io.Writer) (show func(string), clear func()) {
	var mu sync.Mutex
	what, since := "", time.Now()
	print := func() {
		if r := []rune(what); len(r) > 100 {
			what = string(r[:99]) + "…"
		}
		fmt.Fprintf(w, "\r%s (%d s)\x1b[K", what, int(time.Since(since).Seconds()))
	}
	go func() {
		for range time.Tick(time.Second) {
			mu.Lock()
			if what != "" {
				print()
			}
			mu.Unlock()
		}
	}()
	show = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		what, since = s, time.Now()
		print()
	}
	clear = func() {
		mu.Lock()
		defer mu.Unlock()
		what = ""
		fmt.Fprint(w, "\r\x1b[K")
	}
	return show, clear
}
