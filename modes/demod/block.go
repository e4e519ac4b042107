package demod

// Blocks are at fixed places of the stream, so nothing depends on how the
// bytes came in. A block sees samples of its neighbours: behind, so that
// filters have run in, and ahead, to the end of the last frame that starts
// in it.
const (
	runIn = 16  // samples that filters and searches want in front
	frame = 336 // a long frame is 288 samples at 2.4 Msps
	// knownLag is how many blocks later than the judge a block knows the
	// addresses that were heard. So many blocks can be searched at once.
	knownLag = 4
)

// A ground is what the receiver adds to the air: noise power, and the DC offset
// of its converter, 0 where that is harmless.
type ground struct {
	noise      float32
	dcRe, dcIm float32
}

// fewSamples of a stream's end, fewer than this, may be filled by frames and
// tell nothing of the ground: the block before does.
const fewSamples = 16 * noiseStep

// A span is a frame that is certain, and its place in half samples.
type span struct {
	from, to int
	start    int // sub-phases
	bits     int
	word     [2]uint64
}

// A block is the workplace of one worker.
type block struct {
	t      *template
	lim    *limits
	repair Repair

	behind int      // samples in front of the first that is searched
	size   int      // samples from the first that is searched to the next block
	known  []uint32 // addresses heard up to knownLag blocks ago
	first  int64    // index of re[0] in the stream
	valid  int      // samples of re that came from the input
	re     []float32
	im     []float32
	e      []float32
	ground
	given   ground                          // where its noise is not 0, of the block before, for one run
	gates   [gateWindow + sieveStep]float32 // of a part of the block, see scan
	out     []reading
	ac      bool // look for Mode A/C replies too
	replies []acReply
	stats   Stats

	busyUntil int
	busyGate  float32

	certain   []span // frames that are certain
	rescan    bool   // some of them were taken away
	quiet     bool   // the gaps of the preamble are empty
	bareStart bool   // the candidate in work has no preamble

	triedStart, triedBits int // of the last candidate that came to refine

	before         reading                // what the template read of a frame
	modelR, modelI [maxRegion + 2]float32 // one sample of silence at each end

	// Of the frame in work.
	word     [2]uint64
	diff     [longBits]float32
	zr, zi   [2*longBits + 10]float32 // the last ten are scratch
	pairs    [2 * maxSpan]float32     // I and Q in turn
	wr, wi   [longBits]float32
	xa, xb   [longBits]float32
	refR     [longBits]float32
	refI     [longBits]float32
	quad     [longBits]float32 // energy out of phase
	inv      [longBits]float32 // one over the noise
	omega    float32           // radians a chip
	amp      float32
	fwd, llr [longBits]float32
	own      [longBits]float32
	pair     [2][2][longBits]float32
	onChips  [longBits]int16
	response [4]float32 // of the matched filter to a pulse 0 to 3 chips away
	flip     *flipper
	scratch  []float32
}

func newBlock(t *template, lim *limits, c *Config) *block {
	// Where frames are taken away, those that reach into the block from the
	// one before and from behind its end must be found too.
	behind, ahead := runIn, frame
	if lim.deep {
		behind, ahead = runIn+frame, 2*frame
	}
	n := behind + lim.block + ahead
	return &block{
		t: t, lim: lim, repair: c.Repair, ac: c.ModeAC, size: lim.block, behind: behind,
		re: make([]float32, n), im: make([]float32, n), e: make([]float32, 2*n),
		out: make([]reading, 0, 128), certain: make([]span, 0, 128), replies: make([]acReply, 0, 64), scratch: make([]float32, 0, n/noiseStep+1),
		flip: newFlipper(),
	}
}

// run searches the block.
func (b *block) run() {
	b.out, b.replies = b.out[:0], b.replies[:0]
	b.stats = Stats{Blocks: 1}
	b.busyUntil, b.triedBits = 0, 0
	b.certain = b.certain[:0]
	b.centre()
	energies(b.e, b.re, b.im, b.t)
	b.noise = noiseLevel(b.e[:2*b.valid], b.scratch)
	if b.given.noise > 0 {
		b.noise, b.given = min(b.noise, b.given.noise), ground{}
	}
	if b.noise <= 0 {
		return
	}
	b.noise = max(b.noise, noiseFloor)
	lo, hi := 2*b.behind, 2*(b.behind+b.size)
	if !b.lim.deep {
		b.scan(lo, hi)
		if b.ac {
			b.modeAC(lo, hi)
		}
		return
	}
	first, last := 2*runIn, hi+2*(frame-runIn-20)
	b.scan(first, last)
	b.uncover(first, last)
	b.bare(lo, hi)
	if b.ac {
		b.modeAC(lo, hi)
	}
	b.keepOwn(lo/2-2, hi/2+2)
}

// keepOwn drops the readings of frames that start before sample lo or after hi:
// they are those of the neighbouring blocks.
func (b *block) keepOwn(lo, hi int) {
	for i := range b.out {
		if n := b.out[i].start/subPhases - b.first; n < int64(lo) || n >= int64(hi) {
			b.out[i].bits = 0
		}
	}
}

// noiseFloor is the least noise level: below the rounding noise of 16-bit
// samples.
const noiseFloor = 1e-10

// centre takes the mean of I and Q away, the DC offset of the converter.
func (b *block) centre() {
	const step = 8
	var x, y, power float32
	n := float32(0)
	for i := 0; i < b.valid; i += step {
		r, q := b.re[i], b.im[i]
		x += r
		y += q
		power += r*r + q*q
		n++
	}
	if n == 0 {
		return
	}
	x /= n
	y /= n
	if b.given.noise > 0 {
		x, y = b.given.dcRe, b.given.dcIm
	} else if x*x+y*y < 0.005*power/n {
		x, y = 0, 0
	}
	b.dcRe, b.dcIm = x, y
	if x == 0 && y == 0 {
		return
	}
	for i := range b.re[:b.valid] {
		b.re[i] -= x
		b.im[i] -= y
	}
}
