package xfrm

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/commands.txt")

// TestCommandsOnEveryArchitecture builds commands, parses the messages and
// prints them; the text is the same on every byte order and alignment.
// testdata/commands.txt was made on linux/amd64, where the messages are held
// against iproute2's.
func TestCommandsOnEveryArchitecture(t *testing.T) {
	const name = "testdata/commands.txt"
	var out bytes.Buffer
	for _, line := range commands {
		if strings.Contains(line, " seq ") || strings.Contains(line, " proto 135 ") {
			continue // iproute2 mixes up the byte order of these
		}
		out.WriteString("$ " + line + "\n")
		c, err := ParseCommand(line, &ReadOptions{IfIndex: guestIndex})
		if err != nil {
			out.WriteString(err.Error() + "\n")
			continue
		}
		b, err := c.Append(nil, Header{})
		if err != nil {
			t.Fatal(err)
		}
		m := message(t, b, nil)
		if c.Object == "link" {
			var l Link
			if err := l.Parse(m); err != nil {
				t.Fatal(err)
			}
			text, err := AppendJSON(nil, &l, TextOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out.Write(append(text, '\n'))
			continue
		}
		text, err := AppendMessageText(nil, m, Lossless())
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			t.Fatalf("line %d differs: got %q", i+1, g[min(i, len(g)-1)])
		}
	}
}
