//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// One lookup. N is the inverse of the first half of an address, so that what
// the shifts need is a rotation away.

// CELL looks in the cell of offset DX in the array at SI for the place of which
// the lowest bits of the inverse are in R9, leaves its bits shifted there and
// makes R8 the number of what is found.
#define CELL \
	LEAQ (DX)(DX*2), DX; \
	SHLXQ R9, (SI)(DX*4), R9; \
	POPCNTQ R9, R8; \
	ADDL 8(SI)(DX*4), R8

// WIDELIST is LIST for reference R8 and the place in the upper half of BX.
#define WIDELIST \
	MOVQ index_lists(AX), SI; \
	RORXL $const_placesShift, R8, CX; \
	ANDL $31, CX; \
	ANDL $const_offsetMax, R8; \
	LEAQ (SI)(R8*8), SI; \
	SHRL $16, BX; \
	VPBROADCASTW BX, Z16; \
	VPCMPUW $5, (SI), Z16, K1; \
	KMOVD K1, DX; \
	BZHIL CX, DX, DX; \
	POPCNTL DX, DX; \
	IMULL index_width(AX), DX; \
	LEAQ (SI)(CX*2), SI; \
	MOVL (SI)(DX*1), R8; \
	ANDL index_mask(AX), R8

// func wideFirst(x *index, hi uint64) uint64
TEXT ·wideFirst(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ x+0(FP), AX
	MOVQ hi+8(FP), BX
	MOVQ index_top(AX), SI
	RORXQ $48, BX, DX
	MOVWLZX DX, DX
	MOVL (SI)(DX*4), R8
	MOVQ BX, CX
	NOTQ CX
	CMPB index_dense(AX), $0
	JNE dense
	MOVQ index_lower(AX), R11
	RORXQ $32, CX, R9
	BTRL $31, R8
	JCC upper
	RORXQ $38, BX, DX
	ANDL $1023, DX
	ADDL R8, DX
	MOVQ R11, SI
	CELL
ref:
	MOVQ index_refs(AX), SI
	MOVL (SI)(R8*4), R8
	TESTL R8, R8
	JS table
	BTL $const_kindShift, R8
	JCC done
	WIDELIST
done:
	MOVQ R8, ret+16(FP)
	RET
table:
	BTL $const_kindShift, R8
	JCS other
	SHLL $4, R8
	RORXL $28, BX, DX
	ANDL $15, DX
	ORL R8, DX
	RORXL $22, CX, R9
	MOVQ index_upper(AX), SI
	CELL
	SARQ $63, R9
	RORXL $16, CX, CX
	ANDL CX, R9
	MOVL R8, DX
	MOVQ R11, SI
	CELL
	IMULL index_width(AX), R8
	MOVQ index_codes(AX), SI
	MOVL (SI)(R8*1), R8
	ANDL index_mask(AX), R8
	MOVQ R8, ret+16(FP)
	RET
other:
	BTSQ $32, R8
	MOVQ R8, ret+16(FP)
	RET
upper:
	SHLL $4, R8
	RORXQ $44, BX, DX
	ANDL $15, DX
	ORL R8, DX
	MOVQ R9, R10
	RORXQ $38, CX, R9
	MOVQ index_upper(AX), SI
	CELL
	SARQ $63, R9
	ANDL R10, R9
	MOVL R8, DX
	MOVQ R11, SI
	CELL
	JMP ref
dense:
	RORXQ $32, BX, R9
	MOVWLZX R9, R9
	MOVL R8, DX
	SARL $31, DX
	ANDL DX, R9
	BTRL $31, R8
	ADDL R9, R8
	MOVQ index_refs(AX), SI
	MOVL (SI)(R8*4), R8
	TESTL R8, R8
	JS flat
	BTL $const_kindShift, R8
	JCC done
	WIDELIST
	MOVQ R8, ret+16(FP)
	RET
flat:
	BTL $const_kindShift, R8
	JCS other
	ANDL $const_numberMax, R8
	MOVL BX, DX
	SHRL $22, DX
	ADDL R8, DX
	RORXL $16, CX, R9
	MOVQ index_lower(AX), SI
	CELL
	MOVQ index_codes(AX), SI
	MOVL (SI)(R8*4), R8
	MOVQ R8, ret+16(FP)
	RET

// A batch in steps of 16 lookups where vectors do the arithmetic, and one
// lookup at a time, but with few instructions each, where every lookup loads
// from somewhere else. (To gather takes longer than as many loads do, with the
// one exception of words that are needed in a vector.)
//
// AX is the index, BX the keys, DI the codes, R8 how many of them there are, a
// multiple of 16. Of the vector registers only those are used that older code
// does not know, so that nothing has to be cleaned up for it.
//
// The frame has four arrays of words, one word for each lookup.
#define ARRAY (4*const_wide)
#define W0(I) w-(4*ARRAY)(SP)(I*4)
#define W1(I) w-(3*ARRAY)(SP)(I*4)
#define W2(I) w-(2*ARRAY)(SP)(I*4)
#define W3(I) w-(1*ARRAY)(SP)(I*4)

// Which words of eight first halves of keys and eight others are the upper
// ones of the first halves; VPUNPCKLQDQ leaves them in this order.
DATA upperWords<>+0(SB)/8, $0x0000000500000001
DATA upperWords<>+8(SB)/8, $0x0000000d00000009
DATA upperWords<>+16(SB)/8, $0x0000000700000003
DATA upperWords<>+24(SB)/8, $0x0000000f0000000b
DATA upperWords<>+32(SB)/8, $0x0000001500000011
DATA upperWords<>+40(SB)/8, $0x0000001d00000019
DATA upperWords<>+48(SB)/8, $0x0000001700000013
DATA upperWords<>+56(SB)/8, $0x0000001f0000001b
GLOBL upperWords<>(SB), RODATA|NOPTR, $64

#define CONST(N, Z) \
	MOVL $N, DX; \
	VPBROADCASTD DX, Z

// HALVES makes of the 16 keys at R9 the vector OUT of the words of their first
// halves that PICK tells.
#define HALVES(PICK, OUT) \
	VMOVDQU64 (R9), Z16; \
	VPUNPCKLQDQ 64(R9), Z16, Z16; \
	VMOVDQU64 128(R9), Z17; \
	VPUNPCKLQDQ 192(R9), Z17, Z17; \
	VMOVDQA64 PICK, OUT; \
	VPERMI2D Z17, Z16, OUT

// PREPARE loads arguments and constants.
#define PREPARE \
	MOVQ x+0(FP), AX; \
	MOVQ keys+8(FP), BX; \
	MOVQ codes+16(FP), DI; \
	MOVQ n+24(FP), R8; \
	VMOVDQU64 upperWords<>(SB), Z31; \
	VPTERNLOGD $0xff, Z28, Z28, Z28; \
	VPADDD Z28, Z31, Z30; \
	CONST(0x7fffffff, Z29); \
	CONST(const_kindList, Z27); \
	CONST(const_kindTable, Z26); \
	CONST(const_kindOther, Z25)

// TOPS makes Z18 the upper words of 16 keys and Z19 what top says of them.
#define TOPS \
	HALVES(Z31, Z18); \
	VPSRLD $16, Z18, Z20; \
	VPXORD Z19, Z19, Z19; \
	KXNORW K1, K1, K1; \
	VPGATHERDD (SI)(Z20*4), K1, Z19

// TIMES3 makes words into offsets of cells in words.
#define TIMES3(IN, OUT) \
	VPADDD IN, IN, OUT; \
	VPADDD IN, OUT, OUT

// SORT compresses the references of a step, Z18, and the lower words of the
// first halves, Z19, by kind, K1 those of lists, K2 those of tables, and leaves
// those of lists in W2 and W3, R12 becoming their number.
#define SORT \
	HALVES(Z30, Z19); \
	VMOVDQU32 (DI)(CX*4), Z18; \
	VPSRLD $const_kindShift, Z18, Z20; \
	VPCMPEQD Z27, Z20, K1; \
	VPCMPEQD Z26, Z20, K2; \
	VPCMPEQD Z25, Z20, K3; \
	KMOVW K3, R10; \
	MOVW R10, (SI); \
	VPCOMPRESSD Z18, K1, Z20; \
	VPCOMPRESSD Z19, K1, Z21; \
	VMOVDQU32 Z20, W2(R12); \
	VMOVDQU32 Z21, W3(R12); \
	KMOVW K1, R10; \
	POPCNTL R10, R10; \
	ADDQ R10, R12

// LISTS replaces the R12 references in W2 by codes.
#define LISTS \
	MOVQ index_lists(AX), SI; \
	MOVL index_width(AX), R11; \
	XORL CX, CX; \
	JMP listsTest; \
lists: \
	MOVL W2(CX), DX; \
	RORXL $const_placesShift, DX, R10; \
	ANDL $31, R10; \
	ANDL $const_offsetMax, DX; \
	LEAQ (SI)(DX*8), DX; \
	VPBROADCASTW w-(1*ARRAY)+2(SP)(CX*4), Z16; \
	VPCMPUW $5, (DX), Z16, K1; \
	KMOVD K1, R9; \
	LEAQ (DX)(R10*2), DX; \
	BZHIL R10, R9, R9; \
	POPCNTL R9, R9; \
	IMULL R11, R9; \
	MOVL (DX)(R9*1), R9; \
	MOVL R9, W2(CX); \
	INCQ CX; \
listsTest: \
	CMPQ CX, R12; \
	JLO lists

// RESULTS puts the codes found into the places of their references, and counts
// those that are 0 in R12 and those above the limit in R13.
#define RESULTS \
	MOVL limit+32(FP), DX; \
	VPBROADCASTD DX, Z23; \
	MOVL index_mask(AX), DX; \
	VPBROADCASTD DX, Z24; \
	XORL CX, CX; \
	XORL R12, R12; \
	XORL R13, R13; \
	XORL R9, R9; \
	XORL R11, R11; \
results: \
	VMOVDQU32 (DI)(CX*4), Z18; \
	VPSRLD $const_kindShift, Z18, Z20; \
	VPCMPEQD Z27, Z20, K1; \
	VPCMPEQD Z26, Z20, K2; \
	KORW K1, K2, K3; \
	VMOVDQU32 W2(R9), Z16; \
	VMOVDQU32 W0(R11), Z17; \
	VPEXPANDD Z16, K1, Z18; \
	VPEXPANDD Z17, K2, Z18; \
	VPANDD Z24, Z18, K3, Z18; \
	VMOVDQU32 Z18, (DI)(CX*4); \
	KMOVW K1, DX; \
	POPCNTL DX, DX; \
	ADDQ DX, R9; \
	KMOVW K2, DX; \
	POPCNTL DX, DX; \
	ADDQ DX, R11; \
	VPTESTNMD Z18, Z18, K1; \
	VPCMPUD $6, Z23, Z18, K2; \
	KMOVW K1, DX; \
	POPCNTL DX, DX; \
	ADDQ DX, R12; \
	KMOVW K2, DX; \
	POPCNTL DX, DX; \
	ADDQ DX, R13; \
	ADDQ $16, CX; \
	CMPQ CX, R8; \
	JLO results; \
	MOVQ R12, zeros+48(FP); \
	MOVQ R13, odd+56(FP)

// func wideCompact(x *index, keys *Key, codes *uint32, n int, limit uint32, deep *[wide / 64]uint64) (zeros, odd int)
TEXT ·wideCompact(SB), 0, $2048-64
	PREPARE
	// Lower cells of the second digit: their offsets in W0, the inverse of the
	// places in W1.
	MOVQ index_top(AX), SI
	MOVQ BX, R9
	XORL CX, CX
cells:
	TOPS
	VPMOVD2M Z19, K2
	KNOTW K2, K2
	VPANDD Z29, Z19, Z19
	VPSLLD $16, Z18, Z20
	VPSRLD $22, Z20, Z20
	VPADDD Z20, Z19, Z19
	TIMES3(Z19, Z20)
	VPXORD Z28, Z18, Z18
	VMOVDQU32 Z20, W0(CX)
	VMOVDQU32 Z18, W1(CX)
	KORTESTW K2, K2
	JNE upper
cellsNext:
	ADDQ $256, R9
	ADDQ $16, CX
	CMPQ CX, R8
	JLO cells

	MOVQ index_lower(AX), R11
	MOVQ index_refs(AX), R13
	XORL CX, CX
refs:
#define REF(I) \
	MOVL w-(4*ARRAY)+I(SP)(CX*4), DX; \
	MOVL w-(3*ARRAY)+I(SP)(CX*4), R10; \
	SHLXQ R10, (R11)(DX*4), R12; \
	POPCNTQ R12, R12; \
	ADDL 8(R11)(DX*4), R12; \
	MOVL (R13)(R12*4), R12; \
	MOVL R12, I(DI)(CX*4)
	REF(0)
	REF(4)
	REF(8)
	REF(12)
	ADDQ $4, CX
	CMPQ CX, R8
	JLO refs

	// Upper cells of the third digit: offsets in W0, the inverse of the words
	// with the places in W1.
	MOVQ deep+40(FP), SI
	MOVQ BX, R9
	XORL R12, R12
	XORL R13, R13
	XORL CX, CX
sort:
	SORT
	VPSLLD $4, Z18, Z18
	VPSRLD $28, Z19, Z20
	VPORD Z20, Z18, Z18
	TIMES3(Z18, Z20)
	VPXORD Z28, Z19, Z19
	VPCOMPRESSD Z20, K2, Z20
	VPCOMPRESSD Z19, K2, Z19
	VMOVDQU32 Z20, W0(R13)
	VMOVDQU32 Z19, W1(R13)
	KMOVW K2, R10
	POPCNTL R10, R10
	ADDQ R10, R13
	ADDQ $2, SI
	ADDQ $256, R9
	ADDQ $16, CX
	CMPQ CX, R8
	JLO sort

	MOVQ index_upper(AX), SI
	MOVQ index_lower(AX), R11
	MOVQ index_codes(AX), R9
	MOVL index_width(AX), BX
	XORL CX, CX
	JMP tablesTest
tables:
	MOVL W0(CX), DX
	RORXL $22, W1(CX), R10
	SHLXQ R10, (SI)(DX*4), R10
	RORXL $16, W1(CX), R15
	POPCNTQ R10, R8
	ADDL 8(SI)(DX*4), R8
	SARQ $63, R10
	LEAQ (R8)(R8*2), R8
	ANDL R15, R10
	SHLXQ R10, (R11)(R8*4), R10
	POPCNTQ R10, R10
	ADDL 8(R11)(R8*4), R10
	IMULL BX, R10
	MOVL (R9)(R10*1), R10
	MOVL R10, W0(CX)
	INCQ CX
tablesTest:
	CMPQ CX, R13
	JLO tables

	MOVQ n+24(FP), R8
	LISTS
	RESULTS
	RET

	// Tables with upper cells. K2 says which.
upper:
	KMOVW K2, R13
	MOVQ index_upper(AX), R11
upperNext:
	TZCNTL R13, R12
	BLSRL R13, R13
	MOVQ R12, DX
	SHLQ $4, DX
	MOVQ (R9)(DX*1), R10
	MOVQ R10, DX
	SHRQ $48, DX
	MOVL (SI)(DX*4), DX
	SHRQ $32, R10
	SHLL $4, DX
	ADDQ CX, R12
	RORXL $12, R10, R15
	ANDL $15, R15
	ORL R15, DX
	LEAQ (DX)(DX*2), DX
	RORXL $6, R10, R15
	NOTL R15
	SHLXQ R15, (R11)(DX*4), R15
	NOTL R10
	POPCNTQ R15, BX
	ADDL 8(R11)(DX*4), BX
	SARQ $63, R15
	ANDL R15, R10
	LEAL (BX)(BX*2), BX
	MOVL BX, W0(R12)
	MOVL R10, W1(R12)
	TESTL R13, R13
	JNE upperNext
	MOVQ keys+8(FP), BX
	JMP cellsNext

// func wideDense(x *index, keys *Key, codes *uint32, n int, limit uint32, deep *[wide / 64]uint64) (zeros, odd int)
TEXT ·wideDense(SB), 0, $2048-64
	PREPARE
	MOVQ index_top(AX), SI
	MOVQ index_refs(AX), R11
	MOVQ BX, R9
	XORL CX, CX
refs:
	TOPS
	VPSRAD $31, Z19, Z20
	VPANDD Z29, Z19, Z19
	VPSLLD $16, Z18, Z18
	VPSRLD $16, Z18, Z18
	VPANDD Z20, Z18, Z18
	VPADDD Z19, Z18, Z18
	VMOVDQU32 Z18, W0(CX)
	ADDQ $256, R9
	ADDQ $16, CX
	CMPQ CX, R8
	JLO refs
	XORL CX, CX
load:
	MOVL w-(4*ARRAY)+0(SP)(CX*4), R9
	MOVL w-(4*ARRAY)+4(SP)(CX*4), R10
	MOVL w-(4*ARRAY)+8(SP)(CX*4), R12
	MOVL w-(4*ARRAY)+12(SP)(CX*4), R13
	MOVL (R11)(R9*4), R9
	MOVL (R11)(R10*4), R10
	MOVL (R11)(R12*4), R12
	MOVL (R11)(R13*4), R13
	MOVL R9, 0(DI)(CX*4)
	MOVL R10, 4(DI)(CX*4)
	MOVL R12, 8(DI)(CX*4)
	MOVL R13, 12(DI)(CX*4)
	ADDQ $4, CX
	CMPQ CX, R8
	JLO load

	MOVQ deep+40(FP), SI
	MOVQ BX, R9
	XORL R12, R12
	XORL R13, R13
	XORL CX, CX
	CONST(const_numberMax, Z22)
sort:
	SORT
	VPANDD Z22, Z18, Z18
	VPSRLD $22, Z19, Z20
	VPADDD Z20, Z18, Z18
	TIMES3(Z18, Z20)
	VPXORD Z28, Z19, Z19
	VPCOMPRESSD Z20, K2, Z20
	VPCOMPRESSD Z19, K2, Z19
	VMOVDQU32 Z20, W0(R13)
	VMOVDQU32 Z19, W1(R13)
	KMOVW K2, R10
	POPCNTL R10, R10
	ADDQ R10, R13
	ADDQ $2, SI
	ADDQ $256, R9
	ADDQ $16, CX
	CMPQ CX, R8
	JLO sort

	MOVQ index_lower(AX), R11
	MOVQ index_codes(AX), R9
	XORL CX, CX
	JMP tablesTest
tables:
	MOVL W0(CX), DX
	RORXL $16, W1(CX), R10
	SHLXQ R10, (R11)(DX*4), R10
	POPCNTQ R10, R10
	ADDL 8(R11)(DX*4), R10
	MOVL (R9)(R10*4), R10
	MOVL R10, W0(CX)
	INCQ CX
tablesTest:
	CMPQ CX, R13
	JLO tables

	LISTS
	RESULTS
	RET
