package openpgpdns

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestWKDState: with a state file the result is the same as without, whatever
// happened to the files or to the state.
func TestWKDState(t *testing.T) {
	keys := ring(t, "alice", "bob", "phil")
	w := WKD{Root: t.TempDir(), State: filepath.Join(t.TempDir(), "state"), Options: minimalOptions()}
	alice := filepath.Join(w.Root, ".well-known/openpgpkey/example.org/hu/kei1q4tipxxu1yj79k9kfukdhfy631xe")
	tick := func() { time.Sleep(20 * time.Millisecond) } // a few of the file system's clock
	if r := update(t, w, keys); r.Written != 4 {
		t.Fatalf("%+v", r)
	}
	want := tree(t, w.Root)
	first, err := os.ReadFile(w.State)
	if err != nil || len(first) != len(stateMagic)+4*noteSize+32 && runtime.GOOS == "linux" {
		t.Fatalf("%d octets, %v", len(first), err)
	}
	if i, err := os.Stat(w.State); err != nil || i.Mode().Perm()&0o077 != 0 && runtime.GOOS == "linux" {
		t.Errorf("others may read it: %v", i.Mode())
	}
	tick()
	if r := update(t, w, keys); r.Written != 0 || r.Unchanged != 4 {
		t.Errorf("unchanged: %+v", r)
	}
	if b, err := os.ReadFile(w.State); err != nil || !bytes.Equal(b, first) {
		t.Errorf("an unchanged run changed the state: %d octets, %v", len(b), err)
	}

	// Every change of a file shows, at once or later, and with the old time set.
	whole, err := os.ReadFile(alice)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(alice)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) func() {
		return func() {
			if err := os.WriteFile(alice, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := bytes.Replace(whole, []byte("Alice"), []byte("Alyce"), 1)
	for name, change := range map[string]func(){
		"same size": write(other), "shorter": write(whole[:300]), "longer": write(append(bytes.Clone(whole), 0)), "empty": write(nil),
		"removed": func() { os.Remove(alice) },
		"time set": func() {
			write(other)()
			if err := os.Chtimes(alice, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"renamed over it": func() {
			tmp := alice + ".new"
			if err := os.WriteFile(tmp, other, 0o644); err != nil {
				t.Fatal(err)
			}
			os.Chtimes(tmp, info.ModTime(), info.ModTime())
			if err := os.Rename(tmp, alice); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, wait := range []bool{false, true} {
			if wait {
				tick()
			}
			change()
			if r := update(t, w, keys); r.Written != 1 || r.Unchanged != 3 {
				t.Errorf("%s, waited %v: %+v", name, wait, r)
			}
			if got := tree(t, w.Root); got[filepath.ToSlash(alice[len(w.Root)+1:])] != string(whole) || len(got) != len(want) {
				t.Errorf("%s, waited %v: not put right", name, wait)
			}
		}
	}

	// Damaged states, and those of other trees, are as good as none.
	tick()
	update(t, w, keys)
	good, err := os.ReadFile(w.State)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string][]byte{"empty": nil, "short": good[:len(good)-1], "long": append(bytes.Clone(good), 0), "one note less": append(bytes.Clone(good[:len(good)-noteSize-32]), good[len(good)-32:]...), "text": []byte("hello\n")}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 0x10
		if i%5 == 0 {
			bad[fmt.Sprint("octet ", i)] = b
		}
	}
	for name, b := range bad {
		if err := os.WriteFile(w.State, b, 0o600); err != nil {
			t.Fatal(err)
		}
		write(other)()
		if r := update(t, w, keys); r.Written != 1 || r.Unchanged != 3 {
			t.Errorf("state %q: %+v", name, r)
		}
		if b, err := os.ReadFile(w.State); err != nil || len(b) != len(good) {
			t.Errorf("state %q was not put right: %d octets, %v", name, len(b), err)
		}
	}
	elsewhere := w
	elsewhere.Root = t.TempDir()
	if r := update(t, elsewhere, keys); r.Written != 4 {
		t.Errorf("another tree: %+v", r)
	}
	if r := update(t, w, keys); r.Written != 0 || r.Unchanged != 4 {
		t.Errorf("the state of another tree: %+v", r)
	}

	// Fewer addresses, other keys.
	w.Prune = true
	if r := update(t, w, ring(t, "bob")); r.Removed != 2 || r.Unchanged != 2 {
		t.Errorf("pruned: %+v", r)
	}
	if b, _ := os.ReadFile(w.State); len(b) != len(stateMagic)+2*noteSize+32 && runtime.GOOS == "linux" {
		t.Errorf("%d octets with two addresses", len(b))
	}
	if r := update(t, w, ring(t, "erin")); r.Written != 1 || r.Removed != 2 {
		t.Errorf("another key: %+v", r)
	}
	w.Options.Filter = Filter{} // with her expired subkey
	if r := update(t, w, ring(t, "erin")); r.Written != 1 {
		t.Errorf("another filter: %+v", r)
	}
}

// TestWKDStateProves: what a note says is believed only of the file that it is
// about, and not if the file was last changed in the last tick that was noted.
func TestWKDStateProves(t *testing.T) {
	sum := [32]byte{1}
	n := note{sum, stamp{inode: 7, changed: 1000, size: 414}}
	s := treeState{latest: 1001}
	if !s.proves(&n, n.stamp, &sum, 414) {
		t.Error("the same file is not believed")
	}
	for name, now := range map[string]stamp{"inode": {8, 1000, 414}, "time": {7, 999, 414}, "size": {7, 1000, 413}, "no file": {}} {
		if s.proves(&n, now, &sum, 414) {
			t.Errorf("another %s is believed", name)
		}
	}
	if s.proves(&n, n.stamp, &sum, 413) || s.proves(&n, n.stamp, &[32]byte{2}, 414) || s.proves(&note{}, stamp{}, &[32]byte{}, 0) {
		t.Error("another content is believed")
	}
	s.latest = 1000
	if s.proves(&n, n.stamp, &sum, 414) {
		t.Error("a change in the last tick is believed")
	}
}

// TestWKDStatePlace: not in the tree, however the path is spelled.
func TestWKDStatePlace(t *testing.T) {
	base := t.TempDir()
	if err := os.Mkdir(filepath.Join(base, "www"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("www", filepath.Join(base, "link")); err != nil {
		t.Skip(err)
	}
	at := func(root, state string) error {
		w := WKD{Root: root, State: state, Options: minimalOptions()}
		_, err := w.Update(t.Context(), "example.org", ReadCerts(bytes.NewReader(ring(t, "alice"))))
		return err
	}
	for _, p := range []string{"www/state", "www/.well-known/state", "link/state", "link/a/../state", "www/../www/state"} {
		for _, root := range []string{"www", "link"} {
			if err := at(filepath.Join(base, root), base+"/"+p); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%s in %s: %v", p, root, err)
			}
		}
	}
	if es, _ := os.ReadDir(filepath.Join(base, "www")); len(es) != 0 {
		t.Error("wrote in spite of it")
	}
	if err := at(filepath.Join(base, "www"), filepath.Join(base, "www.state")); err != nil {
		t.Error(err)
	}
	var path *fs.PathError
	if err := at(filepath.Join(base, "www"), filepath.Join(base, "none/state")); !errors.As(err, &path) {
		t.Errorf("no such folder: %v", err)
	}
	if err := at(filepath.Join(base, "www"), base); err == nil {
		t.Error("replaced a folder")
	}
	if es, _ := os.ReadDir(base); len(es) != 3 {
		t.Errorf("left something: %v", es)
	}
}

// TestWKDStateAhead: with so many addresses that files are looked at while the
// ring is still being read, every change shows all the same.
func TestWKDStateAhead(t *testing.T) {
	const n = 1000
	w := WKD{Root: t.TempDir(), State: filepath.Join(t.TempDir(), "state")}
	run := func() Report {
		t.Helper()
		r, err := w.Update(t.Context(), "example.org", manyCerts(t, n, n))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run(); r.Written != n {
		t.Fatalf("%+v", r)
	}
	want := tree(t, w.Root)
	files, _ := filepath.Glob(filepath.Join(w.Root, ".well-known/openpgpkey/example.org/hu/*"))
	for round := range 3 {
		time.Sleep(20 * time.Millisecond)
		for i := round; i < n; i += 50 {
			b, err := os.ReadFile(files[i])
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)-1] ^= 1
			if err := os.WriteFile(files[i], b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if r := run(); r.Written != n/50 || r.Unchanged != n-n/50 {
			t.Errorf("%+v", r)
		}
		for name, text := range tree(t, w.Root) {
			if want[name] != text {
				t.Errorf("%s is not put right", name)
			}
		}
	}
}
