package compare

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const benchOutput = `goos: linux
BenchmarkTranslate/impl=signalbox/eam=0/size=66-2         	  100	        40.50 ns/op	       0 B/op	       0 allocs/op
BenchmarkTranslate/impl=signalbox/eam=0/size=66-2         	  100	        44.50 ns/op	       0 B/op	       0 allocs/op
BenchmarkFilter/go-crypto-v2-2   	       3	  23500000 ns/op	 24.07 MB/s	  23000000 cpu-ns/op
BenchmarkAlone 	       1	 5 ns/op
BenchmarkNotes goes on about 3 things
PASS
`

func TestParseBench(t *testing.T) {
	all := ParseBench(benchOutput)
	if len(all) != 3 {
		t.Fatalf("%d benchmarks", len(all))
	}
	b := Pick(all, "Translate", "impl=signalbox", "size=66")
	if b == nil || Pick(all, "Translate", "size=67") != nil || Pick(all, "Filter", "impl=go-crypto-v2") == nil || Pick(all, "Alone") == nil {
		t.Fatalf("%+v", all)
	}
	m, ok := b.Median("ns/op")
	if l, lok := b.Least("ns/op"); !ok || !lok || m != 42.5 || l != 40.5 {
		t.Errorf("median %v, least %v", m, l)
	}
	if v, ok := b.Most("allocs/op"); !ok || v != 0 {
		t.Errorf("allocations %v, %v", v, ok)
	}
	if _, ok := b.Median("cpu-ns/op"); ok {
		t.Error("a unit that is not there")
	}
}

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{1234567: "1,234,567", 1000: "1,000", 999.6: "1000", 123.4: "123", 12.34: "12.3", 1.234: "1.23", 0.1234: "0.12"} {
		if got := short(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestMergeKeepsTheRest(t *testing.T) {
	text := "By hand.\n"
	for _, name := range []string{"nat64", "xfrm/parts"} {
		begin, end := markers(name)
		text += begin + end
	}
	var err error
	for _, step := range []struct{ name, block string }{{"xfrm/parts", "one\n"}, {"nat64", "two\n"}, {"xfrm", "nowhere"}, {"xfrm/parts", "three"}} {
		if text, err = merge(text, step.name, step.block, nil); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(text, "one") || strings.Contains(text, "nowhere") || !strings.HasPrefix(text, "By hand.\n<!-- ") {
		t.Error(text)
	}
	if two, three := strings.Index(text, "two\n"), strings.Index(text, "three\n"); two < 0 || three < two {
		t.Errorf("order: nat64 at %d, xfrm at %d", two, three)
	}
	if got, err := merge(text, "nat64", "four", empty); err != nil || got != text {
		t.Errorf("not empty, %v:\n%s", err, got)
	}
	begin, _ := markers("xfrm")
	if _, err := merge("text\n"+begin+"no end", "xfrm", "x", nil); err == nil {
		t.Error("a section without an end")
	}
}

// Every section and piece has its place in a README of the repository, the
// sections in bench/README.md in their order, and there is no other place.
func TestPlaces(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	pages, err := copyPages(root, root)
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]string{}
	for _, page := range pages {
		b, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			name, ok := strings.CutPrefix(line, "<!-- compare: ")
			if name = strings.TrimSuffix(name, " -->\n"); ok && !strings.HasPrefix(name, "end of ") {
				if where[name] != "" {
					t.Errorf("%s: in %s and %s", name, where[name], page)
				}
				where[name] = page
			}
		}
		for name := range where {
			if _, err := merge(string(b), name, "", nil); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	main, _ := os.ReadFile(filepath.Join(root, "bench", "README.md"))
	at := 0
	for _, s := range Sections() {
		begin, _ := markers(s.Name)
		i := strings.Index(string(main), begin)
		if i < at {
			t.Errorf("%s: no place in bench/README.md, or one before the section before it", s.Name)
		}
		at = i
		delete(where, s.Name)
		for _, p := range s.Pieces {
			if where[s.Name+"/"+p] == "" {
				t.Errorf("no place for %s/%s", s.Name, p)
			}
			delete(where, s.Name+"/"+p)
		}
	}
	for name, page := range where {
		t.Errorf("%s: a place for %s, which nobody makes", page, name)
	}
}

// Figures that were measured stand between markers. What is written by hand
// are goals, figures that others published or recorded, and settings.
func TestFiguresByHand(t *testing.T) {
	settings := []string{"1,900 messages a second", "2,800 a second", "50 ns is the budget", "had 60 ms to free"}
	figure := regexp.MustCompile(`\d[\d.,]*( to \d[\d.,]*)? ?(ns|µs|us|ms|seconds?|minutes?|[MG]B/s|kpps|Mbps|times|x|%|bytes per route|a second)([^\w]|$)`)
	generated := regexp.MustCompile(`(?s)<!-- compare: ([\w/]+) -->.*?<!-- compare: end of [\w/]+ -->`)
	code := regexp.MustCompile("(?m)^    .*$|(?s:```.*?```)|`[^`]*`")
	goal := regexp.MustCompile(`(?i)\b(goals?|published|recorded)\b`)
	root := filepath.Join("..", "..", "..")
	files, err := filepath.Glob(filepath.Join(root, "bench", "*", "README.md"))
	if err != nil || len(files) < 9 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, filepath.Join(root, "README.md"), filepath.Join(root, "bench", "README.md")) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := code.ReplaceAllString(generated.ReplaceAllString(string(b), ""), "")
		for _, s := range settings {
			text = strings.ReplaceAll(strings.ReplaceAll(text, "\n  ", " "), s, "")
		}
		for p := range strings.SplitSeq(text, "\n\n") {
			if m := figure.FindString(p); m != "" && !goal.MatchString(p) {
				t.Errorf("%s: %q is neither between markers nor called a goal, published or recorded:\n%s", file, m, p)
			}
		}
	}
}

// A section that fails leaves what the pages say; one that cannot run fills an
// empty place only.
func TestRun(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	page := func(folder string, names ...string) {
		text := "By hand.\n"
		for _, n := range names {
			begin, end := markers(n)
			text += begin + end
		}
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, folder, "README.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page("bench", "nat64", "xfrm")
	page("bench/nat64", "nat64/parts")
	page("testdata")
	measured := Section{Name: "nat64", Title: "T", Pieces: []string{"parts"}, Run: func(r *Report) error {
		r.Table([]string{"a", "b"}, [][]string{{"x", "1"}})
		r.NotRun("peer", "not here")
		r.Piece("parts", table([]string{"c"}, [][]string{{"2"}}))
		return r.Plot("p", "picture", drawBars("t", "u", false, []Bar{{"", "<x>", 1, "1"}}, nil))
	}}
	failing := Section{Name: "nat64", Title: "T", Run: func(r *Report) error {
		r.Table([]string{"a"}, [][]string{{"wrong"}})
		r.Piece("parts", "wrong")
		return errors.New("broken")
	}}
	lacking := Section{Name: "xfrm", Title: "T", Pieces: []string{"parts"}, Run: func(r *Report) error {
		r.Table([]string{"a"}, [][]string{{"3"}})
		return nil
	}}
	missing := Section{Name: "nat64", Title: "T", Run: func(r *Report) error { r.NotRun("all", "no root"); return nil }}
	other := Section{Name: "xfrm", Title: "T", Run: missing.Run}
	var done []string
	o := Options{Root: root, Out: dir, Done: func(c Outcome) { done = append(done, c.Name) }}
	out, err := Run(context.Background(), o, []Section{measured, failing, missing, other, lacking})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, errors.New("broken"), ErrNotRun, ErrNotRun, errors.New("nothing for xfrm/parts")} {
		if got := out[i].Err; (got == nil) != (want == nil) || errors.Is(got, ErrNotRun) != errors.Is(want, ErrNotRun) {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	if strings.Join(done, " ") != "nat64 nat64 nat64 xfrm xfrm" {
		t.Error(done)
	}
	b, err := os.ReadFile(filepath.Join(dir, "bench", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"By hand.\n", "| x | 1 |", "- peer: not here", "(plots/nat64-p.svg)", "| 3 |"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
	if strings.Contains(string(b), "wrong") || strings.Contains(string(b), "- all: no root") {
		t.Errorf("%s", b)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "bench", "nat64", "README.md")); err != nil || !strings.Contains(string(b), "| 2 |") || strings.Contains(string(b), "wrong") {
		t.Errorf("%v\n%s", err, b)
	}
	if _, err := os.Stat(filepath.Join(dir, "bench", "plots", "nat64-p.svg")); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadFile(filepath.Join(root, "bench", "README.md")); strings.Contains(string(left), "| x |") {
		t.Error("the repository was written")
	}
}

// An interrupted run keeps what was done, and ends the programs that it started.
func TestInterrupted(t *testing.T) {
	root := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	begin, end := markers("xfrm")
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(begin+end), 0o644); err != nil {
		t.Fatal(err)
	}
	first := Section{Name: "xfrm", Run: func(r *Report) error { r.Table([]string{"a"}, [][]string{{"1"}}); return nil }}
	second := Section{Name: "nat64", Run: func(r *Report) error {
		cancel()
		_, err := r.Command(inRoot, "sh", "-c", "sh -c 'sleep 100'; true")
		return err
	}}
	start := time.Now()
	out, err := Run(ctx, Options{Root: root, Bench: root, Out: root}, []Section{first, second, first})
	if !errors.Is(err, context.Canceled) || len(out) != 2 || out[0].Err != nil || out[1].Err == nil || time.Since(start) > 9*time.Second {
		t.Errorf("%v, %v after %v", out, err, time.Since(start))
	}
	if b, _ := os.ReadFile(filepath.Join(root, "README.md")); !strings.Contains(string(b), "| 1 |") {
		t.Errorf("%s", b)
	}
}

func TestOwnTable(t *testing.T) {
	got := ownTable("goos: linux\npkg: signalbox.example/modes\nBenchmarkDecode/frame=DF17-2 \t 10 \t 29.5 ns/op\t 0 B/op\t 0 allocs/op\n" +
		"BenchmarkDecode/frame=DF17-2 \t 10 \t 28.5 ns/op\t 0 B/op\t 0 allocs/op\nPASS\npkg: signalbox.example/modes/avr\nBenchmarkDecoder \t 1 \t 4200000 ns/op\t 239.4 MB/s\t 8 B/op\t 1 allocs/op\n")
	for _, want := range []string{"| modes | Decode/frame=DF17 | 28.5 ns |  | 0 |\n", "| modes/avr | Decoder | 4.20 ms | 239 MB/s | 1 |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if ownTable("PASS\n") != "" {
		t.Error("a table of nothing")
	}
}

// Nothing counts as checked if no test ran, or if one failed.
func TestCheck(t *testing.T) {
	for script, ok := range map[string]bool{
		`printf '=== RUN\n--- PASS: TestX (0.00s)\nPASS\n'`: true, `printf 'testing: warning: no tests to run\nPASS\n'`: false, `printf '\n--- PASS: TestX\n'; exit 1`: false,
	} {
		r := &Report{ctx: t.Context()}
		r.Progress = func(string) {}
		if _, err := r.Check("it works", inBench, "sh", "-c", script); (err == nil) != ok {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestCommand(t *testing.T) {
	r := &Report{ctx: t.Context(), temp: t.TempDir(), section: "x"}
	r.Progress, r.Raw, r.Root = func(string) {}, t.TempDir(), t.TempDir()
	out, err := r.Command(inRoot, "WORD=w x", "sh", "-c", `echo "$WORD $PWD" >%T/f; cat %T/f`)
	if err != nil || out != "w x "+r.Root+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	if b, err := os.ReadFile(filepath.Join(r.Raw, "x-1.txt")); err != nil || string(b) != out {
		t.Errorf("raw: %q, %v", b, err)
	}
	if got := r.commands[0]; !strings.HasPrefix(got, "(cd .. && 'WORD=w x' sh") || strings.Contains(got, "%T") {
		t.Errorf("%s", got)
	}
}

func TestParseYield(t *testing.T) {
	ys, err := parseYield(`plain: squitters
2.4 Msps uc8, up to 100 kHz off, 1 x 100 messages, seed 5
dB            fast      default     dump1090
6             14.0    19.0 (2!)          0.0
8.5           88.0         94.0          0.0
half        7.1 dB       6.7 dB            -

short: replies
2.4 Msps
dB            fast
6             14.0
half             -

`)
	if err != nil || len(ys) != 2 {
		t.Fatalf("%+v, %v", ys, err)
	}
	y := ys[0]
	if len(y.DB) != 2 || y.DB[1] != 8.5 || y.Rows[0][1] != "19.0(2!)" || strings.Join(y.Half, " ") != "7.1 6.7 -" {
		t.Errorf("%+v", y)
	}
	if l := y.lines(); len(l) != 3 || l[1].XY[0].Y != 19 || l[2].Name != "dump1090-mutability --fix" {
		t.Errorf("%+v", l)
	}
	if _, err := parseYield("nothing"); err == nil {
		t.Error("no table, no error")
	}
}

func TestParseBed(t *testing.T) {
	cells, err := parseBed(`round,work,data,translator,mbps,kpps,sent_kpps,seconds,bytes,packets,translator_cpu_ms,machine_cpu_ms,retransmits
1,tcp1,6to4,plain,8000.000,0.000,0.000,1.000,1000000000.000,0.000,0,500,3
2,tcp1,6to4,plain,9000.000,0.000,0.000,1.000,2000000000.000,0.000,0,800,3
1,udp18,6to4,nat64d,60.000,400.000,500.000,1.000,7200000.000,400000.000,400,2000,0
`)
	if err != nil || len(cells) != 2 {
		t.Fatalf("%+v, %v", cells, err)
	}
	if c := cells[0]; c.udp || len(c.speed) != 2 || c.speed[1] != 9000 || c.all[1] != 400 {
		t.Errorf("%+v", c)
	}
	if c := cells[1]; !c.udp || c.speed[0] != 400 || c.own[0] != 1000 { // ns a packet
		t.Errorf("%+v", c)
	}
	if _, err := parseBed("round,work\n1,tcp1\n"); err == nil {
		t.Error("columns are missing")
	}
}

func TestParseLogs(t *testing.T) {
	ts := parseTimings("    x_test.go:343: 10,000 policies, 9 rounds            best\n" +
		"    x_test.go:348: load: signalbox batch             30.1 ms    73.2 ms    26.7 ms    30.8 ms\n" +
		"    x_test.go:348: dump to text: ip                  48.2ms 1.5s\n")
	if len(ts) != 2 || ts[0].name != "load: signalbox batch" || len(ts[0].ms) != 4 || ts[0].ms[2] != 26.7 || ts[1].ms[1] != 1500 {
		t.Errorf("%+v", ts)
	}
	cs := parseCosts("    p_test.go:151: WKD tree, sq wkd generate:     wall  9356.0 ms, cpu  5222.0 ms, 137 MiB\n" +
		"    p_test.go:9: DANE text of 2000, ours: wall    22.5 ms, cpu     9.2 ms, the same text: gpg takes 6.7 times the CPU\n")
	if len(cs) != 2 || cs[0] != (programCost{"WKD tree, sq wkd generate", 9356, 5222, "137 MiB"}) || cs[1].name != "DANE text of 2000, ours" || cs[1].memory != "" {
		t.Errorf("%+v", cs)
	}
	es := parseExchanges("    nat64_test.go:289: 1480 B 6->4=false  eam=0 33.1 ns (18.8x)  gopacket 622.3 ns (1.0x)\n    x_test.go:1: 66 B\n")
	if len(es) != 1 || es[0].size != 1480 || es[0].way != "4 to 6" || es[0].ns["gopacket"] != 622.3 || es[0].ns["eam=0"] != 33.1 {
		t.Errorf("%+v", es)
	}
	ns := parseCounts("            i_test.go:437: 25519: gpg sign cold: 26 APDUs\n   i_test.go:909: cold status: 6 APDUs\n")
	if len(ns) != 2 || ns[0] != (count{"25519: gpg sign cold", 26}) || ns[1].n != 6 {
		t.Errorf("%+v", ns)
	}
}

func TestParseRoutes(t *testing.T) {
	tables, header, forms, sizes := parseTables(`
160,147 routes           insert ns  B/route              hot      hot chained             cold     cold chained
radix6.Tree, packed            812     82.1    120.1 ( 3.20)    110.0 ( 2.10)    300.5 ( 2.00)    280.0 ( 1.40)
infobloxopen/go-trees          828     95.0    516.0 (13.90)    500.0 ( 9.10)   1219.0 ( 8.00)   1100.0 ( 4.40)

full table, distinct values (160147 routes)
ns a lookup                   hot   ratio     cold   ratio
compact Addr chained         30.5    0.50     70.5   0.156

full table, 16 next hops (160147 routes)
compact: 12.5 B/route, 1000 entries, codes of 2 bytes
ns a lookup                   hot   ratio     cold   ratio
bart.Fast                    37.2    1.00    128.0   1.000
compact batch of keys         9.0    0.24     20.0   0.156
`)
	if len(tables) != 2 || tables[0][0] != "radix6.Tree, packed" || tables[1][3] != "516.0 (13.90)" || len(tables[0]) != 7 {
		t.Errorf("%q", tables)
	}
	if hot, none := formFigure(header, forms, "compact Addr chained", "hot"), formFigure(header, forms, "compact Addr chained", "evicted"); hot != "30.5" || none != "" {
		t.Errorf("%q, %q", hot, none)
	}
	if len(forms) != 3 || forms[2][0] != "full table, 16 next hops, compact batch of keys" || forms[2][4] != "0.156" || len(header) != 5 || header[4] != "to bart.Fast" ||
		len(sizes) != 1 || sizes[0] != "full table, 16 next hops, compact: 12.5" {
		t.Errorf("%q\n%q\n%q", header, forms, sizes)
	}
	if m := markdownTables("x\n| a |\n|---|\n| 1 |\n\n| b |\n"); len(m) != 2 || m[1] != "| b |\n" {
		t.Errorf("%q", m)
	}
	all, err := parseScenarios("scenario,density,routes,structure,depth mean,depth max,lookup ns,lookup chained ns,single median,single p95,insert ns per route,bytes per route\n" +
		"a: full view,0,100,\"t, packed\",1.5,3,8.3,10.7,11,20,500,60\na: full view,0,1000,\"t, packed\",1.5,3,8.3,12.7,11,20,500,60\nb: /48,0.1,100,x,1.5,3,8.3,0,11,20,500,60\n")
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	l := curves(all, "a", 0, 100, func(s scenario) float64 { return s.chained })
	if len(l) != 1 || len(l[0].XY) != 2 || l[0].XY[1].Y != 12.7 {
		t.Errorf("%+v", l)
	}
	if l := curves(all, "b", .1, 0, func(s scenario) float64 { return s.chained }); len(l) != 0 {
		t.Errorf("lookups that did not happen are drawn: %+v", l)
	}
	if _, err := parseScenarios("a,b\n1,2\n"); err == nil {
		t.Error("columns are missing")
	}
}

func TestBudget(t *testing.T) {
	r := &Report{pieces: map[string]string{}}
	err := r.lpctrieBudget("| | measured | goal | held |\n|---|---|---|---|\n| lookups within 50 ns, hot | 97.9 % |  |  |\n| lookups within 50 ns, cold | 54.3 % |  |  |\n| fast: lookups within 50 ns, cold | 29.2 % |  |  |\n")
	if got := r.pieces["budget"]; err != nil || !strings.Contains(got, " 97.9 % take no longer with warm caches and 54.3 % with cold ones.") {
		t.Errorf("%v, %q", err, got)
	}
	if r.lpctrieBudget("| a |\n") == nil {
		t.Error("no shares, no error")
	}
}

// Every picture is well-formed XML, whatever the names.
func TestPlots(t *testing.T) {
	for name, f := range map[string]func(io.Writer) error{
		"lines": drawLines(Axes{Title: "<t> & u", X: "x", Y: "y", LogX: true, LogY: true}, []Line{{Name: "a<b>", XY: recorded("", 1, 20, 1e6, 50).XY}, recorded("c", 1, 5, 10, 5)}),
		"bars":  drawBars("<t>", "%", true, []Bar{{"g&h", "<a>", 1, "1 <"}, {"g&h", "b", 1000, "k"}}, []Band{{"<band>", 20, 30}}),
	} {
		var b strings.Builder
		if err := f(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, b.String())
			}
		}
	}
	if err := drawBars("", "", false, nil, nil)(io.Discard); err == nil {
		t.Error("a picture of nothing")
	}
}

func TestSections(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Sections() {
		if s.Name == "" || s.Title == "" || s.Run == nil || s.Takes == 0 || seen[s.Name] || strings.ContainsAny(s.Name, " ,/") {
			t.Errorf("%+v", s.Name)
		}
		seen[s.Name] = true
	}
}

func TestCountCommands(t *testing.T) {
	n, err := countCommands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{8, 6, 2, 6} {
		if n[i] < 1 || n[i] > want {
			t.Errorf("%d commands, want %d at most: %v", n[i], want, n)
		}
	}
	t.Log(n)
}
