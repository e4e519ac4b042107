package openpgpdns

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// WKD writes a Web Key Directory: a tree that any web server (or [Handler])
// can serve. The fields may not change during a run, and one run at a time may
// work on a directory.
//
//	advanced: Root/.well-known/openpgpkey/DOMAIN/{policy,submission-address,hu/HASH}
//	direct:   Root/.well-known/openpgpkey/{policy,submission-address,hu/HASH}
type WKD struct {
	// Root is the folder that the web server serves as /, of the host
	// openpgpkey.DOMAIN (Advanced) or DOMAIN (Direct).
	Root string
	// Method is the layout.
	Method Method
	// Policy goes into the policy file, which is always written: some clients
	// refuse a directory without one.
	Policy Policy
	// Submission is the address of a Web Key Service, written to
	// submission-address, or "".
	Submission string
	// Prune removes the files of addresses that the ring no longer has. It is
	// not done, and the Report says so, if a part of the ring could not be read.
	Prune bool
	// State, unless "", names a file in which a run notes, for each key file,
	// the SHA-256 of its octets and its size, inode number and change time. The
	// next run does not read files of which these are the same. It takes a file
	// of its own for each directory, outside of Root, since it tells the hashes
	// of all addresses: inside, the run fails with [fs.ErrInvalid]. A state that
	// is missing, damaged or of another directory costs time and nothing else.
	// What others change while a run is going on may go unnoticed, and what a
	// crash of the system did to files too: remove the state after one. It
	// helps on Linux; elsewhere all files are read, as without it.
	State string
	// Options select what is published.
	Options Options
	// Progress, unless nil, is called now and then with the number of files
	// that are done and their total, by one goroutine at a time.
	Progress func(done, total int)
}

// Report says what a run did.
type Report struct {
	// Certificates read without error, and addresses with their own file.
	Certificates, Addresses int
	// Key files that were written, that had the right content already (read,
	// or known from [WKD.State]), and that were removed. Policy and
	// submission-address do not count.
	Written, Unchanged, Removed int
	// PruneSkipped: pruning was asked for but the ring was not read in full.
	PruneSkipped bool
	// Problems are the first 1000 of ProblemCount reasons why something was
	// left out.
	Problems     []error
	ProblemCount int
}

// Update makes the directory of the domain hold the keys in certs. The result
// depends on the input alone. Files that have the right content are not
// touched. Others are written under a temporary name, or on Linux, where they
// are new, without any, and then put in place, so that a server never sees half
// a file. A directory hu that is not there yet appears when it is complete.
// Nothing is written before certs has been read to the end; see [Collect] for
// what ends a run and what is only a problem.
func (w WKD) Update(ctx context.Context, domain string, certs iter.Seq2[*Cert, error]) (Report, error) {
	var ahead *lookAhead
	var isNew func(int, [20]byte)
	if w.State != "" {
		if d, err := DomainToASCII(domain); err == nil {
			if ahead = startAhead(filepath.Join(w.folder(d), "hu")); ahead != nil {
				isNew = ahead.add
			}
		}
	}
	c, err := collect(ctx, domain, certs, w.Options, isNew)
	var stamps []aheadStamp
	if ahead != nil {
		stamps = ahead.stop()
	}
	if err != nil {
		return Report{}, err
	}
	r, err := w.write(ctx, c, stamps)
	return r, errors.Join(err, c.Close())
}

// folder is where the files of a domain are.
func (w WKD) folder(domain string) string {
	return filepath.Join(w.Root, filepath.FromSlash(w.Method.wkdPath(domain)))
}

// Write makes the directory of the collection's domain hold its keys, as
// [WKD.Update] does. The collection stays open. An error of the file system is
// an *fs.PathError; what was written before it stays.
func (w WKD) Write(ctx context.Context, c *Collection) (Report, error) {
	return w.write(ctx, c, nil)
}

// write is Write with the stamps of some files, as they were a moment ago.
func (w WKD) write(ctx context.Context, c *Collection, ahead []aheadStamp) (Report, error) {
	r := Report{Certificates: c.certs, Addresses: c.slots.n}
	r.Problems, r.ProblemCount = c.Problems()
	policy, err := w.Policy.text()
	if err != nil {
		return r, err
	}
	if w.State != "" {
		if err := checkState(w.Root, w.State); err != nil {
			return r, err
		}
	}
	dir := w.folder(c.domain)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r, err
	}
	top, err := openFolder(dir)
	if err != nil {
		return r, err
	}
	defer top.close()
	f := fileWriter{dir: top}
	if _, err := f.update("policy", policy, nil, stamp{}); err != nil {
		return r, err
	}
	if w.Submission != "" {
		a, err := ParseAddress(w.Submission)
		if err != nil {
			return r, err
		}
		if _, err := f.update("submission-address", []byte(a.String()+"\n"), nil, stamp{}); err != nil {
			return r, err
		}
	}
	hu := filepath.Join(dir, "hu")
	if _, err = os.Lstat(hu); errors.Is(err, fs.ErrNotExist) {
		err = w.writeNew(ctx, c, hu, filepath.Join(dir, tmpPrefix+"hu"), &r)
	} else if err == nil {
		err = w.writeKeys(ctx, c, hu, false, ahead, &r)
	}
	if err != nil {
		return r, err
	}
	if w.Prune {
		if c.broken > 0 {
			r.PruneSkipped = true
			return r, nil
		}
		return r, w.prune(ctx, c, hu, &r)
	}
	return r, nil
}

const tmpPrefix = ".tmp-"

