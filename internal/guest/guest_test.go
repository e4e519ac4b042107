package guest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestResolveOrdersDependencies(t *testing.T) {
	dir := t.TempDir()
	dep := "kernel/net/ipv4/esp4.ko.xz: kernel/crypto/authenc.ko.xz kernel/net/xfrm/xfrm-algo.ko.xz\n" +
		"kernel/crypto/authenc.ko.xz: kernel/crypto/null.ko.xz\nkernel/crypto/null.ko.xz:\n" +
		"kernel/net/xfrm/xfrm-algo.ko.xz:\nkernel/crypto/sub/deep.ko.xz:\n"
	if err := os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(dep), 0o644); err != nil {
		t.Fatal(err)
	}
	x, err := readModuleIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	paths, missing := x.resolve([]string{"esp4", "nothere"})
	want := []string{"kernel/crypto/null.ko.xz", "kernel/crypto/authenc.ko.xz", "kernel/net/xfrm/xfrm-algo.ko.xz", "kernel/net/ipv4/esp4.ko.xz"}
	if !slices.Equal(paths, want) || !slices.Equal(missing, []string{"nothere"}) {
		t.Errorf("resolve = %v, %v", paths, missing)
	}
	paths, _ = x.resolve([]string{"crypto/*", "xfrm_algo"})
	want = []string{"kernel/crypto/null.ko.xz", "kernel/crypto/authenc.ko.xz", "kernel/net/xfrm/xfrm-algo.ko.xz"}
	if !slices.Equal(paths, want) {
		t.Errorf("resolve of a folder = %v", paths)
	}
}

func TestArchive(t *testing.T) {
	var b bytes.Buffer
	a := &archive{w: &b}
	a.bytes("/bin/x", []byte("hello"))
	a.bytes("/bin/y", nil)
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	// bin, bin/x, bin/y and the trailer, each padded to four bytes.
	if b.Len()%4 != 0 || strings.Count(b.String(), "070701") != 4 {
		t.Errorf("%d bytes, %d entries", b.Len(), strings.Count(b.String(), "070701"))
	}
	if !strings.Contains(b.String(), "bin/x\x00") || !strings.Contains(b.String(), "hello\x00\x00\x00") {
		t.Errorf("name or padded body missing in %q", b.String())
	}
}
