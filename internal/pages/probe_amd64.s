#include "textflag.h"

// func touchToWrite(p *byte)
TEXT ·touchToWrite(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	LOCK
	ADDB $0, (AX)
	RET
