#include "textflag.h"

// The handler of the caught signals, called by the kernel with the C convention: DI signal number, SI *siginfo, DX
// *ucontext. It uses no stack and no register that a C function must preserve.
TEXT onSignal<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVL DI, CX
	LEAQ ·senders(SB), AX
	MOVL 16(SI), R8         // si_pid
	MOVL R8, 4(AX)(CX*8)
	MOVL 8(SI), R8          // si_code
	MOVL R8, (AX)(CX*8)
	LEAQ ·fromUser(SB), AX
	CMPL 8(SI), $0          // si_code
	JLE  count
	LEAQ ·fromKernel(SB), AX
count:
	MOVL $1, R8
	LOCK
	XADDL R8, (AX)(CX*4)
	MOVL ·notifierFD(SB), DI
	LEAQ ·notifierValue(SB), SI
	MOVL $8, DX
	MOVL $1, AX             // write(2)
	SYSCALL
	RET

// func hookAddress() uintptr
TEXT ·hookAddress(SB), NOSPLIT, $0-8
	LEAQ onSignal<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
