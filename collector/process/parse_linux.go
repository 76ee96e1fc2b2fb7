package process

import (
	"bytes"
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

// stat holds the fields of /proc/PID/stat that are used. Times are in ticks of 1/100 s.
type stat struct {
	ppid    int32
	state   byte
	ticks   float64 // user and system time of the process and its reaped children
	own     float64 // user and system time of the process alone
	threads float64
	start   uint64 // since boot
	pages   uint64 // resident
	faults  uint64 // minor page faults; each page copied on write causes one
	name    commName
	stack   uint64 // start of the stack, which changes with exec; 0 or 1 = unknown
	// clock is the CPU time from the process's clock just before the file was read; 0 = unknown.
	clock time.Duration
}

// numFields is the number of fields of /proc/PID/stat that are read.
const numFields = procfile.StatStack + 1

// maxPages is the maximum number of resident pages that is accepted, so that their size in bytes fits in 64 bits.
const maxPages = 1 << 50

// anyPID makes parseStat accept the stat of any process.
const anyPID = -1

// parseStat parses data, the /proc/PID/stat of process pid.
func parseStat(data []byte, pid int32) (stat, error) {
	var s stat
	var f [numFields][]byte
	first, comm, fields := procfile.SplitStat(data, f[:])
	if fields <= procfile.StatRSS {
		return s, contentError("no name in parentheses, or too few fields after it")
	}
	if n, ok := procfile.ParseCount(first); !ok || pid != anyPID && n != uint64(pid) {
		return s, contentError("it does not begin with its process ID")
	}

	var n [numFields]uint64
	for _, i := range [...]int{
		procfile.StatParent, procfile.StatMinFlt,
		procfile.StatUTime, procfile.StatSTime, procfile.StatCUTime, procfile.StatCSTime,
		procfile.StatThreads, procfile.StatStart, procfile.StatRSS,
	} {
		var ok bool
		if n[i], ok = procfile.ParseCount(f[i]); !ok {
			return s, contentError("a field is not a count")
		}
	}

	if n[procfile.StatParent] > maxPIDs || n[procfile.StatThreads] > maxPIDs || n[procfile.StatRSS] > maxPages ||
		len(f[procfile.StatState]) != 1 || f[procfile.StatState][0] == 0 {
		return s, contentError("a field is out of range")
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

// parseValue returns the number in the line of key, "KEY: 123" or "KEY: 123 kB".
func parseValue(data []byte, key string) (uint64, bool) {
	number, _, _ := bytes.Cut(procfile.Value(data, key), []byte{' '})
	return procfile.ParseCount(number)
}

// A rollup holds the memory of a process, in bytes. Unknown numbers are 0.
type rollup struct {
	pss     uint64 // a page shared by n processes counts as 1/n in each
	pssAnon uint64 // the anonymous part of pss
	shmem   uint64 // the part of pss in shared memory and tmpfs
	anon    uint64 // anonymous resident pages, in full
	private uint64 // resident pages that no other process has mapped
	swap    uint64 // swapped-out pages, divided as in pss; not part of pss
	// Private and shared huge pages of hugetlbfs, which are not part of pss.
	huge, hugeShared uint64
	parts            bool // the kernel reports pssAnon and shmem (since Linux 5.3)
}

// shared returns the part of anon that PSS assigns to other processes.
func (r *rollup) shared() uint64 {
	counted := r.pssAnon
	if !r.parts {
		counted = r.pss
	}
	return r.anon - min(r.anon, counted)
}

// rollupKeys are the lines of /proc/PID/smaps_rollup that parseRollup uses.
var rollupKeys = [...]string{"Pss", "Pss_Anon", "Pss_Shmem", "Anonymous", "Private_Clean", "Private_Dirty",
	"SwapPss", "Private_Hugetlb", "Shared_Hugetlb"}

// parseRollup parses /proc/PID/smaps_rollup (proc(5)).
func parseRollup(data []byte) (rollup, error) {
	var v [len(rollupKeys)]uint64
	if !parseKB(data, rollupKeys[:], v[:]) {
		return rollup{}, contentError("it has no Pss line in kB")
	}
	return rollup{pss: v[0], pssAnon: v[1], shmem: v[2], anon: v[3], private: v[4] + v[5],
		swap: v[6], huge: v[7], hugeShared: v[8], parts: bytes.Contains(data, []byte("Pss_Shmem:"))}, nil
}

// statusKeys are the lines of /proc/PID/status that parseStatus uses instead of smaps_rollup.
var statusKeys = [...]string{"VmRSS", "RssShmem", "VmSwap", "HugetlbPages"}

// parseStatus parses /proc/PID/status (proc(5)). The result's pss is the resident size.
func parseStatus(data []byte) (rollup, error) {
	var v [len(statusKeys)]uint64
	if !parseKB(data, statusKeys[:], v[:]) {
		return rollup{}, contentError("it has no VmRSS line in kB")
	}
	return rollup{pss: v[0], shmem: v[1], swap: v[2], huge: v[3]}, nil
}

// parseKB sets each v[i], in bytes, from the line "KEY: 123 kB" of keys[i]. It reports whether the first key has a
// number.
func parseKB(data []byte, keys []string, v []uint64) (ok bool) {
	for line := range bytes.Lines(data) {
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found {
			continue
		}
		for i, key := range keys {
			if string(name) != key {
				continue
			}
			var f [2][]byte
			procfile.SplitFields(value, f[:])
			kb, known := procfile.ParseCount(f[0])
			if known = known && kb <= maxPages; known && v[i] == 0 {
				v[i] = kb << 10
			}
			ok = ok || known && i == 0
		}
	}
	return ok
}
