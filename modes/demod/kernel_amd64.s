//go:build !purego

#include "textflag.h"

// SSE2 is part of every amd64 processor, so nothing here is asked of the
// machine. The operations and their order are those of the plain loops: results are
// the same to the bit.

// func energies4(e, re, im *float32, n int, taps *[4]float32)
// taps: middle, side, inner, outer. n is a multiple of four.
TEXT ·energies4(SB), NOSPLIT, $0-40
	MOVQ e+0(FP), DI
	MOVQ re+8(FP), SI
	MOVQ im+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ taps+32(FP), AX
	MOVSS 0(AX), X12
	SHUFPS $0, X12, X12
	MOVSS 4(AX), X13
	SHUFPS $0, X13, X13
	MOVSS 8(AX), X14
	SHUFPS $0, X14, X14
	MOVSS 12(AX), X15
	SHUFPS $0, X15, X15
loop:
	SUBQ $4, CX
	JLT done
	MOVUPS 0(SI), X0
	MOVUPS 4(SI), X1
	MOVUPS 8(SI), X2
	MOVUPS 12(SI), X3
	MOVAPS X0, X4
	ADDPS X2, X4  // a0+a2
	MULPS X13, X4 // side
	ADDPS X1, X2  // a1+a2
	MULPS X14, X2 // inner
	ADDPS X3, X0  // a0+a3
	MULPS X15, X0 // outer
	MULPS X12, X1 // middle
	ADDPS X4, X1  // x
	ADDPS X0, X2  // u
	MULPS X1, X1
	MULPS X2, X2
	MOVUPS 0(DX), X5
	MOVUPS 4(DX), X6
	MOVUPS 8(DX), X7
	MOVUPS 12(DX), X8
	MOVAPS X5, X9
	ADDPS X7, X9
	MULPS X13, X9
	ADDPS X6, X7
	MULPS X14, X7
	ADDPS X8, X5
	MULPS X15, X5
	MULPS X12, X6
	ADDPS X9, X6  // y
	ADDPS X5, X7  // v
	MULPS X6, X6
	MULPS X7, X7
	ADDPS X6, X1  // on samples
	ADDPS X7, X2  // half way
	MOVAPS X1, X3
	UNPCKLPS X2, X1
	UNPCKHPS X2, X3
	MOVUPS X1, 0(DI)
	MOVUPS X3, 16(DI)
	ADDQ $16, SI
	ADDQ $16, DX
	ADDQ $32, DI
	JMP loop
done:
	RET

// func gates16(dst, e *float32, n, p1, p2, p3 int, limit float32) (loud uint64)
// n is a multiple of 16, 1024 at most.
TEXT ·gates16(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), DI
	MOVQ e+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ p1+24(FP), AX
	LEAQ (SI)(AX*4), R8
	MOVQ p2+32(FP), AX
	LEAQ (SI)(AX*4), R9
	MOVQ p3+40(FP), AX
	LEAQ (SI)(AX*4), R10
	MOVSS limit+48(FP), X15
	SHUFPS $0, X15, X15
	XORQ R11, R11
	XORQ CX, CX
	SHRQ $4, DX
next:
	CMPQ CX, DX
	JGE end
	MOVUPS 0(SI), X0
	MOVUPS 0(R8), X4
	MOVUPS 0(R9), X5
	MOVUPS 0(R10), X6
	ADDPS X4, X0
	ADDPS X5, X0
	ADDPS X6, X0
	MOVUPS X0, 0(DI)
	MOVUPS 16(SI), X1
	MOVUPS 16(R8), X4
	MOVUPS 16(R9), X5
	MOVUPS 16(R10), X6
	ADDPS X4, X1
	ADDPS X5, X1
	ADDPS X6, X1
	MOVUPS X1, 16(DI)
	MOVUPS 32(SI), X2
	MOVUPS 32(R8), X4
	MOVUPS 32(R9), X5
	MOVUPS 32(R10), X6
	ADDPS X4, X2
	ADDPS X5, X2
	ADDPS X6, X2
	MOVUPS X2, 32(DI)
	MOVUPS 48(SI), X3
	MOVUPS 48(R8), X4
	MOVUPS 48(R9), X5
	MOVUPS 48(R10), X6
	ADDPS X4, X3
	ADDPS X5, X3
	ADDPS X6, X3
	MOVUPS X3, 48(DI)
	MAXPS X1, X0
	MAXPS X3, X2
	MAXPS X2, X0
	MOVAPS X15, X1
	CMPPS X0, X1, $2 // limit <= sum
	MOVMSKPS X1, AX
	XORL BX, BX
	TESTL AX, AX
	SETNE BX
	SHLQ CX, BX
	ORQ BX, R11
	INCQ CX
	ADDQ $64, SI
	ADDQ $64, R8
	ADDQ $64, R9
	ADDQ $64, R10
	ADDQ $64, DI
	JMP next
