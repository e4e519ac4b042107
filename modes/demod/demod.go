package demod

import (
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"

	"signalbox.example/modes"
)

// A Demodulator turns samples into frames. Make one with [New]; there is nothing
// to close. It belongs to one goroutine at a time; the goroutines of
// Config.Workers are its own affair.
type Demodulator struct {
	config Config
	t      *template
	judge  judge
	stats  Stats

	onModeAC func(*ModeACReply)
	reply    ModeACReply

	blocks []*block
	worker func()
	taken  atomic.Int32 // full blocks that a worker has taken
	wg     sync.WaitGroup
	full   int    // blocks that are full; blocks[full] is being filled
	fill   int    // samples in it
	quiet  ground // of the last block that was searched

	judged int                // blocks
	heard  [knownLag][]uint32 // addresses known behind each of the last blocks

	resample *resampler // nil where the stream has a rate to work on

	part  [8]byte // the beginning of a sample
	nPart int
	input int64 // whole samples that came in
}

// New returns a Demodulator, or an error that wraps [ErrFormat], [ErrRate] or
// [ErrConfig].
func New(c Config) (*Demodulator, error) {
	if c.Format >= formats {
		return nil, fmt.Errorf("%w: %d", ErrFormat, c.Format)
	}
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if c.Rate < MinRate || c.Rate > MaxRate {
		return nil, fmt.Errorf("%w: %d", ErrRate, c.Rate)
	}
	if c.Repair >= repairs || c.Effort >= numEfforts || c.Workers < 0 {
		return nil, fmt.Errorf("%w: repair %d, effort %d, workers %d", ErrConfig, c.Repair, c.Effort, c.Workers)
	}
	if c.Filter == nil {
		c.Filter = modes.NewAddressFilter(0)
	}
	c.Workers = min(max(c.Workers, 1), knownLag)
	d := &Demodulator{config: c, t: template24()}
	if c.Rate == 2_000_000 {
		d.t = template20()
	}
	if c.Rate != 2_000_000 && c.Rate != 2_400_000 {
		d.resample = newResampler(c.Rate)
	}
	d.judge = judge{t: d.t, filter: c.Filter, repair: c.Repair, stats: &d.stats, order: make([]int32, 0, 64),
		flip: newFlipper(), lim: &efforts[c.Effort], heard: make([]heard, 0, maxHeard)}
	together := 1
	if c.Workers > 1 { // as many as may be: starting workers takes time, and no two blocks take the same
		together = knownLag
	}
	for range together + 1 {
		d.blocks = append(d.blocks, newBlock(d.t, &efforts[c.Effort], &c))
	}
	d.worker = func() { d.search(); d.wg.Done() }
	for i := range d.heard {
		d.heard[i] = make([]uint32, 0, maxHeard)
	}
	d.restart(0)
	return d, nil
}

// restart begins a block with the sample of index next, as if silence came
// before.
func (d *Demodulator) restart(next int64) {
	b := d.blocks[0]
	b.first = next - int64(b.behind)
	d.full, d.fill, d.quiet = 0, b.behind, ground{}
	clear(b.re[:b.behind])
	clear(b.im[:b.behind])
}

// Process takes the next bytes of the stream, any number of them, and calls
// emit, which must not be nil, for each frame that has been found. It keeps
// nothing of iq. Samples are searched block by block (see [Config.Workers]), so
// frames come up to a block late; emit is called in this goroutine only. The
// frame is valid only during the call: copy it to keep it. Frames come in the
// order of their time, but one that waited for confirmation comes late.
func (d *Demodulator) Process(iq []byte, emit func(*modes.Frame)) {
	size := d.config.Format.SampleBytes()
	if d.nPart > 0 {
		n := copy(d.part[d.nPart:size], iq)
		d.nPart += n
		iq = iq[n:]
		if d.nPart < size {
			return
		}
		d.nPart = 0
		d.samples(d.part[:size], emit)
	}
	whole := len(iq) / size * size
	d.samples(iq[:whole], emit)
	d.nPart = copy(d.part[:], iq[whole:])
}

// samples takes whole samples.
func (d *Demodulator) samples(iq []byte, emit func(*modes.Frame)) {
	size := d.config.Format.SampleBytes()
	d.input += int64(len(iq) / size)
	for len(iq) > 0 {
		if r := d.resample; r != nil {
			n := min(len(iq)/size, r.room())
			r.push(d.config.Format, iq[:n*size])
			iq = iq[n*size:]
			d.pull(emit)
			continue
		}
		b := d.blocks[d.full]
		n := min(len(iq)/size, len(b.re)-d.fill)
		convert(d.config.Format, b.re[d.fill:d.fill+n], b.im[d.fill:d.fill+n], iq[:n*size])
		iq = iq[n*size:]
		d.fill += n
		if d.fill == len(b.re) {
			d.next(emit)
		}
	}
}

