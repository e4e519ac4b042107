//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The stages of a batch; see lookup. AX is the index, SI the keys, DI the
// codes, R8 how many, CX how many are done.
#define ARGUMENTS \
	MOVQ x+0(FP), AX; \
	MOVQ keys_base+8(FP), SI; \
	MOVQ codes_base+32(FP), DI; \
	MOVQ codes_len+40(FP), R8; \
	XORL CX, CX

// func wordStage(x *index, keys, codes []uint32)
TEXT ·wordStage(SB), NOSPLIT|NOFRAME, $0-56
	ARGUMENTS
	MOVQ index_top(AX), BX
	MOVQ index_bits(AX), R9
	MOVQ index_ends(AX), R10
	CMPQ CX, R8
	JGE done
loop:
	MOVWLZX 2(SI)(CX*4), DX
	MOVL (SI)(CX*4), R11
	MOVWLZX (BX)(DX*2), DX
	SHRL $14, R11
	ANDL $3, R11
	LEAQ (R11)(DX*4), DX
	PREFETCHT0 (R9)(DX*8)
	PREFETCHT0 (R10)(DX*4)
	MOVL DX, (DI)(CX*4)
	INCQ CX
	CMPQ CX, R8
	JLT loop
done:
	RET

// func positionStage(x *index, keys, codes []uint32)
TEXT ·positionStage(SB), NOSPLIT|NOFRAME, $0-56
	ARGUMENTS
	MOVQ index_bits(AX), R9
	MOVQ index_ends(AX), R10
	MOVQ index_entries(AX), R12
	MOVL index_width(AX), R13
	CMPQ CX, R8
	JGE done
loop:
	MOVL (DI)(CX*4), DX
	MOVL (SI)(CX*4), R11
	SHRL $8, R11
	SHRXQ R11, (R9)(DX*8), R11
	POPCNTQ R11, R11
	MOVL (R10)(DX*4), DX
	SUBL R11, DX
	MOVL DX, (DI)(CX*4)
	IMULQ R13, DX
	PREFETCHT0 (R12)(DX*1)
	INCQ CX
	CMPQ CX, R8
	JLT loop
done:
	RET

// func directStage(x *index, keys, codes []uint32)
TEXT ·directStage(SB), NOSPLIT|NOFRAME, $0-56
	ARGUMENTS
	MOVQ index_entries(AX), R12
	MOVL index_width(AX), R13
	CMPQ CX, R8
	JGE done
loop:
	MOVL (SI)(CX*4), DX
	SHRL $8, DX
	MOVL DX, (DI)(CX*4)
	IMULQ R13, DX
	PREFETCHT0 (R12)(DX*1)
	INCQ CX
	CMPQ CX, R8
	JLT loop
done:
	RET

// func entryStage(x *index, codes []uint32) (missed, deep int)
// Codes are at most all ones; a carry says that one is less than that, or than 1.
TEXT ·entryStage(SB), NOSPLIT|NOFRAME, $0-48
	MOVQ x+0(FP), AX
	MOVQ codes_base+8(FP), DI
	MOVQ codes_len+16(FP), R8
	XORL CX, CX
	MOVQ index_entries(AX), R12
	MOVL index_width(AX), R13
	MOVL index_mask(AX), BX
	XORL R9, R9
	MOVQ R8, R10
	CMPQ CX, R8
	JGE done
loop:
	MOVL (DI)(CX*4), DX
	IMULQ R13, DX
	MOVL (R12)(DX*1), DX
	ANDL BX, DX
	MOVL DX, (DI)(CX*4)
	CMPL DX, $1
	ADCQ $0, R9
	CMPL DX, BX
	SBBQ $0, R10
	INCQ CX
	CMPQ CX, R8
	JLT loop
done:
	MOVQ R9, missed+32(FP)
	MOVQ R10, deep+40(FP)
	RET

// func cpuid(leaf uint32) (a, b, c uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-20
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	RET
