package openpgpdns

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// treeState is what a run knows of the key files from the run before it. A file
// whose size, inode number and change time are those that were noted has the
// octets that were noted, as make and git judge. Unlike the modification time,
// which git takes too, the change time cannot be set: a file that was written
// over and then stamped back shows.
//
// A change in the same tick of the file system's clock as the one that was
// noted would not show. It can only come after a run if it falls into that
// run's last tick. So notes with the latest change time of all prove nothing:
// those files are compared, as are those without a note.
type treeState struct {
	notes   []note  // by slot of the collection
	latest  int64   // change time
	ahead   []stamp // by slot, of files that were looked at already; or nil
	changed atomic.Bool
}

// note is about one key file; its zero value proves nothing.
type note struct {
	sum   [32]byte // SHA-256 of its octets
	stamp stamp
}

// stamp tells one content of a file from another. Its zero value is that of
// no file.
type stamp struct {
	inode   uint64
	changed int64 // nanoseconds since 1970
	size    int64
}

// proves reports whether the file that has the stamp now holds size octets
// with the sum.
func (s *treeState) proves(n *note, now stamp, sum *[32]byte, size int) bool {
	return n.stamp == now && now != stamp{} && now.size == int64(size) && now.changed < s.latest && n.sum == *sum
}

// set notes that a file has a content. Different goroutines set different notes.
func (s *treeState) set(n *note, now stamp, sum *[32]byte) {
	new := note{*sum, now}
	if now == (stamp{}) {
		new = note{}
	}
	if *n != new {
		*n = new
		s.changed.Store(true)
	}
}

// The file: stateMagic, the notes as 20 octets of WKD hash, sum, inode, change
// time and size, big-endian, and the SHA-256 of all before it.
const (
	stateMagic = "openpgpdns WKD state 1\n"
	noteSize   = 20 + 32 + 8 + 8 + 8
)

// readState reads the notes about the addresses of a collection. A file that
// is not there, or is not whole, is one without notes.
func readState(path string, c *Collection) (*treeState, error) {
	s := &treeState{notes: make([]note, c.slots.n), latest: math.MinInt64}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		s.changed.Store(true)
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	whole, err := s.read(f, c)
	if err != nil {
		return nil, err
	}
	if !whole {
		clear(s.notes)
		s.changed.Store(true)
	}
	return s, nil
}

func (s *treeState) read(f *os.File, c *Collection) (whole bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	n := info.Size() - int64(len(stateMagic)) - sha256.Size
	if !info.Mode().IsRegular() || n < 0 || n%noteSize != 0 {
		return false, nil
	}
	r := bufio.NewReaderSize(f, 64<<10)
	h := sha256.New()
	var b [noteSize]byte
	slot := int32(-1)
	next := func(b []byte) bool {
		if _, err = io.ReadFull(r, b); err != nil {
			return false
		}
		h.Write(b)
		return true
	}
	if !next(b[:len(stateMagic)]) || string(b[:len(stateMagic)]) != stateMagic {
		return false, notEOF(err)
	}
	for range n / noteSize {
		if !next(b[:]) {
			return false, notEOF(err)
		}
		// Mostly the addresses are the same, in the same order.
		if slot++; int(slot) >= c.slots.n || c.slots.at(int(slot)).sum != [20]byte(b[:20]) {
			i, ok := c.index[[20]byte(b[:20])]
			if !ok {
				s.changed.Store(true) // a note that is no longer needed
				slot--
				continue
			}
			slot = i
		}
		s.notes[slot] = note{[32]byte(b[20:52]), stamp{
			binary.BigEndian.Uint64(b[52:]), int64(binary.BigEndian.Uint64(b[60:])), int64(binary.BigEndian.Uint64(b[68:])),
		}}
		s.latest = max(s.latest, s.notes[slot].stamp.changed)
	}
	want := h.Sum(nil)
	if !next(b[:sha256.Size]) {
		return false, notEOF(err)
	}
	return bytes.Equal(want, b[:sha256.Size]), nil
}

// notEOF drops the error of a file that became shorter: it is not whole.
func notEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}

// write replaces the file if the notes changed.
func (s *treeState) write(path string, c *Collection) error {
	if !s.changed.Load() {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // only for its owner
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when renamed
	defer f.Close()
	w := bufio.NewWriterSize(f, 64<<10)
	h := sha256.New()
	out := io.MultiWriter(w, h)
	io.WriteString(out, stateMagic)
	var b [noteSize]byte
	for i := range s.notes {
		n := &s.notes[i]
		if *n == (note{}) {
			continue
		}
		copy(b[:], c.slots.at(i).sum[:])
		copy(b[20:], n.sum[:])
		binary.BigEndian.PutUint64(b[52:], n.stamp.inode)
		binary.BigEndian.PutUint64(b[60:], uint64(n.stamp.changed))
		binary.BigEndian.PutUint64(b[68:], uint64(n.stamp.size))
		out.Write(b[:])
	}
	w.Write(h.Sum(nil))
	if err := w.Flush(); err != nil { // of all writes
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// lookAhead takes the stamps of key files while the ring is still being read,
// which leaves all cores but one idle.
type lookAhead struct {
	dir    *folder
	next   aheadBatch
	work   chan aheadBatch
	enough atomic.Bool
	done   chan []aheadStamp
}

type aheadBatch struct {
	first int // slot
	sums  [][20]byte
}

type aheadStamp struct {
	slot  int32
	stamp stamp
}

// startAhead returns nil if there is nothing to look at.
func startAhead(hu string) *lookAhead {
	dir, err := openFolder(hu)
	if err != nil {
		return nil
	}
	l := &lookAhead{dir: dir, work: make(chan aheadBatch, 256), done: make(chan []aheadStamp, 1)}
	go func() {
		var out []aheadStamp
		var name [32]byte
		for b := range l.work {
			for i := range b.sums {
				if l.enough.Load() {
					break
				}
				zBase32.Encode(name[:], b.sums[i][:])
				if s := dir.stamp(string(name[:])); s != (stamp{}) {
					out = append(out, aheadStamp{int32(b.first + i), s})
				}
			}
		}
		l.done <- out
	}()
	return l
}

// add is told of each new slot, in order. It never waits: what there is no
// room for is looked at later.
func (l *lookAhead) add(slot int, sum [20]byte) {
	if len(l.next.sums) == 0 {
		l.next = aheadBatch{slot, make([][20]byte, 0, 64)}
	}
	if l.next.sums = append(l.next.sums, sum); len(l.next.sums) == cap(l.next.sums) {
		select {
		case l.work <- l.next:
		default:
		}
		l.next.sums = nil
	}
}

// stop returns the stamps that were taken.
func (l *lookAhead) stop() []aheadStamp {
	l.enough.Store(true)
	close(l.work)
	out := <-l.done
	l.dir.close()
	return out
}

// checkState refuses a state file in the tree that is served.
func checkState(root, path string) error {
	dir, err := resolved(filepath.Dir(path))
	if err != nil {
		return err
	}
	if root, err = resolved(root); err != nil {
		return err
	}
	rel, err := filepath.Rel(root, dir)
	if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return inputError(fs.ErrInvalid, path, "the state tells the hashes of all addresses: keep it outside of what is served")
	}
	return nil
}

// resolved is the absolute path without symbolic links, as far as it exists.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for head, tail := path, ""; ; {
		if real, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(real, tail), nil
		}
		parent := filepath.Dir(head)
		if parent == head {
			return path, nil
		}
		head, tail = parent, filepath.Join(filepath.Base(head), tail)
	}
}
