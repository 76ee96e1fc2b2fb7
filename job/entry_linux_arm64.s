#include "textflag.h"

// oneProcessor is the variable that entry adds to the environment.
DATA ·oneProcessor+0(SB)/8, $"GOMAXPRO"
DATA ·oneProcessor+8(SB)/8, $"CS=1\x00\x00\x00\x00"
GLOBL ·oneProcessor(SB), RODATA|NOPTR, $16

// entry is the program's entry point, if linked so. It asks rt_sigaction(2) for each standard signal and fcntl(2) for
// each standard descriptor, adds oneProcessor to an environment without GOMAXPROCS, and jumps to the usual entry point
// of Go programs. The stack must stay aligned to 16 bytes, so everything moves down by two places, and both get the
// variable.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $64, RSP           // room for a struct sigaction
	MOVD $1, R21            // bit 0: the program began here
	MOVD $1, R20
signal:
	MOVD R20, R0
	MOVD $0, R1
	MOVD RSP, R2
	MOVD $8, R3
	MOVD $134, R8           // SYS_rt_sigaction
	SVC
	CBNZ R0, nextSignal
	MOVD 0(RSP), R9
	CMP  $1, R9             // SIG_IGN
	BNE  nextSignal
	MOVD $1, R9
	LSL  R20, R9, R9
	ORR  R9, R21, R21
nextSignal:
	ADD  $1, R20, R20
	CMP  $31, R20
	BLE  signal
	MOVD R21, ·ignoredBits(SB)

	MOVD $0, R21
	MOVD $0, R20
descriptor:
	MOVD R20, R0
	MOVD $1, R1             // F_GETFD
	MOVD $0, R2
	MOVD $25, R8            // SYS_fcntl
	SVC
	CMN  $9, R0             // -EBADF: only this means closed
	BNE  nextDescriptor
	MOVD $1, R9
	LSL  R20, R9, R9
	ORR  R9, R21, R21
nextDescriptor:
	ADD  $1, R20, R20
	CMP  $2, R20
	BLE  descriptor
	MOVD R21, ·closedBits(SB)

	ADD  $64, RSP

	// From RSP up there are argc, argc pointers and 0, the pointers of the environment and 0.
	MOVD RSP, R22
	MOVD 0(R22), R20
	ADD  R20<<3, R22, R20
	ADD  $16, R20
	MOVD ·oneProcessor(SB), R21   // "GOMAXPRO"
	MOVD $0x3d5343, R10           // "CS="
variable:
	MOVD 0(R20), R9
	CBZ  R9, add
	MOVD 0(R9), R11
	CMP  R11, R21
	BNE  nextVariable
	MOVWU 8(R9), R11
	AND  $0xffffff, R11, R11
	CMP  R11, R10
	BEQ  begin
nextVariable:
	ADD  $8, R20
	B    variable
add:                                  // move all of them down by two, and use the free places
	MOVD R22, R11
	SUB  $16, R22, R12
move:
	CMP  R20, R11
	BEQ  moved
	MOVD.P 8(R11), R9
	MOVD.P R9, 8(R12)
	B    move
moved:
	MOVD $·oneProcessor(SB), R9
	MOVD R9, -16(R20)
	MOVD R9, -8(R20)
	SUB  $16, RSP
	MOVD $1, R9
	MOVD R9, ·processorAdded(SB)
begin:
	B    _rt0_arm64_linux(SB)
