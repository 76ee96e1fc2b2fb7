#include "textflag.h"

// func cloneWitness(page *witnessPage, flags uintptr) (pid int)
TEXT ·cloneWitness(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ page+0(FP), R12
	MOVQ flags+8(FP), DI
	XORL SI, SI             // the child continues with a copy of the stack
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $56, AX            // SYS_clone
	SYSCALL
	TESTQ AX, AX
	JNE  parent
	JMP  witness<>(SB)
parent:
	MOVQ AX, pid+16(FP)
	RET

// witness is the child's code, with the page in R12. It uses no stack.
TEXT witness<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $1, DI             // PR_SET_PDEATHSIG
	MOVL $9, SI             // SIGKILL
	MOVL $157, AX           // SYS_prctl
	SYSCALL
	MOVL $110, AX           // SYS_getppid
	SYSCALL
	CMPQ AX, 32(R12)        // parent: it may have ended before
	JNE  exit
	MOVL $15, DI            // PR_SET_NAME
	LEAQ 16(R12), SI        // name
	MOVL $157, AX           // SYS_prctl
	SYSCALL

	LEAQ 48(R12), R13       // unmap
unmap:
	MOVQ 0(R13), DI
	MOVQ 8(R13), SI
	TESTQ SI, SI
	JEQ  wait
	MOVL $11, AX            // SYS_munmap
	SYSCALL
	ADDQ $16, R13
	JMP  unmap

wait:
	MOVQ R12, DI            // all
	LEAQ 192(R12), SI       // info
	XORL DX, DX             // no timeout
	MOVL $8, R10
	MOVL $128, AX           // SYS_rt_sigtimedwait
	SYSCALL
	CMPQ AX, $-4            // EINTR: stopped and continued
	JEQ  wait
	TESTQ AX, AX
	JLE  exit
	CMPL 200(R12), $0       // info.si_code: above 0, from the kernel
	JGT  wait
	LOCK
	INCL 320(R12)(AX*4)     // counts
	MOVL 40(R12), DI        // notifierFD
	LEAQ 8(R12), SI         // notifierValue
	MOVL $8, DX
	MOVL $1, AX             // SYS_write
	SYSCALL
	JMP  wait

exit:
	XORL DI, DI
	MOVL $231, AX           // SYS_exit_group
	SYSCALL
	INT  $3

// func witnessAddress() uintptr
TEXT ·witnessAddress(SB), NOSPLIT, $0-8
	LEAQ witness<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
