package procfile

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ParseCount parses a decimal number. It reports false for anything else, and for a number of more than 64 bits.
func ParseCount(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// SplitFields splits a line at white space into f, and returns the number of fields that it stored. It ignores fields
// that do not fit into f.
func SplitFields(line []byte, f [][]byte) int {
	n := 0
	for i := 0; i < len(line) && n < len(f); {
		if isSpace(line[i]) {
			i++
			continue
		}
		start := i
		for i < len(line) && !isSpace(line[i]) {
			i++
		}
		f[n] = line[start:i]
		n++
	}
	return n
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// AppendPIDs appends the process IDs in a list such as cgroup.procs or task/TID/children. 0 stands for a process of
// another pid namespace.
func AppendPIDs(pids []int, list []byte) []int {
	for field := range bytes.FieldsSeq(list) {
		if n, ok := ParseCount(field); ok && n <= math.MaxInt32 {
			pids = append(pids, int(n))
		}
	}
	return pids
}

// CutRange returns the first range of a list such as "0-3,7", in the kernel's format for CPUs, and the rest of the
// list. It reports false for anything else.
func CutRange(list []byte) (first, last uint64, rest []byte, ok bool) {
	part, rest, _ := bytes.Cut(list, []byte{','})
	from, to, isRange := bytes.Cut(bytes.TrimSpace(part), []byte{'-'})
	if !isRange {
		to = from
	}
	first, ok = ParseCount(from)
	last, okLast := ParseCount(to)
	return first, last, rest, ok && okLast && first <= last
}

// Numbered returns the sorted numbers of the names that consist of prefix and a number below 65536, such as "cpu3".
func Numbered(names []string, prefix string) []int {
	var numbers []int
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, prefix)
		if n, err := strconv.ParseUint(digits, 10, 16); ok && err == nil {
			numbers = append(numbers, int(n))
		}
	}
	slices.Sort(numbers)
	return numbers
}

// UserHZ is the number of clock ticks per second in the kernel's text files (USER_HZ). It is 100 on every system that
// Go supports.
const UserHZ = 100

// The indexes of the fields of /proc/PID/stat in the result of SplitStat, which begins at the state (proc_pid_stat(5),
// do_task_stat in the kernel's fs/proc/array.c). Times are in clock ticks, StatStart since boot; StatRSS is in pages.
const (
	StatState   = 0
	StatParent  = 1
	StatFlags   = 6 // PF_… of the kernel's sched.h
	StatMinFlt  = 7 // minor page faults of all threads
	StatCMinFlt = 8 // minor page faults of reaped children
	StatUTime   = 11
	StatSTime   = 12
	StatCUTime  = 13 // of reaped children
	StatCSTime  = 14
	StatThreads = 17
	StatStart   = 19
	StatRSS     = 21
	StatStack   = 25 // start of the stack, which changes with exec; 0 or 1 if the kernel hides it from us

	// Addresses of the program, visible only to the process itself and to processes that may trace it.
	StatStartCode = 23
	StatEndCode   = 24
	StatStartData = 42
	StatEndData   = 43
	StatStartBrk  = 44
	StatEnvStart  = 47
	StatEnvEnd    = 48

	// StatExitCode is the wait status of a process that has ended; 0 for a process that this one may not trace.
	StatExitCode = 49
)

// SplitStat stores the fields of data, a /proc/PID/stat, in f, beginning with the state, and returns how many it
// stored. The name may contain spaces, parentheses and newlines, so it ends at the last parenthesis in data. Without
// parentheses n is 0.
func SplitStat(data []byte, f [][]byte) (pid, name []byte, n int) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return nil, nil, 0
	}
	return bytes.TrimSpace(data[:open]), data[open+1 : end], SplitFields(data[end+1:], f)
}

// IsExiting reports whether a thread has begun to exit. stat is the content of its /proc/PID/stat or
// /proc/PID/task/TID/stat.
func IsExiting(stat []byte) bool {
	const ends = 0x4 | 0x200 | 0x400 // PF_EXITING, PF_DUMPCORE, PF_SIGNALED
	var f [StatFlags + 1][]byte
	if _, _, n := SplitStat(stat, f[:]); n < len(f) {
		return false
	}
	flags, ok := ParseCount(f[StatFlags])
	return ok && flags&ends != 0
}

// Value returns the value of the line key of data, such as "1234 kB" for "VmHWM" in a /proc/PID/status
// (proc_pid_status(5)). It returns nil if there is no such line.
func Value(data []byte, key string) []byte {
	for line := range bytes.Lines(data) {
		if name, value, found := bytes.Cut(line, []byte{':'}); found && string(name) == key {
			return bytes.TrimSpace(value)
		}
	}
	return nil
}

// StatusValue is Value as a string.
func StatusValue(status []byte, key string) string { return string(Value(status, key)) }

// HasSignal reports whether sig is in the given signal set of status, a /proc/PID/status. One such set is "ShdPnd"
// (sent to the process and not delivered yet).
func HasSignal(status []byte, set string, sig uint) bool {
	bits, err := strconv.ParseUint(StatusValue(status, set), 16, 64)
	return err == nil && sig > 0 && bits>>(sig-1)&1 == 1
}

// Unescape decodes the octal escapes \OOO that the kernel writes for white space and backslashes in paths, as in
// mountinfo.
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	octal := func(c byte) bool { return c >= '0' && c <= '7' }

	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && s[i+1] < '4' && octal(s[i+2]) && octal(s[i+3]) {
			b = append(b, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// CommandLine returns the arguments of the process with the given ID, or nil if they cannot be read or there are none.
func CommandLine(pid int) []string {
	data, _ := ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	line := strings.TrimRight(string(data), "\x00") // a changed title may be padded
	if line == "" {
		return nil
	}
	return strings.Split(line, "\x00")
}
