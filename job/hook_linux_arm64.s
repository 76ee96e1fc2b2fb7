#include "textflag.h"

// The handler of the caught signals, called by the kernel with the C convention: R0 signal number, R1 *siginfo, R2
// *ucontext. It uses no stack and no register that a C function must preserve.
TEXT onSignal<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVWU R0, R9
	MOVD  $·senders(SB), R10
	ADD   R9<<3, R10, R10
	MOVW  16(R1), R11       // si_pid
	MOVW  R11, 4(R10)
	MOVW  8(R1), R11        // si_code
	MOVW  R11, (R10)
	MOVD  $·fromUser(SB), R10
	CMPW  $0, R11
	BLE   count
	MOVD  $·fromKernel(SB), R10
count:
	ADD   R9<<2, R10, R10
again:
	LDAXRW (R10), R12
	ADDW   $1, R12, R12
	STLXRW R12, (R10), R13
	CBNZW  R13, again
	MOVW  ·notifierFD(SB), R0
	MOVD  $·notifierValue(SB), R1
	MOVD  $8, R2
	MOVD  $64, R8           // write(2)
	SVC
	RET

// func hookAddress() uintptr
TEXT ·hookAddress(SB), NOSPLIT, $0-8
	MOVD $onSignal<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
