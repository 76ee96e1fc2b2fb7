package process

import (
	"bytes"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
)

const (
	// maxInspections limits the inspections per scan: reading a command line and a peak costs about 30 µs. Later scans
	// inspect the rest.
	maxInspections = 128
	// inspectInterval is the minimum time between two reads of the peak of a process while its resident size stays
	// below that peak. Without page faults, the peak cannot have risen and is not read again.
	inspectInterval = 3 * time.Second
	// maxCommand is the maximum length of a command line in bytes.
	maxCommand = 200
)

// An inspection holds the values of a process from files that are not read in each scan.
type inspection struct {
	name        commName
	stack       uint64
	commandRead bool // the command line was read since the last exec
	peakReadAt  time.Duration
	faults      uint64  // minor faults at peakReadAt
	preexisting bool    // the process ran before the table began, so its peak may be older than the table
	initialPeak float64 // the peak of a preexisting process when it was first read, in bytes
}

// commName is the kernel's name of a process (comm), which changes with exec.
type commName [16]byte

// String returns the name as text.
func (n commName) String() string {
	text, _, _ := bytes.Cut(n[:], []byte{0})
	return strings.ToValidUTF8(string(text), "�")
}

// bracketed returns "[NAME]", which is how ps(1) shows a process without a command line.
func (n commName) bracketed() string { return "[" + n.String() + "]" }

// command returns the command line of the process or, if it is not known, the name.
func (e *entry) command() string {
	if bracketed := e.name.bracketed(); e.row.Command == bracketed {
		return e.name.String()
	}
	return e.row.Command
}

// inspect reads the command line of p in its first scan and after an exec, and its peak memory if that may have risen.
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

// readPeakMemory reads the peak memory (VmHWM) of e's process. If the process ran before the table began, the peak
// counts only after it has risen above the first one read.
func (t *Tree) readPeakMemory(e *entry) {
	data, err := t.dir.read(int32(e.row.PID), "status")
	if err != nil {
		return // the process has ended, or its resident size must suffice
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

// commandOf returns the command line of process pid, or "" if the kernel has none.
func (t *Tree) commandOf(pid int32) string {
	data, _ := t.dir.read(pid, "cmdline") // the beginning of a long command line is enough
	data = bytes.TrimRight(data, "\x00")
	if len(data) == 0 {
		return ""
	}
	return t.commandText(strings.Split(string(data), "\x00"))
}

// commandText redacts args and joins them to one line of at most maxCommand bytes.
func (t *Tree) commandText(args []string) string {
	if t.o.Redact != nil {
		args = t.o.Redact(args)
	}
	return text.Prefix(strings.Join(args, " "), maxCommand)
}
