#include "textflag.h"

// entry is where the kernel begins the program, if the linker was told so. It
// asks rt_sigaction(2) for each standard signal and fcntl(2) for each standard
// descriptor, and jumps to where Go programs begin, with RSP as it was.
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
	TBZ  $63, R0, nextDescriptor
	MOVD $1, R9
	LSL  R20, R9, R9
	ORR  R9, R21, R21
nextDescriptor:
	ADD  $1, R20, R20
	CMP  $2, R20
	BLE  descriptor
	MOVD R21, ·closedBits(SB)

	ADD  $64, RSP
	B    _rt0_arm64_linux(SB)
