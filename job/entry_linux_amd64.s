#include "textflag.h"

// oneProcessor is the variable that entry adds to the environment.
DATA ·oneProcessor+0(SB)/8, $"GOMAXPRO"
DATA ·oneProcessor+8(SB)/8, $"CS=1\x00\x00\x00\x00"
GLOBL ·oneProcessor(SB), RODATA|NOPTR, $16

// entry is the program's entry point, if linked so. It asks rt_sigaction(2) for each standard signal and fcntl(2) for
// each standard descriptor, adds oneProcessor to an environment without GOMAXPROCS, and jumps to the usual entry point
// of Go programs.
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
	CMPQ AX, $-9            // EBADF: only this means closed
	JNE  nextDescriptor
	BTSQ R13, R14
nextDescriptor:
	INCQ R13
	CMPQ R13, $2
	JLE  descriptor
	MOVQ R14, ·closedBits(SB)

	// From R12 up there are argc, argc pointers and 0, the pointers of the environment and 0.
	MOVQ 0(R12), R13
	LEAQ 16(R12)(R13*8), R13
	MOVQ ·oneProcessor(SB), R14   // "GOMAXPRO"
variable:
	MOVQ 0(R13), AX
	TESTQ AX, AX
	JEQ  add
	CMPQ 0(AX), R14
	JNE  nextVariable
	MOVL 8(AX), DX
	ANDL $0xffffff, DX
	CMPL DX, $0x3d5343      // "CS="
	JEQ  begin
nextVariable:
	ADDQ $8, R13
	JMP  variable
add:                            // move all of them down by one, and use the free place
	MOVQ R12, SI
	LEAQ -8(R12), DI
	MOVQ R13, CX
	SUBQ R12, CX
	SHRQ $3, CX
	CLD
	REP; MOVSQ
	LEAQ ·oneProcessor(SB), AX
	MOVQ AX, -8(R13)
	SUBQ $8, R12
	MOVQ $1, ·processorAdded(SB)
begin:
	MOVQ R12, SP
	JMP  _rt0_amd64_linux(SB)
