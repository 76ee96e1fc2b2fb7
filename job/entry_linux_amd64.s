#include "textflag.h"

// entry is where the kernel begins the program, if the linker was told so. It
// asks rt_sigaction(2) for each standard signal and fcntl(2) for each standard
// descriptor, and jumps to where Go programs begin, with SP as it was.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ SP, R12
	SUBQ $64, SP            // room for a struct sigaction
	MOVL $1, R14            // bit 0: the program began here
	MOVL $1, R13
signal:
	MOVQ R13, DI
	XORL SI, SI
	MOVQ SP, DX
	MOVL $8, R10
	MOVL $13, AX            // SYS_rt_sigaction
	SYSCALL
	TESTQ AX, AX
	JNE  nextSignal
	CMPQ 0(SP), $1          // SIG_IGN
	JNE  nextSignal
	BTSQ R13, R14
nextSignal:
	INCQ R13
	CMPQ R13, $31
	JLE  signal
	MOVQ R14, ·ignoredBits(SB)

	XORL R14, R14
	XORL R13, R13
descriptor:
	MOVQ R13, DI
	MOVL $1, SI             // F_GETFD
	XORL DX, DX
	MOVL $72, AX            // SYS_fcntl
	SYSCALL
	TESTQ AX, AX
	JGE  nextDescriptor
	BTSQ R13, R14
nextDescriptor:
	INCQ R13
	CMPQ R13, $2
	JLE  descriptor
	MOVQ R14, ·closedBits(SB)

	MOVQ R12, SP
	JMP  _rt0_amd64_linux(SB)