// pull takes what the resampler has.
func (d *Demodulator) pull(emit func(*modes.Frame)) {
	for {
		b := d.blocks[d.full]
		n := d.resample.pull(b.re[d.fill:], b.im[d.fill:])
		d.fill += n
		if d.fill < len(b.re) {
			return
		}
		d.next(emit)
	}
}

// next closes the full block, opens the one behind it and lets the workers
// run when no other is free.
func (d *Demodulator) next(emit func(*modes.Frame)) {
	b, c := d.blocks[d.full], d.blocks[d.full+1]
	b.valid = d.fill
	d.fill -= b.size
	copy(c.re[:d.fill], b.re[b.size:])
	copy(c.im[:d.fill], b.im[b.size:])
	c.first = b.first + int64(b.size)
	d.full++
	if d.full == len(d.blocks)-1 {
		d.work(emit)
	}
}

// work searches the full blocks and moves the open one to the front.
func (d *Demodulator) work(emit func(*modes.Frame)) {
	for i, b := range d.blocks[:d.full] {
		b.known = d.heard[(d.judged+i)%knownLag]
	}
	d.taken.Store(0)
	if n := min(d.config.Workers, d.full); n == 1 {
		d.search()
	} else {
		// All of them are started, rather than one fewer and this goroutine
		// being one: another processor takes up the last that was started
		// only with hesitation while this one goes on.
		d.wg.Add(n)
		for range n {
			go d.worker()
		}
		d.wg.Wait()
	}
	for _, b := range d.blocks[:d.full] {
		d.stats.add(&b.stats)
		d.emitModeAC(b)
		d.quiet = b.ground
		d.judge.judgeBlock(b.out, emit)
		slot := &d.heard[d.judged%knownLag]
		*slot = (*slot)[:0]
		for _, h := range d.judge.heard {
			*slot = append(*slot, h.address)
		}
		d.judged++
	}
	d.blocks[0], d.blocks[d.full] = d.blocks[d.full], d.blocks[0]
	d.full = 0
}

// search searches full blocks that nobody has taken until there are none.
func (d *Demodulator) search() {
	for {
		i := int(d.taken.Add(1)) - 1
		if i >= d.full {
			return
		}
		d.blocks[i].run()
	}
}

// Flush decodes what is still buffered as if silence followed, and drops the
// bytes of a sample that is not complete. The clock goes on, so the next Process
// continues the stream with a gap in its search. emit is as in
// [Demodulator.Process].
func (d *Demodulator) Flush(emit func(*modes.Frame)) {
	if r := d.resample; r != nil {
		// Silence behind the last sample lets the filter run out.
		for need := r.half; need > 0; {
			n := min(need, r.room())
			clear(r.re[r.n : r.n+n])
			clear(r.im[r.n : r.n+n])
			r.n += n
			need -= n
			d.pull(emit)
		}
		r.restart()
	}
	b := d.blocks[d.full]
	end := b.first + int64(d.fill)
	if d.fill > b.behind+b.size {
		// What this block only sees ahead may hold the start of a frame too.
		clear(b.re[d.fill:])
		clear(b.im[d.fill:])
		d.next(emit)
	}
	if d.full > 0 {
		d.work(emit)
	}
	if b = d.blocks[0]; d.fill > b.behind {
		b.valid = d.fill
		clear(b.re[d.fill:])
		clear(b.im[d.fill:])
		if d.fill < fewSamples {
			b.given = d.quiet
		}
		// The open block counts as full; one is always left to be the next.
		d.full++
		d.work(emit)
	}
	d.nPart = 0
	d.restart(end)
}

// Stats returns the counters. Samples counts all that came in, the others what
// was found in the blocks that have been searched. It may not be called while
// Process or Flush runs, except from inside their calls of emit.
func (d *Demodulator) Stats() Stats {
	s := d.stats
	s.Samples = uint64(d.input)
	return s
}

// Frames reads samples from r to its end and yields each frame; the frame is
// valid until the next one. A read error, or [ErrTruncated] when the input
// ends inside a sample, or io.ErrNoProgress after a hundred reads of nothing, is
// yielded last, with a nil frame, after what could be decoded.
func (d *Demodulator) Frames(r io.Reader) iter.Seq2[*modes.Frame, error] {
	return func(yield func(*modes.Frame, error) bool) {
		buf := make([]byte, 1<<16)
		more, idle := true, 0
		emit := func(f *modes.Frame) {
			if more {
				more = yield(f, nil)
			}
		}
		for more {
			n, err := r.Read(buf)
			d.Process(buf[:n], emit)
			if n > 0 {
				idle = 0
			} else if idle++; idle == 100 && err == nil {
				err = io.ErrNoProgress
			}
			if err == nil {
				continue
			}
			if err == io.EOF {
				err = nil
				if d.nPart > 0 {
					err = ErrTruncated
				}
			}
			d.Flush(emit)
			if more && err != nil {
				yield(nil, err)
			}
			return
		}
	}
}
