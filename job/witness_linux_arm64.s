#include "textflag.h"

// func cloneWitness(page *witnessPage, flags uintptr) (pid int)
TEXT ·cloneWitness(SB), NOSPLIT|NOFRAME, $0-24
	MOVD page+0(FP), R19
	MOVD flags+8(FP), R0
	MOVD ZR, R1             // the child continues with a copy of the stack
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8           // SYS_clone
	SVC
	CBNZ R0, parent
	B    witness<>(SB)
parent:
	MOVD R0, pid+16(FP)
	RET

// witness is the child's code, with the page in R19. It uses no stack.
TEXT witness<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD $1, R0             // PR_SET_PDEATHSIG
	MOVD $9, R1             // SIGKILL
	MOVD $167, R8           // SYS_prctl
	SVC
	MOVD $173, R8           // SYS_getppid
	SVC
	MOVD 32(R19), R9        // parent: it may have ended before
	CMP  R9, R0
	BNE  exit
	MOVD $15, R0            // PR_SET_NAME
	ADD  $16, R19, R1       // name
	MOVD $167, R8           // SYS_prctl
	SVC

	ADD  $48, R19, R20      // unmap
unmap:
	MOVD 0(R20), R0
	MOVD 8(R20), R1
	CBZ  R1, wait
	MOVD $215, R8           // SYS_munmap
	SVC
	ADD  $16, R20
	B    unmap

wait:
	MOVD R19, R0            // all
	ADD  $192, R19, R1      // info
	MOVD ZR, R2             // no timeout
	MOVD $8, R3
	MOVD $137, R8           // SYS_rt_sigtimedwait
	SVC
	CMN  $4, R0             // EINTR: stopped and continued
	BEQ  wait
	CMP  $0, R0
	BLE  exit
	MOVW 200(R19), R9       // info.si_code: above 0, from the kernel
	CMPW $0, R9
	BGT  wait
	ADD  R0<<2, R19, R10
	ADD  $320, R10          // counts: no other process writes to them
	MOVWU (R10), R9
	ADDW $1, R9
	STLRW R9, (R10)
	MOVW 40(R19), R0        // notifierFD
	ADD  $8, R19, R1        // notifierValue
	MOVD $8, R2
	MOVD $64, R8            // SYS_write
	SVC
	B    wait

exit:
	MOVD ZR, R0
	MOVD $94, R8            // SYS_exit_group
	SVC
	BRK

// func witnessAddress() uintptr
TEXT ·witnessAddress(SB), NOSPLIT, $0-8
	MOVD $witness<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
