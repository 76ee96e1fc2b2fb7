package process

import "bytes"

// stat is what is used of /proc/PID/stat. Times are ticks of 1/100 s.
type stat struct {
	ppid    int32
	state   byte
	commLen uint8
	comm    [16]byte
	ticks   float64 // user and system, of the process and of the children that it waited for
	own     float64 // those of the process among them
	threads float64
	start   uint64 // since boot
	pages   uint64 // resident
}

// Fields of /proc/PID/stat, counted from the state, which follows the name.
const (
	fieldState   = 0
	fieldParent  = 1
	fieldUTime   = 11
	fieldSTime   = 12
	fieldCSTime  = 14
	fieldThreads = 17
	fieldStart   = 19
	fieldRSS     = 21
	numFields    = fieldRSS + 1
)

// maxPages bounds resident pages, so that their bytes fit in 64 bits.
const maxPages = 1 << 50

// parseStat reads /proc/PID/stat (proc_pid_stat(5), do_task_stat in the kernel's
// fs/proc/array.c). The name may hold spaces, parentheses and newlines, so that it
// ends with the last parenthesis of the file.
func parseStat(data []byte, pid int32) (stat, error) {
	var s stat
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return s, damaged("no name in parentheses")
	}
	if n, ok := parseCount(bytes.TrimSpace(data[:open])); !ok || n != uint64(pid) {
		return s, damaged("it does not begin with its process id")
	}
	s.commLen = uint8(copy(s.comm[:], data[open+1:end]))
	var f [numFields][]byte
	if splitFields(data[end+1:], f[:]) < numFields {
		return s, damaged("too few fields")
	}
	var n [numFields]uint64
	for i := range n {
		if i != fieldParent && (i < fieldUTime || i > fieldCSTime) && i != fieldThreads && i != fieldStart && i != fieldRSS {
			continue
		}
		var ok bool
		if n[i], ok = parseCount(f[i]); !ok {
			return s, damaged("a field is not a count")
		}
	}
	if n[fieldParent] > maxPIDs || n[fieldThreads] > maxPIDs || n[fieldRSS] > maxPages || len(f[fieldState]) != 1 {
		return s, damaged("a field makes no sense")
	}
	for i := fieldUTime; i <= fieldCSTime; i++ {
		s.ticks += float64(n[i])
	}
	s.own = float64(n[fieldUTime]) + float64(n[fieldSTime])
	s.ppid, s.state, s.threads = int32(n[fieldParent]), f[fieldState][0], float64(n[fieldThreads])
	s.start, s.pages = n[fieldStart], n[fieldRSS]
	return s, nil
}

// parseValue gives the number of a line "KEY: 123" or "KEY: 123 kB".
func parseValue(data []byte, key string) (uint64, bool) {
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found || string(name) != key {
			continue
		}
		var f [2][]byte
		splitFields(value, f[:])
		return parseCount(f[0])
	}
	return 0, false
}

// parsePSS gives the bytes of /proc/PID/smaps_rollup's line "Pss:".
func parsePSS(data []byte) (uint64, error) {
	kb, ok := parseValue(data, "Pss")
	if !ok || kb > maxPages {
		return 0, damaged("it has no line of Pss in kB")
	}
	return kb << 10, nil
}

// parseIO gives the bytes from and to storage of /proc/PID/io.
func parseIO(data []byte) (read, written uint64, err error) {
	read, okRead := parseValue(data, "read_bytes")
	written, okWritten := parseValue(data, "write_bytes")
	if !okRead || !okWritten {
		return 0, 0, damaged("it lacks read_bytes or write_bytes")
	}
	return read, written, nil
}

// splitFields puts the fields of a line into f, as far as they fit, and returns
// how many of them there are, at most len(f).
func splitFields(line []byte, f [][]byte) int {
	n := 0
	for i := 0; i < len(line) && n < len(f); {
		if blank(line[i]) {
			i++
			continue
		}
		start := i
		for i < len(line) && !blank(line[i]) {
			i++
		}
		f[n] = line[start:i]
		n++
	}
	return n
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// parseCount reads a decimal number; false if it is none or has more than 64 bits.
func parseCount(b []byte) (uint64, bool) {
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
