//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// In all of it AX is the index, R9 a place and R8 a table, a reference or a
// code.

// UPPER looks for place R9 in the upper cells of table R8: R12 becomes the
// number of the lower cell, R13 the mask of the shift there, 0 if that cell is
// the one of a block before. It uses CX, DX, SI, R10 and R11.
#define UPPER \
	MOVL R9, DX; \
	SHRL $12, DX; \
	SHLL $4, R8; \
	ORL R8, DX; \
	LEAQ (DX)(DX*2), DX; \
	MOVQ index_upper(AX), SI; \
	LEAQ (SI)(DX*4), SI; \
	MOVQ (SI), R10; \
	MOVL R9, CX; \
	SHRL $6, CX; \
	BTQ CX, R10; \
	SBBL R13, R13; \
	NOTL CX; \
	SHLQ CX, R10; \
	POPCNTQ R10, R12; \
	ADDL 8(SI), R12

// LOWER looks in lower cell R12 for the place whose inverse is CX: R12 becomes
// the number of the entry. It uses SI and R10.
#define LOWER \
	LEAQ (R12)(R12*2), R12; \
	MOVQ index_lower(AX), SI; \
	LEAQ (SI)(R12*4), SI; \
	MOVQ (SI), R10; \
	SHLQ CX, R10; \
	POPCNTQ R10, R12; \
	ADDL 8(SI), R12

// FLAT looks for place R9 in the lower cells from R8 on: R12 becomes the
// number of the entry. It uses CX, SI and R10.
#define FLAT \
	MOVL R9, R12; \
	SHRL $6, R12; \
	ADDL R8, R12; \
	MOVL R9, CX; \
	NOTL CX; \
	LOWER

#define SHIFT \
	MOVL R9, CX; \
	NOTL CX; \
	ANDL R13, CX

// CODE loads the code of entry R12 into R8.
#define CODE \
	MOVQ index_codes(AX), SI; \
	IMULL index_width(AX), R12; \
	MOVL (SI)(R12*1), R8; \
	ANDL index_mask(AX), R8

// LIST looks for place R9 in the list of reference R8, the code of which it
// leaves there. X7 is 0. Of the 32 places that it compares it counts those
// that the list has.
#define LIST \
	MOVL R8, CX; \
	SHRL $const_placesShift, CX; \
	ANDL $31, CX; \
	ANDL $const_offsetMax, R8; \
	MOVQ index_lists(AX), SI; \
	LEAQ (SI)(R8*8), SI; \
	MOVQ R9, X0; \
	PSHUFLW $0, X0, X0; \
	PUNPCKLQDQ X0, X0; \
	MOVOU (SI), X1; \
	MOVOU 16(SI), X2; \
	MOVOU 32(SI), X3; \
	MOVOU 48(SI), X4; \
	PSUBUSW X0, X1; \
	PSUBUSW X0, X2; \
	PSUBUSW X0, X3; \
	PSUBUSW X0, X4; \
	PCMPEQW X7, X1; \
	PCMPEQW X7, X2; \
	PCMPEQW X7, X3; \
	PCMPEQW X7, X4; \
	PACKSSWB X2, X1; \
	PACKSSWB X4, X3; \
	PMOVMSKB X1, DX; \
	PMOVMSKB X3, R10; \
	SHLL $16, R10; \
	ORL R10, DX; \
	MOVL $-1, R11; \
	SHLL CX, R11; \
	NOTL R11; \
	ANDL R11, DX; \
	POPCNTL DX, DX; \
	IMULL index_width(AX), DX; \
	LEAQ (SI)(CX*2), SI; \
	MOVL (SI)(DX*1), R8; \
	ANDL index_mask(AX), R8

