package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Section is one comparison.
type Section struct {
	Name, Title string
	// Needs says what the whole of it takes besides Go, for a reader.
	Needs string
	// Run measures and writes the report. An error leaves what README.md
	// already says of the section in place.
	Run func(r *Report) error
}

// Sections are all comparisons in the order of the README.
func Sections() []Section {
	return []Section{
		sensitivity, modesSpeed, nat64Packets, translators, lpctrieRoutes, radix6Routes, xfrmMessages, publishing, card,
	}
}

// Options say where and how thoroughly the sections run.
type Options struct {
	// Bench is the folder of the bench module, Root that of the libraries.
	Bench, Root string
	// Out gets README.md and plots.
	Out string
	// Raw gets the output of every command, for benchstat; "" for nowhere.
	Raw string
	// Quick makes short runs whose figures say little.
	Quick bool
	// Progress is called with what is being done now; nil for nobody.
	Progress func(what string)
}

// An Outcome is what became of a section.
type Outcome struct {
	Name string
	Took time.Duration
	Err  error // nil, [ErrNotRun] or a failure
}

// ErrNotRun is a section of which nothing could run here.
var ErrNotRun = errors.New("not run")

// Run runs sections one after the other and writes each into the README as
// soon as it is done.
func Run(ctx context.Context, o Options, sections []Section) ([]Outcome, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if err := os.MkdirAll(filepath.Join(o.Out, "plots"), 0o755); err != nil {
		return nil, err
	}
	if o.Raw != "" {
		if err := os.MkdirAll(o.Raw, 0o755); err != nil {
			return nil, err
		}
	}
	var all []Outcome
	for i, s := range sections {
		start := time.Now()
		r := &Report{Options: o, ctx: ctx, section: s.Name, place: fmt.Sprintf("%d/%d %s", i+1, len(sections), s.Name)}
		r.begun, r.load = start, loadAverage()
		err := r.inTemp(s.Run)
		took := time.Since(start)
		if err == nil && r.measured {
			err = updateReadme(filepath.Join(o.Out, "README.md"), s.Name, r.block(s, took))
		} else if err == nil {
			err = fmt.Errorf("%w: %s", ErrNotRun, r.reasons())
			if werr := noteReadme(filepath.Join(o.Out, "README.md"), s.Name, r.block(s, took)); werr != nil {
				err = werr
			}
		}
		all = append(all, Outcome{s.Name, took, err})
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
	return all, nil
}

// A Report collects what a section found.
type Report struct {
	Options
	ctx      context.Context
	section  string
	place    string
	begun    time.Time
	load     string
	measured bool
	text     strings.Builder
	commands []string
	checks   []string
	versions []string
	missing  [][2]string
	temp     string
	raw      int
}

// inTemp gives a section a temporary folder while it runs. Where there is a
// memory file system it lies in that, so that no disk is measured.
func (r *Report) inTemp(run func(*Report) error) (err error) {
	parent := ""
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		parent = "/dev/shm"
	}
	if r.temp, err = os.MkdirTemp(parent, "compare"); err != nil {
		return err
	}
	defer os.RemoveAll(r.temp)
	return run(r)
}

// Printf adds a paragraph or lines of Markdown.
func (r *Report) Printf(format string, args ...any) { fmt.Fprintf(&r.text, format, args...) }

// Table adds a table of figures; a section that has none counts as not run.
// Columns of figures are aligned to the right.
func (r *Report) Table(header []string, rows [][]string) {
	r.measured = true
	r.Printf("\n| %s |\n|", strings.Join(header, " | "))
	for i := range header {
		text := i == 0 || slices.ContainsFunc(rows, func(row []string) bool {
			return i < len(row) && row[i] != "" && !strings.ContainsAny(row[i][:1], "-0123456789")
		})
		if text {
			r.Printf("---|")
		} else {
			r.Printf("--:|")
		}
	}
	r.Printf("\n")
	for _, row := range rows {
		r.Printf("| %s |\n", strings.Join(row, " | "))
	}
	r.Printf("\n")
}

// Plot writes an SVG and shows it in the README.
func (r *Report) Plot(name, alt string, draw func(w io.Writer) error) error {
	file := r.section + "-" + name + ".svg"
	if err := writeFile(filepath.Join(r.Out, "plots", file), draw); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r.Printf("\n![%s](plots/%s)\n", alt, file)
	return nil
}

// NotRun lists a peer that could not run here.
func (r *Report) NotRun(peer, reason string) { r.missing = append(r.missing, [2]string{peer, reason}) }

func (r *Report) reasons() string {
	var s []string
	for _, m := range r.missing {
		s = append(s, m[0]+": "+m[1])
	}
	return strings.Join(s, "; ")
}

// block is the section's part of the README.
func (r *Report) block(s Section, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", s.Title)
	if r.Quick {
		b.WriteString("**A quick run: the figures only show that everything works.**\n\n")
	}
	b.WriteString(strings.Trim(r.text.String(), "\n") + "\n")
	if len(r.missing) > 0 {
		b.WriteString("\nNot run:\n\n")
		for _, m := range r.missing {
			fmt.Fprintf(&b, "- %s: %s\n", m[0], m[1])
		}
	}
	fmt.Fprintf(&b, "\n<details><summary>%s, %s, %s</summary>\n\n", r.begun.Format(time.DateOnly), machine(), took.Round(time.Second))
	fmt.Fprintf(&b, "Load average when it began: %s.", r.load)
	if len(r.versions) > 0 {
		fmt.Fprintf(&b, " Versions: %s.", strings.Join(r.versions, ", "))
	}
	b.WriteString("\n")
	for _, c := range r.checks {
		fmt.Fprintf(&b, "\nChecked first: %s\n", c)
	}
	if len(r.commands) > 0 {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.Join(slices.Compact(r.commands), "\n"))
	}
	b.WriteString("\n</details>\n")
	return b.String()
}
