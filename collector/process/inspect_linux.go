package process

import (
	"bytes"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
)

const (
	// maxInspections bounds the inspections in one scan: a command line and a peak cost some 30 µs. The other processes
	// are inspected in later scans.
	maxInspections = 128
	// inspectInterval is how long the peak of a process is valid if its resident size stays below it. It is valid for
	// longer if no page was faulted in.
	inspectInterval = 3 * time.Second
	// maxCommand is the maximum length of a command line in bytes.
	maxCommand = 200
)

// An inspection is the part of a process that is not read in each scan.
type inspection struct {
	name        commName
	stack       uint64
	commandRead bool // its command line was read since its last exec
	peakReadAt  time.Duration
	faults      uint64  // at peakReadAt
	preexisting bool    // it ran before the table began, and its peak may be from then
	initialPeak float64 // its peak at that time, bytes
}

// commName is the kernel's name of a process (comm), which changes with exec.
type commName [16]byte

// bracketed returns the name as ps(1) shows it for a process without a command line.
func (n commName) bracketed() string {
	text, _, _ := bytes.Cut(n[:], []byte{0})
	return "[" + strings.ToValidUTF8(string(text), "�") + "]"
}

// inspect reads the command line of a process after its first scan and after an exec, and its peak memory if that may
// have risen.
func (t *Tree) inspect(e *entry, p *proc) {
	b, resident := &t.table, float64(p.rss())
	if p.name != e.name || p.stack != e.stack {
		e.name, e.stack, e.commandRead = p.name, p.stack, false
	}

	risen := resident > e.row.PeakMemory || p.faults != e.faults && b.now-e.peakReadAt >= inspectInterval
	e.row.PeakMemory = max(e.row.PeakMemory, resident)
	if p.state == 'Z' || e.commandRead && !risen || b.inspections >= maxInspections {
		return
	}

	b.inspections++
	if !e.commandRead {
		e.commandRead = true
		if command := t.commandOf(p.pid); command != "" {
			e.row.Command = command
		}
	}
	if risen {
		e.faults, e.peakReadAt = p.faults, b.now
		t.readPeakMemory(e)
	}
}

// readPeakMemory reads the peak memory (VmHWM) of a process. If the process ran before the table began, the peak counts
// only once it has risen.
func (t *Tree) readPeakMemory(e *entry) {
	data, err := t.dir.read(int32(e.row.PID), "status")
	if err != nil {
		return // it has ended; otherwise its resident size has to do
	}
	kib, ok := parseValue(data, "VmHWM")
	if !ok || kib > maxPages {
		return
	}

	mark := float64(kib << 10)
	switch {
	case !e.preexisting:
	case e.initialPeak == 0:
		e.initialPeak = mark
		return
	case mark <= e.initialPeak:
		return
	}
	e.row.PeakMemory = max(e.row.PeakMemory, mark)
}

// commandOf returns the command line of a process, or "" if the kernel has none.
func (t *Tree) commandOf(pid int32) string {
	data, err := t.dir.readStart(pid, "cmdline")
	data = bytes.TrimRight(data, "\x00")
	if err != nil || len(data) == 0 {
		return ""
	}
	return t.commandText(strings.Split(string(data), "\x00"))
}

// commandText joins args to one line of at most maxCommand bytes, after Redact.
func (t *Tree) commandText(args []string) string {
	if t.o.Redact != nil {
		args = t.o.Redact(args)
	}
	return text.Prefix(strings.Join(args, " "), maxCommand)
}
