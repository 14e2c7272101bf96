//go:build !race

#include "textflag.h"

// func copyAVX2(dst, src *byte, n int)
//
// The first 32 octets and the last 128 are copied by themselves, and overlap what the loop
// copies between them, to a target that is aligned.
TEXT ·copyAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	LEAQ -128(DI)(CX*1), DX // the last 128 octets of both
	LEAQ -128(SI)(CX*1), BX

	VMOVDQU (SI), Y0
	VMOVDQU Y0, (DI)
	MOVQ DI, AX
	ANDQ $31, AX
	SUBQ $32, AX // less than is copied already, negated
	SUBQ AX, DI
	SUBQ AX, SI

loop:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQA Y0, (DI)
	VMOVDQA Y1, 32(DI)
	VMOVDQA Y2, 64(DI)
	VMOVDQA Y3, 96(DI)
	SUBQ $-128, SI
	SUBQ $-128, DI
	CMPQ DI, DX
	JB   loop

	VMOVDQU (BX), Y0
	VMOVDQU 32(BX), Y1
	VMOVDQU 64(BX), Y2
	VMOVDQU 96(BX), Y3
	VMOVDQU Y0, (DX)
	VMOVDQU Y1, 32(DX)
	VMOVDQU Y2, 64(DX)
	VMOVDQU Y3, 96(DX)
	VZEROUPPER
	RET
