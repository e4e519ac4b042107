package rtltcp

import "sync"

// A ring holds samples between the connection and the reader. Its writer
// never waits: what does not fit is lost and becomes a gap before the next
// sample that is kept. All counts of bytes are even.
type ring struct {
	mu       sync.Mutex
	more     sync.Cond // signalled when the reader can go on
	buf      []byte
	r, w     uint64 // bytes read and written since the start; r <= w <= r+len(buf)
	gaps     []gap  // in order, of those not yet read
	lost     uint64 // samples lost since the last one that was kept
	full     bool   // losing until half of the buffer is free
	dropped  uint64 // samples lost for want of room, in all
	received uint64 // samples that came
	err      error  // why no more will come
}

// A gap says that samples were lost before the byte of number at.
type gap struct {
	at, samples uint64
}

// maxGaps bounds the list of gaps. Beyond it everything is lost until the
// reader has caught up.
const maxGaps = 256

func newRing(size int) *ring {
	r := &ring{buf: make([]byte, size&^1)}
	r.more.L = &r.mu
	return r
}

// write puts whole samples in, or loses them.
func (r *ring) write(b []byte) {
	if len(b) == 0 {
		return // a gap is marked only before a sample
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received += uint64(len(b) / 2)
	free := uint64(len(r.buf)) - (r.w - r.r)
	if r.full && free >= uint64(len(r.buf))/2 {
		r.full = false
	}
	if r.full || uint64(len(b)) > free || r.lost > 0 && len(r.gaps) == maxGaps {
		r.full = true
		r.lost += uint64(len(b) / 2)
		r.dropped += uint64(len(b) / 2)
		return
	}
	r.mark()
	n := copy(r.buf[r.w%uint64(len(r.buf)):], b)
	copy(r.buf, b[n:])
	r.w += uint64(len(b))
	r.more.Signal()
}

// mark notes the gap before the next byte.
func (r *ring) mark() {
	if r.lost > 0 {
		r.gaps = append(r.gaps, gap{r.w, r.lost})
		r.lost = 0
	}
}

// skip notes samples that did not come at all.
func (r *ring) skip(samples uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost += samples
}

// reset throws away what waits, as a gap.
func (r *ring) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.gaps {
		r.lost += g.samples
	}
	r.gaps = r.gaps[:0]
	r.lost += (r.w - r.r) / 2
	r.r = r.w
	r.full = false
}

// end lets the reader know that no more will come.
func (r *ring) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.more.Broadcast()
}

// shut throws away what waits; from now on reading returns [ErrClosed].
func (r *ring) shut() {
	r.reset()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = ErrClosed
}

// read waits for samples and returns how many bytes it copied and how many
// samples were lost before them. It never reads across a gap.
func (r *ring) read(p []byte) (n int, lost uint64, err error) {
	p = p[:len(p)&^1]
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.r == r.w {
		if r.err != nil {
			return 0, 0, r.err
		}
		r.more.Wait()
	}
	if len(p) == 0 {
		return 0, 0, nil
	}
	if len(r.gaps) > 0 && r.gaps[0].at == r.r {
		lost = r.gaps[0].samples
		r.gaps = append(r.gaps[:0], r.gaps[1:]...)
	}
	limit := r.w
	if len(r.gaps) > 0 {
		limit = r.gaps[0].at
	}
	n = int(min(uint64(len(p)), limit-r.r))
	at := r.r % uint64(len(r.buf))
	k := copy(p[:n], r.buf[at:])
	copy(p[k:n], r.buf)
	r.r += uint64(n)
	return n, lost, nil
}
