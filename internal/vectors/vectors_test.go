package vectors

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SIGNALBOX_VECTORS", dir)
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("\xef\xbb\xbfone\r\n\n# two\nthree"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Lines(t, "a.txt"); !slices.Equal(got, []string{"one", "three"}) {
		t.Errorf("Lines = %q", got)
	}
	f, err := os.Create(filepath.Join(dir, "b.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	z.Write([]byte("packed"))
	z.Close()
	f.Close()
	if got := string(Read(t, "b.gz")); got != "packed" {
		t.Errorf("Read = %q", got)
	}
}

func TestAbsentSkips(t *testing.T) {
	t.Setenv("SIGNALBOX_VECTORS", t.TempDir())
	t.Setenv("SIGNALBOX_REQUIRE", "")
	skipped := false
	t.Run("absent", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		Path(t, "nowhere/file")
	})
	if !skipped {
		t.Error("an absent file did not skip")
	}
}
