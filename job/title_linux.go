package job

import (
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// arguments is the memory that the kernel reads for /proc/PID/cmdline; its last byte is NUL. It is nil until CopyArgs
// has found it.
var arguments []byte

// title holds the command line after SetTitle, because arguments may be too short. It is a package variable because the
// kernel keeps its address.
var title [128]byte

// CopyArgs makes os.Args a copy of the arguments, so that SetTitle may overwrite the original. Call it before any part
// of os.Args is kept elsewhere.
func CopyArgs() {
	if len(os.Args) == 0 {
		return
	}

	first, end := unsafe.StringData(os.Args[0]), uintptr(0)
	for i, arg := range os.Args {
		begin := uintptr(unsafe.Pointer(unsafe.StringData(arg)))
		if i > 0 && begin != end {
			return // not the kernel's array
		}
		end = begin + uintptr(len(arg)) + 1
	}
	arguments = unsafe.Slice(first, end-uintptr(unsafe.Pointer(first)))
	for i, arg := range os.Args {
		os.Args[i] = strings.Clone(arg)
	}
}

// SetTitle makes text the command line of this process in /proc/PID/cmdline, and thus in ps and pgrep -f. Words that do
// not fit into 127 bytes are left out. SetTitle does nothing unless CopyArgs was called before. If the kernel does not
// let a process move its command line, the words must fit into the space of the arguments.
func SetTitle(text string) {
	if len(arguments) == 0 {
		return
	}

	clear(arguments)
	copy(arguments, wordsWithin(text, len(arguments)-1))
	clear(title[:])
	moveTitle(copy(title[:], wordsWithin(text, len(title)-1)) + 1)
}

// wordsWithin cuts text to n bytes, between two words.
func wordsWithin(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:max(0, strings.LastIndexByte(text[:n+1], ' '))]
}

// memoryMap is struct prctl_mm_map of linux/prctl.h.
type memoryMap struct {
	startCode, endCode, startData, endData, startBrk, brk, startStack uint64
	argStart, argEnd, envStart, envEnd                                uint64
	auxv                                                              uintptr
	auxvSize                                                          uint32
	exe                                                               int32
}

// moveTitle makes the first n bytes of title the command line (PR_SET_MM_MAP). It needs CONFIG_CHECKPOINT_RESTORE in
// the kernel, but no privileges. The call sets the whole memory map, in which only the command line changes. If the
// kernel refuses, the command line stays where it is.
func moveTitle(n int) {
	m, ok := ownMap()
	if !ok {
		return
	}
	m.argStart = uint64(uintptr(unsafe.Pointer(&title)))
	m.argEnd = m.argStart + uint64(n)
	_, _, _ = unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_MAP,
		uintptr(unsafe.Pointer(&m)), unsafe.Sizeof(m), 0, 0)
}

// ownMap returns the memory layout of this process.
func ownMap() (m memoryMap, ok bool) {
	var line procfile.Buffer
	stat, err := line.Read("/proc/self/stat", 4096)
	if err != nil {
		return m, false
	}
	var f [procfile.StatEnvEnd + 1][]byte
	if _, _, n := procfile.SplitStat(stat, f[:]); n < len(f) {
		return m, false
	}
	number := func(field int) uint64 {
		value, _ := procfile.ParseCount(f[field])
		return value
	}

	brk, _, _ := unix.RawSyscall(unix.SYS_BRK, 0, 0, 0)
	return memoryMap{
		startCode: number(procfile.StatStartCode), endCode: number(procfile.StatEndCode),
		startData: number(procfile.StatStartData), endData: number(procfile.StatEndData),
		startBrk: number(procfile.StatStartBrk), brk: uint64(brk), startStack: number(procfile.StatStack),
		envStart: number(procfile.StatEnvStart), envEnd: number(procfile.StatEnvEnd),
		exe: -1, // keep the executable
	}, true
}
