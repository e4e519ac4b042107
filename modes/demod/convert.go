package demod

import (
	"encoding/binary"
	"math"
)

// convert turns whole samples into planes of I and Q with full scale 1.0.
// re, im and src hold the same number of samples.
func convert(f Format, re, im []float32, src []byte) {
	im = im[:len(re)]
	switch f {
	case UC8:
		const scale, zero = 1.0 / 128, 127.4 / 128
		src = src[:2*len(re)]
		done := 0
		if haveKernels && len(re) >= 4 {
			done = len(re) &^ 3
			bytes4(&re[0], &im[0], &src[0], done, scale, zero)
		}
		for i := done; i < len(re); i++ {
			re[i] = float32(float32(src[2*i])*scale) - zero
			im[i] = float32(float32(src[2*i+1])*scale) - zero
		}
	case CS8:
		src = src[:2*len(re)]
		for i := range re {
			re[i] = float32(int8(src[2*i])) / 128
			im[i] = float32(int8(src[2*i+1])) / 128
		}
	case SC16, SC16Q11:
		scale := float32(1.0 / 32768)
		if f == SC16Q11 {
			scale = 1.0 / 2048
		}
		for i := range re {
			v := binary.LittleEndian.Uint32(src[4*i:])
			re[i] = float32(int16(v)) * scale
			im[i] = float32(int16(v>>16)) * scale
		}
	case CF32:
		for i := range re {
			v := binary.LittleEndian.Uint64(src[8*i:])
			re[i] = finite(math.Float32frombits(uint32(v)))
			im[i] = finite(math.Float32frombits(uint32(v >> 32)))
		}
	}
}

// finite replaces what is no number or far beyond full scale, so that one
// broken sample cannot spoil sums over a whole block.
func finite(x float32) float32 {
	if !(x > -1e6 && x < 1e6) {
		return 0
	}
	return x
}