end:
	MOVQ R11, loud+56(FP)
	RET

DATA sieveConst<>+0(SB)/4, $0.25
DATA sieveConst<>+4(SB)/4, $0.0625
DATA sieveConst<>+8(SB)/4, $1.3
DATA sieveConst<>+12(SB)/4, $6.0
DATA sieveConst<>+16(SB)/4, $12.0
GLOBL sieveConst<>(SB), RODATA|NOPTR, $20

// SIFT is the body of sift24 and sift20; c1 to c15 are the chips' distances in
// bytes.
#define SIFT(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15) \
	MOVQ sum+0(FP), SI \
	MOVQ e+8(FP), DI \
	MOVQ n+16(FP), DX \
	MOVQ s+24(FP), AX \
	MOVSS 0(AX), X15 \
	SHUFPS $0, X15, X15 /* limit */ \
	MOVSS 4(AX), X14 \
	SHUFPS $0, X14, X14 /* noise */ \
	MOVSS 8(AX), X13 \
	SHUFPS $0, X13, X13 /* quiet */ \
	MOVSS 12(AX), X12 \
	SHUFPS $0, X12, X12 /* few */ \
	MOVSS 16(AX), X11 \
	SHUFPS $0, X11, X11 /* more */ \
	LEAQ sieveConst<>(SB), AX \
	MOVSS 0(AX), X10 \
	SHUFPS $0, X10, X10 \
	MOVSS 4(AX), X9 \
	SHUFPS $0, X9, X9 \
	MOVSS 8(AX), X8 \
	SHUFPS $0, X8, X8 \
	MOVSS 12(AX), X7 \
	SHUFPS $0, X7, X7 \
	MOVSS 16(AX), X6 \
	SHUFPS $0, X6, X6 \
	XORQ R8, R8 \
	XORQ R9, R9 \
	XORQ CX, CX \
sixteen: \
	CMPQ CX, DX \
	JGE end \
	MOVUPS 4(SI), X0 \
	MOVUPS 20(SI), X1 \
	MAXPS X1, X0 \
	MOVUPS 36(SI), X1 \
	MAXPS X1, X0 \
	MOVUPS 52(SI), X1 \
	MAXPS X1, X0 \
	MOVAPS X15, X1 \
	CMPPS X0, X1, $2 \
	MOVMSKPS X1, AX \
	MOVQ $4, R11 \
	TESTL AX, AX \
	JNE four \
	ADDQ $16, CX \
	ADDQ $64, SI \
	ADDQ $64, DI \
	JMP sixteen \
