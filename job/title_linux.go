package job

import (
	"os"
	"strings"
	"unsafe"
)

// arguments is the memory that the kernel reads for /proc/PID/cmdline, the last byte of which is a NUL. It is nil
// before CopyArgs.
var arguments []byte

// CopyArgs makes os.Args a copy of the arguments, so that SetTitle may write where the kernel has put them. It is
// called before any part of os.Args is kept elsewhere.
func CopyArgs() {
	if len(os.Args) == 0 {
		return
	}

	first, end := unsafe.StringData(os.Args[0]), uintptr(0)
	for i, arg := range os.Args {
		begin := uintptr(unsafe.Pointer(unsafe.StringData(arg)))
		if i > 0 && begin != end {
			return // it is not what the kernel has made
		}
		end = begin + uintptr(len(arg)) + 1
	}
	arguments = unsafe.Slice(first, end-uintptr(unsafe.Pointer(first)))
	for i, arg := range os.Args {
		os.Args[i] = strings.Clone(arg)
	}
}

// SetTitle makes text the command line that others see of this process, in /proc/PID/cmdline and in what reads that,
// such as ps and pgrep -f: the words of it that the arguments have room for. Without CopyArgs it does nothing.
func SetTitle(text string) {
	if len(arguments) > 0 {
		clear(arguments)
		copy(arguments, wordsWithin(text, len(arguments)-1))
	}
}

// wordsWithin returns the first words of text that n bytes have room for.
func wordsWithin(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:max(0, strings.LastIndexByte(text[:n+1], ' '))]
}
