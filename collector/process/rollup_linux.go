package process

import (
	"bytes"

	"github.com/perfagent/perfagent/internal/procfile"
)

// A rollup is the memory of a process, in bytes. What the kernel does not say is 0.
type rollup struct {
	pss     uint64 // a page that n processes share counts one n-th in each
	pssAnon uint64 // the part of pss that no file has
	shmem   uint64 // the part of pss in shared memory and tmpfs
	anon    uint64 // pages that no file has, resident, in full
	private uint64 // resident pages that no other process has mapped
	swap    uint64 // swapped out, shared as in pss; not in it
	// Huge pages of hugetlbfs, which are not in pss: its own, and those that others have mapped, too.
	huge, hugeShared uint64
	parts            bool // pssAnon and shmem are told, as since Linux 5.3
}

// shared returns the anonymous memory that counts for other processes.
func (r *rollup) shared() uint64 {
	counted := r.pssAnon
	if !r.parts {
		counted = r.pss
	}
	return r.anon - min(r.anon, counted)
}

// rollupKeys are the lines of /proc/PID/smaps_rollup that are used, see parseRollup.
var rollupKeys = [...]string{"Pss", "Pss_Anon", "Pss_Shmem", "Anonymous", "Private_Clean", "Private_Dirty",
	"SwapPss", "Private_Hugetlb", "Shared_Hugetlb"}

// parseRollup parses /proc/PID/smaps_rollup (proc(5)).
func parseRollup(data []byte) (rollup, error) {
	var v [len(rollupKeys)]uint64
	if !parseKB(data, rollupKeys[:], v[:]) {
		return rollup{}, damaged("it has no line of Pss in kB")
	}
	return rollup{pss: v[0], pssAnon: v[1], shmem: v[2], anon: v[3], private: v[4] + v[5],
		swap: v[6], huge: v[7], hugeShared: v[8], parts: bytes.Contains(data, []byte("Pss_Shmem:"))}, nil
}

// statusKeys are the lines of /proc/PID/status that stand in for smaps_rollup, see parseStatus.
var statusKeys = [...]string{"VmRSS", "RssShmem", "VmSwap", "HugetlbPages"}

// parseStatus parses /proc/PID/status (proc(5)). Its pss is the resident size.
func parseStatus(data []byte) (rollup, error) {
	var v [len(statusKeys)]uint64
	if !parseKB(data, statusKeys[:], v[:]) {
		return rollup{}, damaged("it has no line of VmRSS in kB")
	}
	return rollup{pss: v[0], shmem: v[1], swap: v[2], huge: v[3]}, nil
}

// parseKB takes the numbers of lines "KEY: 123 kB", in bytes. It reports whether the first key has one.
func parseKB(data []byte, keys []string, v []uint64) (ok bool) {
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
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
