package process

import (
	"bytes"
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

// stat is the part of /proc/PID/stat that is used. Times are ticks of 1/100 s.
type stat struct {
	ppid    int32
	state   byte
	ticks   float64 // user and system, of the process and of the children that it waited for
	own     float64 // the ticks of the process itself
	threads float64
	start   uint64 // since boot
	pages   uint64 // resident
	faults  uint64 // minor page faults: one for each shared page that it got a copy of
	name    name
	stack   uint64 // where it begins: another place once it executes a program; 0 or 1 = not known
	// clock is the CPU time of the process by its clock, just before the file was read; 0 = not known.
	clock time.Duration
}

// numFields is how many fields of /proc/PID/stat are looked at.
const numFields = procfile.StatStack + 1

// maxPages bounds resident pages, so that their bytes fit in 64 bits.
const maxPages = 1 << 50

// anyPID makes parseStat accept the stat of any process.
const anyPID = -1

// parseStat parses the /proc/PID/stat of a process.
func parseStat(data []byte, pid int32) (stat, error) {
	var s stat
	var f [numFields][]byte
	first, comm, fields := procfile.SplitStat(data, f[:])
	if fields <= procfile.StatRSS {
		return s, damaged("no name in parentheses, or too few fields after it")
	}
	if n, ok := procfile.ParseCount(first); !ok || pid != anyPID && n != uint64(pid) {
		return s, damaged("it does not begin with its process id")
	}

	var n [numFields]uint64
	for i := range procfile.StatRSS + 1 {
		switch i {
		case procfile.StatParent, procfile.StatMinFlt,
			procfile.StatUTime, procfile.StatSTime, procfile.StatCUTime, procfile.StatCSTime,
			procfile.StatThreads, procfile.StatStart, procfile.StatRSS:
		default:
			continue
		}
		var ok bool
		if n[i], ok = procfile.ParseCount(f[i]); !ok {
			return s, damaged("a field is not a count")
		}
	}

	if n[procfile.StatParent] > maxPIDs || n[procfile.StatThreads] > maxPIDs || n[procfile.StatRSS] > maxPages ||
		len(f[procfile.StatState]) != 1 || f[procfile.StatState][0] == 0 {
		return s, damaged("a field makes no sense")
	}
	for i := procfile.StatUTime; i <= procfile.StatCSTime; i++ {
		s.ticks += float64(n[i])
	}
	s.own = float64(n[procfile.StatUTime]) + float64(n[procfile.StatSTime])
	s.ppid, s.state = int32(n[procfile.StatParent]), f[procfile.StatState][0]
	s.threads = float64(n[procfile.StatThreads])
	s.start, s.pages, s.faults = n[procfile.StatStart], n[procfile.StatRSS], n[procfile.StatMinFlt]
	copy(s.name[:], comm)
	s.stack, _ = procfile.ParseCount(f[procfile.StatStack])
	return s, nil
}

// parseValue returns the number of a line "KEY: 123" or "KEY: 123 kB".
func parseValue(data []byte, key string) (uint64, bool) {
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found || string(name) != key {
			continue
		}
		var f [2][]byte
		procfile.SplitFields(value, f[:])
		return procfile.ParseCount(f[0])
	}
	return 0, false
}

// parseIO parses /proc/PID/io.
func parseIO(data []byte) (io IO, err error) {
	for _, line := range io.lines() {
		n, ok := parseValue(data, line.key)
		if !ok {
			return IO{}, damaged("it lacks " + line.key)
		}
		*line.into = float64(n)
	}
	return io, nil
}
