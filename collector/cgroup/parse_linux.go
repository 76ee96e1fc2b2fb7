package cgroup

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/procfile"
)

// An entry is a line of /proc/PID/cgroup: the path of the process's group in one hierarchy. controllers is nil for v2.
type entry struct {
	controllers []string
	path        string
}

// parseEntries parses "ID:CONTROLLERS:PATH" lines. A path may contain colons and spaces, but the kernel does not allow
// newlines in the name of a group.
func parseEntries(data []byte) []entry {
	var all []entry
	for line := range strings.Lines(string(data)) {
		id, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		list, path, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !strings.HasPrefix(path, "/") {
			continue
		}
		switch {
		case list != "":
			all = append(all, entry{strings.Split(list, ","), path})
		case id == "0":
			all = append(all, entry{nil, path})
		}
	}
	return all
}

// A mount shows a part of a hierarchy at the directory point. root is the path, within the hierarchy, of the group at
// that directory. controllers is nil for v2.
type mount struct {
	root, point string
	v2          bool
	controllers []string
}

// parseMounts returns the mounts of control groups in data, a mountinfo file: "ID PARENT MAJ:MIN ROOT POINT OPTIONS
// [TAG...] - TYPE SOURCE SUPEROPTIONS" (proc_pid_mountinfo(5)).
func parseMounts(data []byte) []mount {
	var all []mount
	for line := range bytes.Lines(data) {
		left, right, ok := bytes.Cut(line, []byte(" - cgroup"))
		if !ok {
			continue
		}
		f, s := strings.Fields(string(left)), strings.Fields(string(right))
		if len(f) < 6 || !strings.HasPrefix(f[3], "/") || !strings.HasPrefix(f[4], "/") {
			continue
		}
		m := mount{root: procfile.Unescape(f[3]), point: procfile.Unescape(f[4])}
		switch {
		case bytes.HasPrefix(right, []byte("2 ")):
			m.v2 = true
		case bytes.HasPrefix(right, []byte(" ")) && len(s) >= 2:
			m.controllers = strings.Split(s[len(s)-1], ",")
		default:
			continue
		}
		all = append(all, m)
	}

	return all
}

// relativePath returns the part of path after root; "" if path is root. It reports false if path is not below root, or
// if it contains ".." because it is outside the control group namespace.
func relativePath(path, root string) (string, bool) {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	rest = strings.TrimRight(rest, "/")
	return rest, !slices.Contains(strings.Split(rest, "/"), "..")
}

// parseNumber parses one decimal number. It ignores white space around the number.
func parseNumber(data []byte) (float64, bool) {
	n, ok := procfile.ParseCount(bytes.TrimSpace(data))
	if !ok {
		return nan, false
	}
	return float64(n), true
}

// parseKeys sets the values of the given keys from lines "key value".
func parseKeys(data []byte, keys []string, values []float64) {
	for line := range bytes.Lines(data) {
		key, value, _ := bytes.Cut(line, []byte{' '})
		for i, k := range keys {
			if string(key) != k {
				continue
			}
			if v, ok := parseNumber(value); ok {
				values[i] = v
			}
		}
	}
}

// parseQuota parses cpu.max, "QUOTA PERIOD" in microseconds, and returns the quota in cores; NaN for "max".
func parseQuota(data []byte) (float64, bool) {
	quota, period, ok := bytes.Cut(bytes.TrimSpace(data), []byte{' '})
	p, okPeriod := parseNumber(period)
	if !ok || !okPeriod || p <= 0 {
		return nan, false
	}
	if string(quota) == "max" {
		return nan, true
	}
	q, ok := parseNumber(quota)
	if !ok || q <= 0 {
		return nan, false
	}
	return q / p, true
}

// parseLimit parses a number of bytes. It returns NaN for no limit: "max" or, in v1, a number of about 2^63.
func parseLimit(data []byte) (float64, bool) {
	data = bytes.TrimSpace(data)
	if string(data) == "max" {
		return nan, true
	}
	v, ok := parseNumber(data)
	if v >= 1<<62 {
		return nan, ok
	}
	return v, ok
}

// maxCPU is greater than the largest number of CPUs that the kernel supports.
const maxCPU = 1 << 16

// parseCPUs counts the CPUs of a list such as "0-3,7".
func parseCPUs(data []byte) (int, bool) {
	n := 0
	for rest := bytes.TrimSpace(data); len(rest) > 0; {
		var first, last uint64
		var ok bool
		if first, last, rest, ok = procfile.CutRange(rest); !ok || last >= maxCPU {
			return 0, false
		}
		n += int(last-first) + 1
	}

	return n, n <= maxCPU
}

// ParseStall parses the totals of a PSI file: a line "some avg10=… total=MICROSECONDS", and a similar line that begins
// with "full", which may be missing before Linux 5.13.
func ParseStall(data []byte) (Stall, error) {
	s := Stall{nan, nan}
	for line := range bytes.Lines(data) {
		kind, rest, _ := bytes.Cut(line, []byte{' '})
		_, total, _ := bytes.Cut(rest, []byte("total="))
		v, ok := parseNumber(total)
		switch {
		case !ok:
		case string(kind) == "some":
			s.Some = v / 1e6
		case string(kind) == "full":
			s.Full = v / 1e6
		}
	}
	if math.IsNaN(s.Some) {
		return Stall{nan, nan}, unexpectedContent(data)
	}
	return s, nil
}

// traffic holds the bytes of one device.
type traffic struct {
	device        string // "MAJ:MIN"
	reads, writes float64
}

// parseIOStat parses a line of v2's io.stat, "MAJ:MIN rbytes=N wbytes=N …". The line of an idle device may contain only
// the device number.
func parseIOStat(line []byte) (traffic, bool) {
	device, rest, _ := bytes.Cut(line, []byte{' '})
	t, ok := traffic{device: string(device)}, isDevice(device)
	for len(rest) > 0 {
		var field []byte
		field, rest, _ = bytes.Cut(rest, []byte{' '})
		key, value, _ := bytes.Cut(field, []byte{'='})
		var into *float64
		switch string(key) {
		case "rbytes":
			into = &t.reads
		case "wbytes":
			into = &t.writes
		default:
			continue
		}
		v, okValue := parseNumber(value)
		*into, ok = v, ok && okValue
	}

	return t, ok
}

// parseBlkio parses a line of v1's io_service_bytes, "MAJ:MIN Read N" or "MAJ:MIN Write N". It rejects lines with Sync,
// Async, Discard and Total: they count the same bytes again, or bytes that are not data.
func parseBlkio(line []byte) (traffic, bool) {
	device, rest, _ := bytes.Cut(line, []byte{' '})
	kind, value, _ := bytes.Cut(rest, []byte{' '})
	v, ok := parseNumber(value)
	t := traffic{device: string(device)}
	switch string(kind) {
	case "Read":
		t.reads = v
	case "Write":
		t.writes = v
	default:
		return t, false
	}
	return t, ok && isDevice(device)
}

// isDevice reports whether b is a device number, "MAJ:MIN".
func isDevice(b []byte) bool {
	major, minor, ok := bytes.Cut(b, []byte{':'})
	_, okMajor := procfile.ParseCount(major)
	_, okMinor := procfile.ParseCount(minor)
	return ok && okMajor && okMinor && len(b) < 32
}