four: \
	MOVUPS 4(SI), X0 \
	MOVUPS 0(SI), X2 \
	MOVUPS 8(SI), X3 \
	MOVAPS X15, X1 \
	CMPPS X0, X1, $2 /* limit <= here */ \
	CMPPS X0, X2, $1 /* before < here */ \
	CMPPS X0, X3, $2 /* after <= here */ \
	ANDPS X2, X1 \
	ANDPS X3, X1 \
	MOVMSKPS X1, AX \
	TESTL AX, AX \
	JEQ none \
	MOVAPS X0, X5 \
	MULPS X10, X0 \
	SUBPS X14, X0 /* on */ \
	MOVUPS c12(DI), X3 \
	MOVUPS c13(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c14(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c15(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c4(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c5(DI), X4 \
	ADDPS X4, X3 /* gap */ \
	MOVAPS X0, X2 \
	MULPS X8, X2 \
	DIVPS X13, X2 \
	ADDPS X12, X2 \
	MULPS X7, X2 \
	CMPPS X3, X2, $5 /* not below the gap */ \
	MOVMSKPS X2, R10 \
	ANDL AX, R10 \
	SHLQ CX, AX \
	ORQ AX, R8 \
	TESTL R10, R10 \
	JEQ none /* most end here */ \
	MULPS X9, X5 /* a pulse below is weak */ \
	MOVUPS 0(DI), X1 \
	CMPPS X5, X1, $1 \
	MOVUPS c2(DI), X4 \
	CMPPS X5, X4, $1 \
	PADDL X4, X1 \
	MOVUPS c7(DI), X4 \
	CMPPS X5, X4, $1 \
	PADDL X4, X1 \
	MOVUPS c9(DI), X4 \
	CMPPS X5, X4, $1 \
	PADDL X4, X1 /* less the number of weak ones */ \
	PCMPEQL X4, X4 \
	PSUBL X4, X1 \
	MOVMSKPS X1, BX /* more than one */ \
	NOTL BX \
	ANDL BX, R10 \
	MOVUPS c1(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c3(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c6(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c8(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c10(DI), X4 \
	ADDPS X4, X3 \
	MOVUPS c11(DI), X4 \
	ADDPS X4, X3 /* all quiet chips */ \
	DIVPS X13, X0 \
	ADDPS X11, X0 \
	MULPS X6, X0 \
	CMPPS X3, X0, $5 \
	MOVMSKPS X0, BX \
	ANDL BX, R10 \
	SHLQ CX, R10 \
	ORQ R10, R9 \
none: \
	ADDQ $4, CX \
	ADDQ $16, SI \
	ADDQ $16, DI \
	DECQ R11 \
	JNE four \
	JMP sixteen \
end: \
	MOVQ R8, peaks+32(FP) \
	MOVQ R9, good+40(FP) \
	RET

// func sift24(sum, e *float32, n int, s *sieve) (peaks, good uint64)
TEXT ·sift24(SB), NOSPLIT, $0-48
	SIFT(8, 20, 28, 40, 48, 56, 68, 76, 88, 96, 104, 116, 124, 136, 144)

// func sift20(sum, e *float32, n int, s *sieve) (peaks, good uint64)
TEXT ·sift20(SB), NOSPLIT, $0-48
	SIFT(8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120)

// func bytes4(re, im *float32, src *byte, n int, scale, zero float32)
// n is a multiple of four.
TEXT ·bytes4(SB), NOSPLIT, $0-40
	MOVQ re+0(FP), DI
	MOVQ im+8(FP), DX
	MOVQ src+16(FP), SI
	MOVQ n+24(FP), CX
	MOVSS scale+32(FP), X14
	SHUFPS $0, X14, X14
	MOVSS zero+36(FP), X15
	SHUFPS $0, X15, X15
	PXOR X13, X13
more:
	SUBQ $4, CX
	JLT over
	MOVQ (SI), X0
	PUNPCKLBW X13, X0
	MOVO X0, X1
	PUNPCKLWL X13, X0 // I0 Q0 I1 Q1
	PUNPCKHWL X13, X1 // I2 Q2 I3 Q3
	CVTPL2PS X0, X0
	CVTPL2PS X1, X1
	MOVAPS X0, X2
	SHUFPS $0x88, X1, X0 // I
	SHUFPS $0xDD, X1, X2 // Q
	MULPS X14, X0
	MULPS X14, X2
	SUBPS X15, X0
	SUBPS X15, X2
	MOVUPS X0, (DI)
	MOVUPS X2, (DX)
	ADDQ $8, SI
	ADDQ $16, DI
	ADDQ $16, DX
	JMP more
over:
	RET

// func dot4(re, im, taps *float32, n int) (x, y float32)
// n is a multiple of four.
TEXT ·dot4(SB), NOSPLIT, $0-40
	MOVQ re+0(FP), SI
	MOVQ im+8(FP), DX
	MOVQ taps+16(FP), AX
	MOVQ n+24(FP), CX
	XORPS X0, X0
	XORPS X1, X1
	XORQ BX, BX
again:
	CMPQ BX, CX
	JGE sum
	MOVUPS (AX)(BX*4), X2
	MOVUPS (SI)(BX*4), X3
	MOVUPS (DX)(BX*4), X4
	MULPS X2, X3
	MULPS X2, X4
	ADDPS X3, X0
	ADDPS X4, X1
	ADDQ $4, BX
	JMP again
sum:
	MOVHLPS X0, X2
	ADDPS X2, X0 // 0+2, 1+3
	MOVAPS X0, X2
	SHUFPS $1, X2, X2
	ADDSS X2, X0
	MOVSS X0, x+32(FP)
	MOVHLPS X1, X2
	ADDPS X2, X1
	MOVAPS X1, X2
	SHUFPS $1, X2, X2
	ADDSS X2, X1
	MOVSS X1, y+36(FP)
	RET

// func interleave4(z, re, im *float32, n int)
// n is a multiple of four.
TEXT ·interleave4(SB), NOSPLIT, $0-32
	MOVQ z+0(FP), DI
	MOVQ re+8(FP), SI
	MOVQ im+16(FP), DX
	MOVQ n+24(FP), CX
more:
	SUBQ $4, CX
	JLT over
	MOVUPS (SI), X0
	MOVUPS (DX), X1
	MOVAPS X0, X2
	UNPCKLPS X1, X0
	UNPCKHPS X1, X2
	MOVUPS X0, (DI)
	MOVUPS X2, 16(DI)
	ADDQ $16, SI
	ADDQ $16, DX
	ADDQ $32, DI
	JMP more
over:
	RET

// STORE2 puts I and Q of the chip at R8, R9 and of the next of its phase, R11
// bytes behind.
#define STORE2 \
	MOVSS X0, (R8) \
	MOVHLPS X0, X1 \
	MOVSS X1, (R8)(R11*1) \
	SHUFPS $0xF5, X0, X0 \
	MOVSS X0, (R9) \
	MOVHLPS X0, X1 \
	MOVSS X1, (R9)(R11*1) \
	LEAQ (R8)(R11*2), R8 \
	LEAQ (R9)(R11*2), R9 \
	LEAQ (SI)(R10*2), SI

// func matchReal(zr, zi, z *float32, taps *[6]float32, n, stride, period int)
// n is even.
TEXT ·matchReal(SB), NOSPLIT, $0-56
	MOVQ zr+0(FP), R8
	MOVQ zi+8(FP), R9
	MOVQ z+16(FP), SI
	MOVQ taps+24(FP), AX
	MOVQ n+32(FP), CX
	MOVQ stride+40(FP), R10
	SHLQ $3, R10
	MOVQ period+48(FP), R11
	SHLQ $2, R11
	MOVSS 0(AX), X8
	SHUFPS $0, X8, X8
	MOVSS 4(AX), X9
	SHUFPS $0, X9, X9
	MOVSS 8(AX), X10
	SHUFPS $0, X10, X10
	MOVSS 12(AX), X11
	SHUFPS $0, X11, X11
	MOVSS 16(AX), X12
	SHUFPS $0, X12, X12
	MOVSS 20(AX), X13
	SHUFPS $0, X13, X13
more:
	SUBQ $2, CX
	JLT over
	MOVSD 0(SI), X0
	MOVHPS 0(SI)(R10*1), X0
	MULPS X8, X0
	MOVSD 8(SI), X1
	MOVHPS 8(SI)(R10*1), X1
	MULPS X9, X1
	MOVSD 16(SI), X2
	MOVHPS 16(SI)(R10*1), X2
	MULPS X10, X2
	MOVSD 24(SI), X3
	MOVHPS 24(SI)(R10*1), X3
	MULPS X11, X3
	MOVSD 32(SI), X4
	MOVHPS 32(SI)(R10*1), X4
	MULPS X12, X4
	MOVSD 40(SI), X5
	MOVHPS 40(SI)(R10*1), X5
	MULPS X13, X5
	ADDPS X1, X0
	ADDPS X2, X0
	ADDPS X3, X0
	ADDPS X4, X0
	ADDPS X5, X0
	STORE2
	JMP more
over:
	RET

DATA minusQ<>+0(SB)/8, $0x8000000000000000
DATA minusQ<>+8(SB)/8, $0x8000000000000000
GLOBL minusQ<>(SB), RODATA|NOPTR, $16

// func matchComplex(zr, zi, z *float32, taps *[6]complex64, n, stride, period int)
// n is even.
TEXT ·matchComplex(SB), NOSPLIT, $0-56
	MOVQ zr+0(FP), R8
	MOVQ zi+8(FP), R9
	MOVQ z+16(FP), SI
	MOVQ taps+24(FP), AX
	MOVQ n+32(FP), CX
	MOVQ stride+40(FP), R10
	SHLQ $3, R10
	MOVQ period+48(FP), R11
	SHLQ $2, R11
	MOVUPS minusQ<>(SB), X15
	MOVSS 0(AX), X3
	SHUFPS $0, X3, X3
	MOVSS 4(AX), X9
	SHUFPS $0, X9, X9
	XORPS X15, X9 // for I and, negative, for Q
	MOVSS 8(AX), X4
	SHUFPS $0, X4, X4
	MOVSS 12(AX), X10
	SHUFPS $0, X10, X10
	XORPS X15, X10 // for I and, negative, for Q
	MOVSS 16(AX), X5
	SHUFPS $0, X5, X5
	MOVSS 20(AX), X11
	SHUFPS $0, X11, X11
	XORPS X15, X11 // for I and, negative, for Q
	MOVSS 24(AX), X6
	SHUFPS $0, X6, X6
	MOVSS 28(AX), X12
	SHUFPS $0, X12, X12
	XORPS X15, X12 // for I and, negative, for Q
	MOVSS 32(AX), X7
	SHUFPS $0, X7, X7
	MOVSS 36(AX), X13
	SHUFPS $0, X13, X13
	XORPS X15, X13 // for I and, negative, for Q
	MOVSS 40(AX), X8
	SHUFPS $0, X8, X8
	MOVSS 44(AX), X14
	SHUFPS $0, X14, X14
	XORPS X15, X14 // for I and, negative, for Q
more:
	SUBQ $2, CX
	JLT over
	XORPS X0, X0
	MOVSD 0(SI), X1
	MOVHPS 0(SI)(R10*1), X1
	MOVAPS X1, X2
	SHUFPS $0xB1, X2, X2
	MULPS X3, X1
	MULPS X9, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVSD 8(SI), X1
	MOVHPS 8(SI)(R10*1), X1
	MOVAPS X1, X2
	SHUFPS $0xB1, X2, X2
	MULPS X4, X1
	MULPS X10, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVSD 16(SI), X1
	MOVHPS 16(SI)(R10*1), X1
	MOVAPS X1, X2
	SHUFPS $0xB1, X2, X2
	MULPS X5, X1
	MULPS X11, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVSD 24(SI), X1
	MOVHPS 24(SI)(R10*1), X1
	MOVAPS X1, X2
	SHUFPS $0xB1, X2, X2
	MULPS X6, X1
	MULPS X12, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVSD 32(SI), X1
	MOVHPS 32(SI)(R10*1), X1
	MOVAPS X1, X2
	SHUFPS $0xB1, X2, X2
	MULPS X7, X1
	MULPS X13, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVSD 40(SI), X1
	MOVHPS 40(SI)(R10*1), X1
	MOVAPS X1, X2
	SHUFPS $0xB1, X2, X2
	MULPS X8, X1
	MULPS X14, X2
	ADDPS X2, X1
	ADDPS X1, X0
	STORE2
	JMP more
over:
	RET

// func correlate16(auto, r *[16]float32, s, e *float32, on *int16, n int)
TEXT ·correlate16(SB), NOSPLIT, $0-48
	MOVQ auto+0(FP), R8
	MOVQ r+8(FP), R9
	MOVQ s+16(FP), SI
	MOVQ e+24(FP), DI
	MOVQ on+32(FP), DX
	MOVQ n+40(FP), CX
	MOVUPS 0(R8), X0
	MOVUPS 0(R9), X4
	MOVUPS 16(R8), X1
	MOVUPS 16(R9), X5
	MOVUPS 32(R8), X2
	MOVUPS 32(R9), X6
	MOVUPS 48(R8), X3
	MOVUPS 48(R9), X7
	SUBQ $28, DI // seven places
more:
	DECQ CX
	JLT over
	MOVWQSX (DX), AX
	ADDQ $2, DX
	MOVUPS 0(SI)(AX*4), X8
	MOVUPS 0(DI)(AX*4), X12
	ADDPS X8, X0
	ADDPS X12, X4
	MOVUPS 16(SI)(AX*4), X9
	MOVUPS 16(DI)(AX*4), X13
	ADDPS X9, X1
	ADDPS X13, X5
	MOVUPS 32(SI)(AX*4), X10
	MOVUPS 32(DI)(AX*4), X14
	ADDPS X10, X2
	ADDPS X14, X6
	MOVUPS 48(SI)(AX*4), X11
	MOVUPS 48(DI)(AX*4), X15
	ADDPS X11, X3
	ADDPS X15, X7
	JMP more
over:
	MOVUPS X0, 0(R8)
	MOVUPS X4, 0(R9)
	MOVUPS X1, 16(R8)
	MOVUPS X5, 16(R9)
	MOVUPS X2, 32(R8)
	MOVUPS X6, 32(R9)
	MOVUPS X3, 48(R8)
	MOVUPS X7, 48(R9)
	RET

// func echoes4(x, s *float32, n int, late, early *[8]float32)
// n is a multiple of four. Taps 1 to 3 have no early part.
TEXT ·echoes4(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), DI
	MOVQ s+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ late+24(FP), AX
	MOVQ early+32(FP), BX
	MOVSS 4(AX), X5
	SHUFPS $0, X5, X5
	MOVSS 8(AX), X6
	SHUFPS $0, X6, X6
	MOVSS 12(AX), X7
	SHUFPS $0, X7, X7
	MOVSS 16(AX), X8
	SHUFPS $0, X8, X8
	MOVSS 20(AX), X9
	SHUFPS $0, X9, X9
	MOVSS 24(AX), X10
	SHUFPS $0, X10, X10
	MOVSS 28(AX), X11
	SHUFPS $0, X11, X11
	MOVSS 16(BX), X12
	SHUFPS $0, X12, X12
	MOVSS 20(BX), X13
	SHUFPS $0, X13, X13
	MOVSS 24(BX), X14
	SHUFPS $0, X14, X14
	MOVSS 28(BX), X15
	SHUFPS $0, X15, X15
more:
	SUBQ $4, CX
	JLT over
	MOVUPS -4(SI), X0
	MULPS X5, X0
	MOVUPS -8(SI), X1
	MULPS X6, X1
	ADDPS X1, X0
	MOVUPS -12(SI), X1
	MULPS X7, X1
	ADDPS X1, X0
	MOVUPS -16(SI), X1
	MOVUPS 16(SI), X2
	MULPS X8, X1
	MULPS X12, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVUPS -20(SI), X1
	MOVUPS 20(SI), X2
	MULPS X9, X1
	MULPS X13, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVUPS -24(SI), X1
	MOVUPS 24(SI), X2
	MULPS X10, X1
	MULPS X14, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVUPS -28(SI), X1
	MOVUPS 28(SI), X2
	MULPS X11, X1
	MULPS X15, X2
	ADDPS X2, X1
	ADDPS X1, X0
	MOVUPS X0, (DI)
	ADDQ $16, SI
	ADDQ $16, DI
	JMP more
over:
	RET

// func pulses5(s *[5]float32, e *float32, one, zero *int32, n int)
TEXT ·pulses5(SB), NOSPLIT, $0-40
	MOVQ s+0(FP), DI
	MOVQ e+8(FP), SI
	MOVQ one+16(FP), R8
	MOVQ zero+24(FP), R9
	MOVQ n+32(FP), CX
	MOVUPS 0(DI), X0
	MOVSS 16(DI), X1
	PCMPEQL X15, X15
	PSRLL $1, X15 // all but the sign
	XORQ DX, DX
more:
	CMPQ DX, CX
	JGE over
	MOVLQSX (R8)(DX*4), AX
	MOVLQSX (R9)(DX*4), BX
	INCQ DX
	MOVUPS (SI)(AX*4), X2
	MOVUPS (SI)(BX*4), X3
	MOVSS 16(SI)(AX*4), X4
	MOVSS 16(SI)(BX*4), X5
	MOVAPS X2, X6
	ADDPS X3, X2
	SUBPS X3, X6
	ANDPS X15, X6
	ADDPS X6, X2
	ADDPS X2, X0
	MOVAPS X4, X7
	ADDSS X5, X4
	SUBSS X5, X7
	ANDPS X15, X7
	ADDSS X7, X4
	ADDSS X4, X1
	JMP more
over:
	MOVUPS X0, 0(DI)
	MOVSS X1, 16(DI)
	RET

// func recurse4(llr, fwd, own *[112]float32, pair *[2][2][112]float32, n int) (low, high uint64)
// n is a multiple of four.
TEXT ·recurse4(SB), NOSPLIT, $0-56
	MOVQ llr+0(FP), DI
	MOVQ fwd+8(FP), SI
	MOVQ own+16(FP), DX
	MOVQ pair+24(FP), R8 // 0 0, 0 1, 1 0, 1 1 at 448 bytes each
	MOVQ n+32(FP), CX
	MOVSS (DX), X0 // f
	MOVSS X0, (SI)
	XORPS X1, X1 // g
	MOVQ CX, BX
	DECQ BX // j
	MOVSS X1, (DI)(BX*4)
	MOVQ $1, AX // i
more:
	CMPQ AX, CX
	JGE over
	MOVAPS X0, X2
	ADDSS 1344(R8)(AX*4), X0
	ADDSS 896(R8)(AX*4), X2
	MAXSS 448(R8)(AX*4), X0 // one
	MAXSS 0(R8)(AX*4), X2 // zero
	ADDSS (DX)(AX*4), X0
	SUBSS X2, X0
	MOVSS X0, (SI)(AX*4)
	ADDSS (DX)(BX*4), X1
	MOVAPS X1, X3
	ADDSS 1344(R8)(BX*4), X1
	ADDSS 448(R8)(BX*4), X3
	MAXSS 896(R8)(BX*4), X1 // one
	MAXSS 0(R8)(BX*4), X3 // zero
	SUBSS X3, X1
	MOVSS X1, -4(DI)(BX*4)
	INCQ AX
	DECQ BX
	JMP more
over:
	XORQ R9, R9
	XORQ R10, R10
	SHRQ $2, CX // groups
words:
	DECQ CX
	JLT done
	MOVQ CX, AX
	SHLQ $4, AX
	MOVUPS (DI)(AX*1), X0
	MOVUPS (SI)(AX*1), X1
	ADDPS X1, X0
	MOVUPS X0, (DI)(AX*1)
	MOVMSKPS X0, BX
	XORQ $15, BX
	SHLQ $4, R9, R10
	SHLQ $4, R9
	ORQ BX, R9
	JMP words
done:
	MOVQ R9, low+40(FP)
	MOVQ R10, high+48(FP)
	RET

// func heads8(words *[8]uint32, e *float32, one, zero *int32)
TEXT ·heads8(SB), NOSPLIT, $0-32
	MOVQ words+0(FP), DI
	MOVQ e+8(FP), SI
	MOVQ one+16(FP), R8
	MOVQ zero+24(FP), R9
	XORPS X0, X0
	XORPS X1, X1
	XORQ CX, CX
more:
	MOVLQSX (R8)(CX*4), AX
	MOVLQSX (R9)(CX*4), BX
	MOVUPS (SI)(BX*4), X2
	MOVUPS 16(SI)(BX*4), X3
	MOVUPS (SI)(AX*4), X4
	MOVUPS 16(SI)(AX*4), X5
	CMPPS X4, X2, $1 // zero < one
	CMPPS X5, X3, $1
	PADDL X0, X0
	PADDL X1, X1
	PSUBL X2, X0
	PSUBL X3, X1
	INCQ CX
	CMPQ CX, $32
	JLT more
	MOVUPS X0, (DI)
	MOVUPS X1, 16(DI)
	RET

// func addPulse12(mr, mi *float32, v *[2][12]float32, ar, ai float32)
TEXT ·addPulse12(SB), NOSPLIT, $0-32
	MOVQ mr+0(FP), DI
	MOVQ mi+8(FP), SI
	MOVQ v+16(FP), DX
	MOVSS ar+24(FP), X14
	SHUFPS $0, X14, X14
	MOVSS ai+28(FP), X15
	SHUFPS $0, X15, X15
	MOVUPS 0(DX), X0
	MOVUPS 48(DX), X1
	MOVAPS X0, X2
	MOVAPS X1, X3
	MULPS X14, X0
	MULPS X15, X1
	SUBPS X1, X0
	MULPS X14, X3
	MULPS X15, X2
	ADDPS X2, X3
	MOVUPS 0(DI), X4
	MOVUPS 0(SI), X5
	ADDPS X0, X4
	ADDPS X3, X5
	MOVUPS X4, 0(DI)
	MOVUPS X5, 0(SI)
	MOVUPS 16(DX), X0
	MOVUPS 64(DX), X1
	MOVAPS X0, X2
	MOVAPS X1, X3
	MULPS X14, X0
	MULPS X15, X1
	SUBPS X1, X0
	MULPS X14, X3
	MULPS X15, X2
	ADDPS X2, X3
	MOVUPS 16(DI), X4
	MOVUPS 16(SI), X5
	ADDPS X0, X4
	ADDPS X3, X5
	MOVUPS X4, 16(DI)
	MOVUPS X5, 16(SI)
	MOVUPS 32(DX), X0
	MOVUPS 80(DX), X1
	MOVAPS X0, X2
	MOVAPS X1, X3
	MULPS X14, X0
	MULPS X15, X1
	SUBPS X1, X0
	MULPS X14, X3
	MULPS X15, X2
	ADDPS X2, X3
	MOVUPS 32(DI), X4
	MOVUPS 32(SI), X5
	ADDPS X0, X4
	ADDPS X3, X5
	MOVUPS X4, 32(DI)
	MOVUPS X5, 32(SI)
	RET

// SUM2 adds four numbers as doubles to the even and odd sums in acc.
#define SUM2(x, acc) \
	CVTPS2PD x, X15 \
	ADDPD X15, acc \
	MOVHLPS x, x \
	CVTPS2PD x, x \
	ADDPD x, acc

// CROSS adds conj(c+id) * (X6+iX7), c and d offset bytes into the model, to
// the sums in accR and accI.
#define CROSS(offset, accR, accI) \
	MOVUPS offset(SI), X8 \
	MOVUPS offset(DX), X9 \
	MOVAPS X8, X10 \
	MULPS X6, X10 \
	MOVAPS X9, X11 \
	MULPS X7, X11 \
	ADDPS X11, X10 \
	MULPS X7, X8 \
	MULPS X6, X9 \
	SUBPS X9, X8 \
	SUM2(X10, accR) \
	SUM2(X8, accI)

// TURNED is CROSS with the other factor conjugate instead.
#define TURNED(offset, accR, accI) \
	MOVUPS offset(SI), X8 \
	MOVUPS offset(DX), X9 \
	MOVAPS X8, X10 \
	MULPS X6, X10 \
	MOVAPS X9, X11 \
	MULPS X7, X11 \
	ADDPS X11, X10 \
	MULPS X7, X8 \
	MULPS X6, X9 \
	SUBPS X8, X9 \
	SUM2(X10, accR) \
	SUM2(X9, accI)

// func fit4(f *fitSums, mr, mi, re, im *float32, n int)
// n is a multiple of four.
TEXT ·fit4(SB), NOSPLIT, $0-48
	MOVQ f+0(FP), DI
	MOVQ mr+8(FP), SI
	MOVQ mi+16(FP), DX
	MOVQ re+24(FP), R8
	MOVQ im+32(FP), R9
	MOVQ n+40(FP), CX
	MOVUPS 0(DI), X0
	MOVUPS 16(DI), X1
	MOVUPS 32(DI), X2
	MOVUPS 48(DI), X3
	MOVUPS 64(DI), X4
	MOVUPS 80(DI), X5
	MOVQ CX, BX
received:
	SUBQ $4, BX
	JLT next
	MOVUPS (R8), X6
	MOVUPS (R9), X7
	CROSS(8, X0, X1)
	CROSS(4, X2, X3)
	CROSS(0, X4, X5)
	ADDQ $16, SI
	ADDQ $16, DX
	ADDQ $16, R8
	ADDQ $16, R9
	JMP received
next:
	MOVUPS X0, 0(DI)
	MOVUPS X1, 16(DI)
	MOVUPS X2, 32(DI)
	MOVUPS X3, 48(DI)
	MOVUPS X4, 64(DI)
	MOVUPS X5, 80(DI)
	MOVUPS 96(DI), X0
	MOVUPS 112(DI), X1
	MOVUPS 128(DI), X2
	MOVUPS 144(DI), X3
	MOVUPS 160(DI), X4
	MOVUPS 176(DI), X5
	MOVQ mr+8(FP), SI
	MOVQ mi+16(FP), DX
model:
	SUBQ $4, CX
	JLT over
	MOVUPS 8(SI), X6
	MOVUPS 8(DX), X7
	TURNED(8, X0, X1)
	TURNED(4, X2, X3)
	TURNED(0, X4, X5)
	ADDQ $16, SI
	ADDQ $16, DX
	JMP model
over:
	MOVUPS X0, 96(DI)
	MOVUPS X1, 112(DI)
	MOVUPS X2, 128(DI)
	MOVUPS X3, 144(DI)
	MOVUPS X4, 160(DI)
	MOVUPS X5, 176(DI)
	RET

// func takeAway4(mr, mi, re, im *float32, n int, w *[3]complex64)
// n is a multiple of four.
TEXT ·takeAway4(SB), NOSPLIT, $0-48
	MOVQ mr+0(FP), SI
	MOVQ mi+8(FP), DX
	MOVQ re+16(FP), R8
	MOVQ im+24(FP), R9
	MOVQ n+32(FP), CX
	MOVQ w+40(FP), AX
	MOVSS 0(AX), X10
	SHUFPS $0, X10, X10
	MOVSS 4(AX), X11
	SHUFPS $0, X11, X11
	MOVSS 8(AX), X12
	SHUFPS $0, X12, X12
	MOVSS 12(AX), X13
	SHUFPS $0, X13, X13
	MOVSS 16(AX), X14
	SHUFPS $0, X14, X14
	MOVSS 20(AX), X15
	SHUFPS $0, X15, X15
more:
	SUBQ $4, CX
	JLT over
	MOVUPS (R8), X0
	MOVUPS (R9), X1
	MOVUPS 8(SI), X2
	MOVUPS 8(DX), X3
	MOVAPS X2, X4
	MOVAPS X3, X5
	MULPS X10, X2
	MULPS X11, X3
	SUBPS X3, X2
	SUBPS X2, X0
	MULPS X10, X5
	MULPS X11, X4
	ADDPS X4, X5
	SUBPS X5, X1
	MOVUPS 4(SI), X2
	MOVUPS 4(DX), X3
	MOVAPS X2, X4
	MOVAPS X3, X5
	MULPS X12, X2
	MULPS X13, X3
	SUBPS X3, X2
	SUBPS X2, X0
	MULPS X12, X5
	MULPS X13, X4
	ADDPS X4, X5
	SUBPS X5, X1
	MOVUPS 0(SI), X2
	MOVUPS 0(DX), X3
	MOVAPS X2, X4
	MOVAPS X3, X5
	MULPS X14, X2
	MULPS X15, X3
	SUBPS X3, X2
	SUBPS X2, X0
	MULPS X14, X5
	MULPS X15, X4
	ADDPS X4, X5
	SUBPS X5, X1
	MOVUPS X0, (R8)
	MOVUPS X1, (R9)
	ADDQ $16, SI
	ADDQ $16, DX
	ADDQ $16, R8
	ADDQ $16, R9
	JMP more
over:
	RET
