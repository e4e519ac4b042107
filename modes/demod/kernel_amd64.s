#include "textflag.h"

// SSE2 is part of every amd64 processor, so nothing here is asked of the
// machine. The operations and their order are those of kernel.go: results are
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

// func loud4(e *float32, n, p1, p2, p3 int, threshold float32) int
// n is a multiple of four.
TEXT ·loud4(SB), NOSPLIT, $0-56
	MOVQ e+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ p1+16(FP), AX
	LEAQ (SI)(AX*4), R8
	MOVQ p2+24(FP), AX
	LEAQ (SI)(AX*4), R9
	MOVQ p3+32(FP), AX
	LEAQ (SI)(AX*4), R10
	MOVSS threshold+40(FP), X15
	SHUFPS $0, X15, X15
	XORQ BX, BX
next:
	CMPQ BX, CX
	JGE end
	MOVUPS (SI)(BX*4), X0
	MOVUPS (R8)(BX*4), X1
	ADDPS X1, X0
	MOVUPS (R9)(BX*4), X1
	ADDPS X1, X0
	MOVUPS (R10)(BX*4), X1
	ADDPS X1, X0
	MOVAPS X15, X1
	CMPPS X0, X1, $2 // threshold <= sum
	MOVMSKPS X1, AX
	TESTL AX, AX
	JNE end
	ADDQ $4, BX
	JMP next
end:
	MOVQ BX, ret+48(FP)
	RET

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
