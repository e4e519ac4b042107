// Package vectors opens test data that may not be part of the module: the
// recorded data and peers' vectors in the folder named by SIGNALBOX_VECTORS,
// by default ../shared/data beside the module's root. Where that folder is
// absent the test skips and says so; with SIGNALBOX_REQUIRE=vectors it fails.
package vectors

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"signalbox.example/internal/need"
)

// Feature is the name under which SIGNALBOX_REQUIRE asks for the data.
const Feature = "vectors"

// Dir returns the data folder, which need not exist.
func Dir() string {
	if d := os.Getenv("SIGNALBOX_VECTORS"); d != "" {
		return d
	}
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) { // built with -trimpath
		return filepath.Join("..", "shared", "data")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "shared", "data")
}

// Path returns the path of a file or folder, named by slash-separated parts
// below the data folder, or ends the test when it is absent.
func Path(t testing.TB, name string) string {
	t.Helper()
	p := filepath.Join(Dir(), filepath.FromSlash(name))
	if _, err := os.Stat(p); err != nil {
		need.Missing(t, Feature, "no "+name+" in the vector folder (SIGNALBOX_VECTORS, default ../shared/data)")
	}
	return p
}

// Read returns a whole file. A name that ends in .gz is decompressed.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// Lines returns a file's lines without line ends, comments (first character
// #) and empty lines left out, a UTF-8 byte order mark removed.
func Lines(t testing.TB, name string) []string {
	t.Helper()
	var out []string
	s := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(Read(t, name), []byte("\xef\xbb\xbf"))))
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		l := strings.TrimRight(s.Text(), "\r")
		if l != "" && l[0] != '#' {
			out = append(out, l)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
