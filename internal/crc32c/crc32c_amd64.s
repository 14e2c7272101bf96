// CRC32c by carry-less multiplication in 512-bit registers, after Gopal et al.,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"
// (Intel, 2009).
//
// The CRC of a message M is that of any shorter M' which is the same modulo P,
// the polynomial. Take 128 bits A that stand D bits before 128 bits B:
//
//	A·x^D + B,  A = H·x^64 + L
//	  = H·(x^(D+64) mod P) + L·(x^D mod P) + B    (mod P)
//
// Two products of 64 by 32 bits, which fit into 128: A has been folded onto B.
// The main loop does so for sixteen such A at once, four in each of four
// registers, each onto what lies 256 octets on. Then the four registers are
// folded into one, that takes what is left by 64 octets, and its halves and
// quarters are folded onto each other. The CRC32 instruction turns the
// remaining 128 bits into the sum, and takes the last octets.
//
// CRC32c is reflected: the lowest bit of the first octet has the highest power.
// So H is the lower quadword, and bit i of a quadword stands for x^(63-i). Bit
// i of a product of two of them stands for x^(126-i), but in 128 bits for
// x^(127-i): it counts for x times as much as it should. And a constant of
// degree below 32 that is reflected and shifted left by one stands in bits 1 to
// 32, where it counts for x^31 as much. Together x^32, so the constants for H
// and L are x^(D+64-32) and x^(D-32), mod P. They are in folds.
//
// The CRC of what came before acts as if added to the first 32 bits of M.

#include "textflag.h"

#define BY2048 ·folds+0x00(SB)
#define BY512  ·folds+0x10(SB)
#define BY256  ·folds+0x20(SB)
#define BY128  ·folds+0x30(SB)

// FOLD: acc = acc·x^D + next, in each 128 bits. k are the constants of D.
#define FOLD(k, acc, next, tmp) \
	VPCLMULQDQ $0x00, k, acc, tmp \
	VPCLMULQDQ $0x11, k, acc, acc \
	VPTERNLOGQ $0x96, next, tmp, acc

// FOLD4 folds Z0 to Z3, 256 octets, onto the next 256, which are Z4 to Z7. Z9
// is BY2048.
#define FOLD4 \
	FOLD(Z9, Z0, Z4, Z10) \
	FOLD(Z9, Z1, Z5, Z11) \
	FOLD(Z9, Z2, Z6, Z12) \
	FOLD(Z9, Z3, Z7, Z13)

// MERGE folds Z0 to Z3 into Z0. Z8 is BY512.
#define MERGE \
	FOLD(Z8, Z0, Z1, Z4) \
	FOLD(Z8, Z0, Z2, Z4) \
	FOLD(Z8, Z0, Z3, Z4)

// REDUCE folds Z0 into its last 128 bits and makes them the CRC in AX. No
// vector is in use after it.
#define REDUCE \
	VBROADCASTI32X4 BY256, Z8 \
	VEXTRACTI64X4 $1, Z0, Y1 \
	FOLD(Z8, Z0, Z1, Z4) \
	VBROADCASTI32X4 BY128, Z8 \
	VEXTRACTI32X4 $1, Z0, X1 \
	FOLD(Z8, Z0, Z1, Z4) \
	VMOVQ X0, R8 \
	VPEXTRQ $1, X0, R9 \
	XORL AX, AX \
	CRC32Q R8, AX \
	CRC32Q R9, AX \
	VZEROUPPER

// AX is the sum, SI what is next to be read, CX how many octets there are.

// func updateAVX512(sum uint32, p []byte) uint32
TEXT ·updateAVX512(SB), NOSPLIT, $0-36
	MOVL sum+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	NOTL AX
	CMPQ CX, $64
	JB   words

	VMOVD AX, X4
	VPXORQ (SI), Z4, Z0
	VBROADCASTI32X4 BY512, Z8
	CMPQ CX, $256
	JB   single
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VBROADCASTI32X4 BY2048, Z9
	JMP  next256