// func asmFirst(x *index, hi uint64) uint64
TEXT ·asmFirst(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ x+0(FP), AX
	MOVQ hi+8(FP), BX
	MOVQ index_top(AX), SI
	MOVQ BX, DX
	SHRQ $48, DX
	MOVL (SI)(DX*4), R8
	MOVQ BX, R9
	SHRQ $32, R9
	MOVWLZX R9, R9
	SHRQ $16, BX
	CMPB index_dense(AX), $0
	JNE dense
	BTRL $31, R8
	JCC upper
	FLAT
	MOVQ index_refs(AX), SI
	MOVL (SI)(R12*4), R8
	MOVWLZX BX, R9
	MOVL R8, DX
	SHRL $const_kindShift, DX
	CMPL DX, $const_kindTable
	JEQ table
	JHI other
	TESTL DX, DX
	JEQ done
	PXOR X7, X7
	LIST
done:
	MOVQ R8, ret+16(FP)
	RET
table:
	ANDL $const_numberMax, R8
	UPPER
	SHIFT
	LOWER
	CODE
	MOVQ R8, ret+16(FP)
	RET
other:
	BTSQ $32, R8
	MOVQ R8, ret+16(FP)
	RET
upper:
	UPPER
	SHIFT
	LOWER
	MOVQ index_refs(AX), SI
	MOVL (SI)(R12*4), R8
	MOVWLZX BX, R9
	MOVL R8, DX
	SHRL $const_kindShift, DX
	CMPL DX, $const_kindTable
	JEQ table
	JHI other
	TESTL DX, DX
	JEQ done
	PXOR X7, X7
	LIST
	MOVQ R8, ret+16(FP)
	RET
dense:
	MOVL R8, DX
	SARL $31, DX
	ANDL DX, R9
	BTRL $31, R8
	ADDL R9, R8
	MOVQ index_refs(AX), SI
	MOVL (SI)(R8*4), R8
	MOVWLZX BX, R9
	MOVL R8, DX
	SHRL $const_kindShift, DX
	CMPL DX, $const_kindTable
	JEQ flat
	JHI other
	TESTL DX, DX
	JEQ done
	PXOR X7, X7
	LIST
	MOVQ R8, ret+16(FP)
	RET
flat:
	ANDL $const_numberMax, R8
	FLAT
	MOVQ index_codes(AX), SI
	MOVL (SI)(R12*4), R8
	MOVQ R8, ret+16(FP)
	RET

// func compactRefs(x *index, keys *[batch]Key, refs *[batch]uint32)
// The mask of the shift of a lower cell is the sign of its number meanwhile.
TEXT ·compactRefs(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ x+0(FP), AX
	MOVQ keys+8(FP), BX
	MOVQ refs+16(FP), DI
	XORL R15, R15
upper:
	MOVQ R15, R9
	SHLQ $4, R9
	MOVQ (BX)(R9*1), R9
	MOVQ index_top(AX), SI
	MOVQ R9, DX
	SHRQ $48, DX
	MOVL (SI)(DX*4), R8
	SHRQ $32, R9
	MOVWLZX R9, R9
	BTRL $31, R8
	JCS flat
	UPPER
	SHLL $31, R13
	ORL R13, R12
next:
	MOVL R12, (DI)(R15*4)
	INCL R15
	CMPL R15, $const_batch
	JLO upper
	XORL R15, R15
lower:
	MOVQ R15, R9
	SHLQ $4, R9
	MOVL 4(BX)(R9*1), R9
	MOVL (DI)(R15*4), R12
	MOVL R12, R13
	SARL $31, R13
	BTRL $31, R12
	SHIFT
	LOWER
	MOVQ index_refs(AX), SI
	MOVL (SI)(R12*4), R8
	MOVL R8, (DI)(R15*4)
	INCL R15
	CMPL R15, $const_batch
	JLO lower
	RET
flat:
	MOVL R9, R12
	SHRL $6, R12
	ADDL R8, R12
	BTSL $31, R12
	JMP next

// func denseRefs(x *index, keys *[batch]Key, refs *[batch]uint32)
TEXT ·denseRefs(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ x+0(FP), AX
	MOVQ keys+8(FP), BX
	MOVQ refs+16(FP), DI
	XORL R15, R15
	MOVQ index_refs(AX), R11
	MOVQ index_top(AX), SI
loop:
	MOVQ R15, R9
	SHLQ $4, R9
	MOVQ (BX)(R9*1), R9
	MOVQ R9, DX
	SHRQ $48, DX
	MOVL (SI)(DX*4), R8
	SHRQ $32, R9
	MOVWLZX R9, R9
	MOVL R8, DX
	SARL $31, DX
	ANDL DX, R9
	BTRL $31, R8
	ADDL R9, R8
	MOVL (R11)(R8*4), R8
	MOVL R8, (DI)(R15*4)
	INCL R15
	CMPL R15, $const_batch
	JLO loop
	RET

// func listCodes(x *index, keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int)
TEXT ·listCodes(SB), NOSPLIT|NOFRAME, $0-40
	MOVQ x+0(FP), AX
	MOVQ keys+8(FP), BX
	MOVQ refs+16(FP), DI
	MOVQ which+24(FP), R15
	MOVQ n+32(FP), R12
	TESTQ R12, R12
	JLE done
	ADDQ R15, R12
	PXOR X7, X7
loop:
	MOVBLZX (R15), R13
	MOVL (DI)(R13*4), R8
	MOVQ R13, R9
	SHLQ $4, R9
	MOVWLZX 2(BX)(R9*1), R9
	LIST
	MOVL R8, (DI)(R13*4)
	INCQ R15
	CMPQ R15, R12
	JLO loop
done:
	RET

// func tableCodes(x *index, keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int)
TEXT ·tableCodes(SB), NOSPLIT, $8-40
	MOVQ x+0(FP), AX
	MOVQ keys+8(FP), BX
	MOVQ refs+16(FP), DI
	MOVQ which+24(FP), R15
	MOVQ n+32(FP), R12
	TESTQ R12, R12
	JLE done
	ADDQ R15, R12
	MOVQ R12, end-8(SP)
upper:
	MOVBLZX (R15), R9
	MOVL (DI)(R9*4), R8
	SHLQ $4, R9
	MOVWLZX 2(BX)(R9*1), R9
	ANDL $const_numberMax, R8
	UPPER
	SHLL $31, R13
	ORL R13, R12
	MOVBLZX (R15), R9
	MOVL R12, (DI)(R9*4)
	INCQ R15
	CMPQ R15, end-8(SP)
	JLO upper
	MOVQ which+24(FP), R15
lower:
	MOVBLZX (R15), R8
	MOVL (DI)(R8*4), R12
	MOVQ R8, R9
	SHLQ $4, R9
	MOVWLZX 2(BX)(R9*1), R9
	MOVL R12, R13
	SARL $31, R13
	BTRL $31, R12
	SHIFT
	LOWER
	MOVL R12, (DI)(R8*4)
	INCQ R15
	CMPQ R15, end-8(SP)
	JLO lower
	MOVQ which+24(FP), R15
codes:
	MOVBLZX (R15), R9
	MOVL (DI)(R9*4), R12
	CODE
	MOVL R8, (DI)(R9*4)
	INCQ R15
	CMPQ R15, end-8(SP)
	JLO codes
done:
	RET

// func denseCodes(x *index, keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int)
TEXT ·denseCodes(SB), NOSPLIT|NOFRAME, $0-40
	MOVQ x+0(FP), AX
	MOVQ keys+8(FP), BX
	MOVQ refs+16(FP), DI
	MOVQ which+24(FP), R15
	MOVQ n+32(FP), R13
	TESTQ R13, R13
	JLE done
	ADDQ R15, R13
cells:
	MOVBLZX (R15), R11
	MOVL (DI)(R11*4), R8
	MOVQ R11, R9
	SHLQ $4, R9
	MOVWLZX 2(BX)(R9*1), R9
	ANDL $const_numberMax, R8
	FLAT
	MOVL R12, (DI)(R11*4)
	INCQ R15
	CMPQ R15, R13
	JLO cells
	MOVQ which+24(FP), R15
	MOVQ index_codes(AX), SI
codes:
	MOVBLZX (R15), R11
	MOVL (DI)(R11*4), R12
	MOVL (SI)(R12*4), R8
	MOVL R8, (DI)(R11*4)
	INCQ R15
	CMPQ R15, R13
	JLO codes
done:
	RET

// func cpuid(leaf uint32) (b, c uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-16
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL BX, b+8(FP)
	MOVL CX, c+12(FP)
	RET

// func xcr0() uint32
TEXT ·xcr0(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET
