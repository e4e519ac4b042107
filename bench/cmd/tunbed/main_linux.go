// Command tunbed measures nat64d beside Debian's Tayga and plain forwarding in
// three network namespaces and prints the table. It needs root, iproute2,
// iperf3, ethtool, procps and tayga; what is missing it says, and ends.
//
//	go run ./cmd/tunbed -rounds 5 -csv tunbed.csv -svg tunbed.svg
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"signalbox.example/bench/tunbed"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if ran, err := tunbed.Role(args, stdout); ran {
		if err != nil {
			fmt.Fprintln(stderr, "tunbed:", err)
			return 1
		}
		return 0
	}
	fs := flag.NewFlagSet("tunbed", flag.ContinueOnError)
	fs.SetOutput(stderr)
	rounds := fs.Int("rounds", 5, "interleaved rounds")
	seconds := fs.Float64("seconds", 2, "length of each run in `seconds`")
	works := fs.String("works", "", "comma-separated kinds of traffic; default all of "+workNames())
	names := fs.String("translators", "plain,tayga,nat64d", "comma-separated: plain, tayga, nat64d (fast path off), fastpath, nat64d-nouso, nat64d-novnet")
	csvFile := fs.String("csv", "", "write every run to this `file`")
	svgFile := fs.String("svg", "", "draw the shares of plain forwarding into this `file`")
	if err := fs.Parse(args); err == flag.ErrHelp {
		return 0
	} else if err != nil {
		return 2
	}
	if fs.NArg() > 0 || *rounds < 1 || *seconds < 0.5 {
		fmt.Fprintln(stderr, "tunbed: unexpected arguments; see -h")
		return 2
	}
	if m := tunbed.Missing(); m != nil {
		fmt.Fprintln(stderr, "tunbed: this machine lacks", strings.Join(m, ", "))
		return 1
	}
	if err := measure(*rounds, *seconds, *works, *names, *csvFile, *svgFile, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "tunbed:", err)
		return 1
	}
	return 0
}

func workNames() string {
	var n []string
	for _, w := range tunbed.Works() {
		if !slices.Contains(n, w.Name) {
			n = append(n, w.Name)
		}
	}
	return strings.Join(n, ",")
}

func measure(rounds int, seconds float64, works, names, csvFile, svgFile string, stdout, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "tunbed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var translators []tunbed.Translator
	daemon := filepath.Join(dir, "nat64d")
	for _, n := range strings.Split(names, ",") {
		switch n {
		case "plain":
			translators = append(translators, tunbed.Translator{Name: n, Plain: true})
		case "tayga":
			translators = append(translators, tunbed.Tayga())
		case "nat64d":
			translators = append(translators, tunbed.Nat64d(n, daemon, "-fastpath", "off"))
		case "nat64d-nouso":
			translators = append(translators, tunbed.Nat64d(n, daemon, "-fastpath", "off", "-offload", "tso"))
		case "nat64d-novnet":
			translators = append(translators, tunbed.Nat64d(n, daemon, "-fastpath", "off", "-offload", "none"))
		case "fastpath":
			translators = append(translators, tunbed.Nat64d(n, daemon, "-fastpath", "require"))
		default:
			return fmt.Errorf("no translator %q", n)
		}
	}
	var list []tunbed.Work
	for _, w := range tunbed.Works() {
		if works == "" || slices.Contains(strings.Split(works, ","), w.Name) {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("no work named %q; there are %s", works, workNames())
	}
	// The daemon is built by its own module, whose dependencies are not ours.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "signalbox.example").Output()
	if err != nil {
		return fmt.Errorf("where is the module signalbox.example: %w", err)
	}
	build := exec.Command("go", "build", "-o", daemon, "./examples/nat64d")
	build.Dir = strings.TrimSpace(string(root))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building nat64d: %w\n%s", err, out)
	}
	bed, err := tunbed.New()
	if err != nil {
		return err
	}
	defer bed.Close()

	length := time.Duration(seconds * float64(time.Second))
	var results []tunbed.Result
	progress := func(format string, a ...any) {}
	if st, err := os.Stderr.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 && stderr == os.Stderr {
		progress = func(format string, a ...any) { fmt.Fprintf(stderr, "\r"+format+"\x1b[K", a...) }
	}
	for round := 1; round <= rounds; round++ {
		for _, w := range list {
			for _, t := range translators {
				progress("round %d of %d: %s %s through %s", round, rounds, w.Name, w.Direction(), t.Name)
				r, err := one(bed, w, t, length)
				if err != nil {
					return fmt.Errorf("%s %s through %s: %w", w.Name, w.Direction(), t.Name, err)
				}
				r.Round = round
				results = append(results, r)
			}
		}
	}
	progress("")
	cells := tunbed.Table(results)
	slices.SortStableFunc(cells, func(a, b *tunbed.Cell) int { return order(list, a) - order(list, b) })
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Fprintf(stdout, "%s, Linux %s, %d rounds of %.1f s; plain is the mean of IPv4 and IPv6.\n\n",
		time.Now().Format(time.DateOnly), strings.TrimSpace(string(release)), rounds, seconds)
	tunbed.WriteMarkdown(stdout, cells, "plain", "tayga")
	if csvFile != "" {
		if err := write(csvFile, func(w io.Writer) error { return tunbed.WriteCSV(w, results) }); err != nil {
			return err
		}
	}
	if svgFile != "" {
		return write(svgFile, func(w io.Writer) error { return drawShares(w, cells) })
	}
	return nil
}

// one starts a translator, does a work and stops it. Plain forwarding is the
// mean of both families: a packet that is translated goes one half of its way
// in each.
func one(bed *tunbed.Bed, w tunbed.Work, t tunbed.Translator, length time.Duration) (r tunbed.Result, err error) {
	if err := bed.Start(t); err != nil {
		return r, err
	}
	if !t.Plain {
		r, err = bed.Run(w, t, 0, length)
		return r, errors.Join(err, bed.Stop())
	}
	four, err := bed.Run(w, t, 4, length)
	if err != nil {
		return r, errors.Join(err, bed.Stop())
	}
	six, err := bed.Run(w, t, 6, length)
	if err != nil {
		return r, errors.Join(err, bed.Stop())
	}
	return tunbed.Mean(four, six), bed.Stop()
}

func order(list []tunbed.Work, c *tunbed.Cell) int {
	return slices.IndexFunc(list, func(w tunbed.Work) bool { return w.Name == c.Work && w.Direction() == c.Direction })
}

// write replaces a file as a whole.
func write(name string, f func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".tunbed*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := f(tmp); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}