loop256:
	VMOVDQU64 (SI), Z4
	VMOVDQU64 64(SI), Z5
	VMOVDQU64 128(SI), Z6
	VMOVDQU64 192(SI), Z7
	FOLD4
next256:
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  loop256
	MERGE
	CMPQ CX, $64
	JB   reduce

loop64:
	VMOVDQU64 (SI), Z1
	FOLD(Z8, Z0, Z1, Z4)
single:
	ADDQ $64, SI
	SUBQ $64, CX
	CMPQ CX, $64
	JAE  loop64

reduce:
	REDUCE

words:
	CMPQ CX, $8
	JB   four
loop8:
	CRC32Q (SI), AX
	ADDQ $8, SI
	SUBQ $8, CX
	CMPQ CX, $8
	JAE  loop8

four:
	TESTQ $4, CX
	JZ    two
	CRC32L (SI), AX
	ADDQ $4, SI
two:
	TESTQ $2, CX
	JZ    one
	CRC32W (SI), AX
	ADDQ $2, SI
one:
	TESTQ $1, CX
	JZ    done
	CRC32B (SI), AX
done:
	NOTL AX
	MOVL AX, ret+32(FP)
	RET

// The same, but whatever is read is stored at DI before it is used, out of the
// register that it was read into: src is never looked at a second time.

// func copyAVX512(sum uint32, dst, src []byte) uint32
TEXT ·copyAVX512(SB), NOSPLIT, $0-60
	MOVL sum+0(FP), AX
	MOVQ dst_base+8(FP), DI
	MOVQ src_base+32(FP), SI
	MOVQ src_len+40(FP), CX
	NOTL AX
	CMPQ CX, $64
	JB   words

	VMOVD AX, X4
	VMOVDQU64 (SI), Z0
	VMOVDQU64 Z0, (DI)
	VPXORQ Z4, Z0, Z0
	VBROADCASTI32X4 BY512, Z8
	CMPQ CX, $256
	JB   single
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	VBROADCASTI32X4 BY2048, Z9
	JMP  next256

loop256:
	VMOVDQU64 (SI), Z4
	VMOVDQU64 64(SI), Z5
	VMOVDQU64 128(SI), Z6
	VMOVDQU64 192(SI), Z7
	VMOVDQU64 Z4, (DI)
	VMOVDQU64 Z5, 64(DI)
	VMOVDQU64 Z6, 128(DI)
	VMOVDQU64 Z7, 192(DI)
	FOLD4
next256:
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  loop256
	MERGE
	CMPQ CX, $64
	JB   reduce

loop64:
	VMOVDQU64 (SI), Z1
	VMOVDQU64 Z1, (DI)
	FOLD(Z8, Z0, Z1, Z4)
single:
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	CMPQ CX, $64
	JAE  loop64

reduce:
	REDUCE

words:
	CMPQ CX, $8
	JB   four
loop8:
	MOVQ (SI), R8
	MOVQ R8, (DI)
	CRC32Q R8, AX
	ADDQ $8, SI
	ADDQ $8, DI
	SUBQ $8, CX
	CMPQ CX, $8
	JAE  loop8

four:
	TESTQ $4, CX
	JZ    two
	MOVL (SI), R8
	MOVL R8, (DI)
	CRC32L R8, AX
	ADDQ $4, SI
	ADDQ $4, DI
two:
	TESTQ $2, CX
	JZ    one
	MOVWLZX (SI), R8
	MOVW R8, (DI)
	CRC32W R8, AX
	ADDQ $2, SI
	ADDQ $2, DI
one:
	TESTQ $1, CX
	JZ    done
	MOVBLZX (SI), R8
	MOVB R8, (DI)
	CRC32B R8, AX
done:
	NOTL AX
	MOVL AX, ret+56(FP)
	RET
