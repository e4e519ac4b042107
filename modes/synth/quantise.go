package synth

import (
	"encoding/binary"
	"math"
)

// clip rounds v to the nearest integer from lo to hi.
func clip(v, lo, hi float64) int {
	return int(math.Min(hi, math.Max(lo, math.Floor(v+0.5))))
}

// AppendUC8 appends samples as unsigned bytes around 127.4, the RTL-SDR's
// format.
func AppendUC8(dst []byte, iq []complex64) []byte {
	for _, v := range iq {
		dst = append(dst,
			byte(clip(float64(real(v))*128+127.4, 0, 255)),
			byte(clip(float64(imag(v))*128+127.4, 0, 255)))
	}
	return dst
}

// AppendCS8 appends samples as signed bytes, the HackRF's format.
func AppendCS8(dst []byte, iq []complex64) []byte {
	for _, v := range iq {
		dst = append(dst,
			byte(int8(clip(float64(real(v))*128, -128, 127))),
			byte(int8(clip(float64(imag(v))*128, -128, 127))))
	}
	return dst
}

func append16(dst []byte, iq []complex64, full float64) []byte {
	for _, v := range iq {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(int16(clip(float64(real(v))*full, -full, full-1))))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(int16(clip(float64(imag(v))*full, -full, full-1))))
	}
	return dst
}

// AppendSC16 appends samples as signed 16-bit integers, full scale 32768.
func AppendSC16(dst []byte, iq []complex64) []byte { return append16(dst, iq, 32768) }

// AppendSC16Q11 appends samples as signed 16-bit integers, full scale 2048,
// the bladeRF's format.
func AppendSC16Q11(dst []byte, iq []complex64) []byte { return append16(dst, iq, 2048) }

// AppendCF32 appends samples as 32-bit floating point numbers.
func AppendCF32(dst []byte, iq []complex64) []byte {
	for _, v := range iq {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(real(v)))
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(imag(v)))
	}
	return dst
}
