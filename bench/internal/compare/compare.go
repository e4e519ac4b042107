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
	// Takes is how long it takes on two quiet cores.
	Takes time.Duration
	// Pieces are names of tables and sentences that stand on other pages than
	// the section, between markers with the name "section/piece".
	Pieces []string
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
	// Out is the folder whose README files and bench/plots are written:
	// Root itself, or one that gets copies of them.
	Out string
	// Raw gets the output of every command, for benchstat; "" for nowhere.
	Raw string
	// Quick makes short runs whose figures say little.
	Quick bool
	// Progress is called with what is being done now, Done when a section is
	// finished; nil for nobody.
	Progress func(what string)
	Done     func(Outcome)
}

// An Outcome is what became of a section.
type Outcome struct {
	Name string
	Took time.Duration
	Err  error // nil, [ErrNotRun] or a failure
}

// ErrNotRun is a section of which nothing could run here.
var ErrNotRun = errors.New("not run")

// Run runs sections one after the other and writes each into the README files
// as soon as it is done: an end before the last one loses nothing of those
// before it. A section that hangs is ended.
func Run(ctx context.Context, o Options, sections []Section) ([]Outcome, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Done == nil {
		o.Done = func(Outcome) {}
	}
	pages, err := copyPages(o.Root, o.Out)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.Out, "bench", "plots"), 0o755); err != nil {
		return nil, err
	}
	if o.Raw != "" {
		if err := os.MkdirAll(o.Raw, 0o755); err != nil {
			return nil, err
		}
	}
	var all []Outcome
	for i, s := range sections {
		place := fmt.Sprintf("%d/%d %s, some %s", i+1, len(sections), s.Name, Length(s.Takes))
		c := s.run(ctx, o, place, pages)
		all = append(all, c)
		o.Done(c)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
	return all, nil
}

// run runs one section and writes what it found.
func (s Section) run(ctx context.Context, o Options, place string, pages []string) Outcome {
	start := time.Now()
	limit := max(30*time.Minute, 5*s.Takes) // a busy machine is no failure
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := &Report{Options: o, ctx: limited, section: s.Name, place: place, begun: start, load: loadAverage(), pieces: map[string]string{}}
	err := r.inTemp(s.Run)
	took := time.Since(start)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("still running after %s: %w", limit, err)
	}
	if err == nil && !r.measured {
		err = fmt.Errorf("%w: %s", ErrNotRun, r.reasons())
		// What another machine measured is worth more than the note that this
		// one could not: only an empty place is filled.
		if werr := updatePages(o.Out, pages, map[string]string{s.Name: r.block(s, took)}, empty); werr != nil {
			err = werr
		}
		return Outcome{s.Name, took, err}
	}
	if err == nil {
		blocks := map[string]string{s.Name: r.block(s, took)}
		for _, name := range s.Pieces {
			if text, ok := r.pieces[name]; ok {
				blocks[s.Name+"/"+name] = text
			} else if !r.Quick {
				err = errors.Join(err, fmt.Errorf("nothing for %s/%s", s.Name, name))
			}
		}
		err = errors.Join(err, updatePages(o.Out, pages, blocks, nil))
	}
	return Outcome{s.Name, took, err}
}

// Length formats a duration in minutes or seconds.
func Length(d time.Duration) string {
	if d < 90*time.Second {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int((d + 30*time.Second).Minutes()))
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
	pieces   map[string]string
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
func (r *Report) Table(header []string, rows [][]string) {
	r.measured = true
	r.Printf("\n%s\n", table(header, rows))
}

// Piece sets the text of a piece. A piece that is a table says where it comes
// from; a sentence stands in a text that does.
func (r *Report) Piece(name, text string) {
	if strings.HasPrefix(text, "|") || strings.HasPrefix(text, "```") {
		text += fmt.Sprintf("\n*By `go run ./cmd/compare -only %s`, %s, %s; load average when it began %s.*\n", r.section, r.begun.Format(time.DateOnly), machine(), r.load)
	}
	r.pieces[name] = r.warning() + text
}

func (r *Report) warning() string {
	if r.Quick {
		return "**A quick run: the figures only show that everything works.**\n\n"
	}
	return ""
}

// table formats a table; columns of figures are aligned to the right.
func table(header []string, rows [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|", strings.Join(header, " | "))
	for i := range header {
		text := i == 0 || slices.ContainsFunc(rows, func(row []string) bool {
			return i < len(row) && row[i] != "" && !strings.ContainsAny(row[i][:1], "-0123456789")
		})
		if text {
			b.WriteString("---|")
		} else {
			b.WriteString("--:|")
		}
	}
	b.WriteString("\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// Plot writes an SVG and shows it in the README.
func (r *Report) Plot(name, alt string, draw func(w io.Writer) error) error {
	file := r.section + "-" + name + ".svg"
	if err := writeFile(filepath.Join(r.Out, "bench", "plots", file), draw); err != nil {
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
	b.WriteString(r.warning())
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
