//go:build !purego

#include "textflag.h"

// func prefetchWords(words, ends unsafe.Pointer, numbers []uint32)
TEXT ·prefetchWords(SB), NOSPLIT, $0-40
	MOVQ words+0(FP), DI
	MOVQ ends+8(FP), DX
	MOVQ numbers_base+16(FP), SI
	MOVQ numbers_len+24(FP), CX
	LEAQ (SI)(CX*4), CX
	JMP  test

next:
	MOVL (SI), AX
	ADDQ $4, SI
	PREFETCHT0 (DI)(AX*8)
	PREFETCHT0 (DX)(AX*4)

test:
	CMPQ SI, CX
	JNE  next
	RET

// func prefetchItems(items unsafe.Pointer, size uint64, numbers []uint32)
TEXT ·prefetchItems(SB), NOSPLIT, $0-40
	MOVQ items+0(FP), DI
	MOVQ size+8(FP), DX
	MOVQ numbers_base+16(FP), SI
	MOVQ numbers_len+24(FP), CX
	LEAQ (SI)(CX*4), CX
	JMP  test

next:
	MOVL  (SI), AX
	ADDQ  $4, SI
	IMULQ DX, AX
	PREFETCHT0 (DI)(AX*1)

test:
	CMPQ SI, CX
	JNE  next
	RET