// writeNew makes the folder hu under the name tmp and then renames it: none of
// its files needs a temporary name then.
func (w WKD) writeNew(ctx context.Context, c *Collection, hu, tmp string, r *Report) error {
	if err := os.RemoveAll(tmp); err != nil { // of a run that was cut short
		return err
	}
	err := os.Mkdir(tmp, 0o755)
	if err == nil {
		err = w.writeKeys(ctx, c, tmp, true, nil, r)
	}
	if err == nil {
		err = os.Rename(tmp, hu)
	}
	if err != nil {
		os.RemoveAll(tmp)
		r.Written = 0
	}
	return err
}

// writeKeys writes the key files, several workers sharing the list, into a
// folder that may be fresh: new, empty and not yet served.
func (w WKD) writeKeys(ctx context.Context, c *Collection, hu string, fresh bool, ahead []aheadStamp, r *Report) error {
	dir, err := openFolder(hu)
	if err != nil {
		return err
	}
	defer dir.close()
	var st *treeState
	if w.State != "" {
		if st, err = readState(w.State, c); err != nil {
			return err
		}
		if len(ahead) > 0 {
			st.ahead = make([]stamp, c.slots.n)
			for _, a := range ahead {
				st.ahead[a.slot] = a.stamp
			}
		}
	}
	workers := min(w.Options.workers(), max(1, c.slots.n/16))
	var next, written, unchanged atomic.Int64
	var mu sync.Mutex // of Progress and first
	var first error
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			f := fileWriter{dir: dir, fresh: fresh, state: st}
			var e Entry
			var buf []byte
			var hash [32]byte
			var n *note
			var early stamp
			var err error
			for {
				i := int(next.Add(1)) - 1
				if i >= c.slots.n {
					return
				}
				if err = ctx.Err(); err == nil {
					e, buf, err = c.entry(i, buf, true)
				}
				if err == nil && len(e.Keys) > 0 {
					zBase32.Encode(hash[:], c.slots.at(int(i)).sum[:])
					if st != nil {
						n = &st.notes[i]
						if st.ahead != nil {
							early = st.ahead[i]
						}
					}
					var changed bool
					if changed, err = f.update(string(hash[:]), e.Keys, n, early); changed {
						written.Add(1)
					} else if err == nil {
						unchanged.Add(1)
					}
				}
				if err != nil || w.Progress != nil && (i%64 == 63 || i == c.slots.n-1) {
					mu.Lock()
					if err != nil {
						if first == nil {
							first = err
						}
						next.Store(int64(c.slots.n)) // stops the others
						mu.Unlock()
						return
					}
					w.Progress(i+1, c.slots.n)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	r.Written, r.Unchanged = int(written.Load()), int(unchanged.Load())
	if first != nil || st == nil {
		return first
	}
	return st.write(w.State, c)
}

// fileWriter makes files of a folder have a content. It reuses its buffer.
type fileWriter struct {
	dir   *folder
	fresh bool       // nothing to compare with, nobody to disturb
	state *treeState // or nil
	old   []byte
}

// update makes the file hold data, and reports whether it had to change
// anything. n is the state's note about the file, or nil; now is its stamp if
// that was taken already.
func (f *fileWriter) update(name string, data []byte, n *note, now stamp) (changed bool, err error) {
	var sum [32]byte
	if n != nil {
		sum = sha256.Sum256(data)
	}
	if n != nil && !f.fresh {
		if now == (stamp{}) { // taken before the file is read
			now = f.dir.stamp(name)
		}
		if f.state.proves(n, now, &sum, len(data)) {
			return false, nil
		}
	}
	if f.fresh {
		changed, err = true, f.dir.write(name, data)
	} else {
		changed, err = f.put(name, data)
	}
	if n != nil && err == nil {
		if changed {
			now = f.dir.stamp(name)
		}
		f.state.set(n, now, &sum)
	}
	return changed, err
}

// put is update without a state, for a folder that is in use.
func (f *fileWriter) put(name string, data []byte) (changed bool, err error) {
	exists, same, err := f.compare(name, data)
	if same || err != nil {
		return false, err
	}
	if !exists {
		if done, err := f.dir.create(name, data); done || err != nil {
			return done, err
		}
	}
	if err := f.dir.replace(tmpPrefix+name, name, data); err != nil {
		return false, err
	}
	return true, nil
}

// compare reports whether there is such a file and whether it holds exactly data.
func (f *fileWriter) compare(name string, data []byte) (exists, same bool, err error) {
	if cap(f.old) < len(data)+1 {
		f.old = make([]byte, len(data)+4096)
	}
	n, err := f.dir.read(name, f.old[:len(data)+1])
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	return true, bytes.Equal(f.old[:n], data), nil
}

// prune removes key files whose address the collection lacks, and leftovers of
// a run that was cut short. Anything else in the directory is not ours.
func (w WKD) prune(ctx context.Context, c *Collection, hu string, r *Report) error {
	d, err := os.Open(hu)
	if err != nil {
		return err
	}
	defer d.Close()
	var stale []string
	for {
		es, err := d.ReadDir(1024)
		for _, e := range es {
			name := strings.TrimPrefix(e.Name(), tmpPrefix)
			if !e.Type().IsRegular() || !isWKDHash(name) {
				continue
			}
			var sum [20]byte
			if _, err := zBase32.Decode(sum[:], []byte(name)); err != nil {
				continue
			}
			if _, ok := c.index[sum]; !ok || name != e.Name() {
				stale = append(stale, e.Name())
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	for _, name := range stale {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(hu, name)); err != nil {
			return err
		}
		if isWKDHash(name) {
			r.Removed++
		}
	}
	return nil
}

// isWKDHash reports whether a file name is 32 characters of z-base-32.
func isWKDHash(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		if strings.IndexByte(zBase32Alphabet, s[i]) < 0 {
			return false
		}
	}
	return true
}
