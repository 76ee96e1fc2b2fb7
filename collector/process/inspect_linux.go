package process

import (
	"bytes"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
)

const (
	// maxLooks bounds how many processes are looked at more closely in one scan: a command line and a
	// high-water mark cost some 30 µs. The others have their turn in later scans.
	maxLooks = 128
	// lookAgain is for how long the high-water mark holds of a process that does not exceed it. If no
	// page was faulted in, it holds for longer.
	lookAgain = 3 * time.Second
	// maxCommand is the length of a command line in bytes.
	maxCommand = 200
)

// An inspection is what is read of a process now and then, and not in each scan.
type inspection struct {
	name        commName
	stack       uint64
	commanded   bool // its command line was read since it executes this program
	markedAt    time.Duration
	faults      uint64  // when its high-water mark was read
	preexisting bool    // it ran before the table began, and its high-water mark may be from then
	initialPeak float64 // the mark as it was then, bytes
}

// commName is the kernel's name of a process, which changes when it executes another program.
type commName [16]byte

// bracketed returns the name as ps(1) shows it where there is no command line.
func (n commName) bracketed() string {
	text, _, _ := bytes.Cut(n[:], []byte{0})
	return "[" + strings.ToValidUTF8(string(text), "�") + "]"
}

// inspect reads the command line of a process that is new or has executed another program, and its
// high-water mark if that may have risen.
func (t *Tree) inspect(e *entry, p *proc) {
	b, resident := &t.table, float64(p.rss())
	if p.name != e.name || p.stack != e.stack {
		e.name, e.stack, e.commanded = p.name, p.stack, false
	}

	risen := resident > e.row.PeakMemory || p.faults != e.faults && b.now-e.markedAt >= lookAgain
	e.row.PeakMemory = max(e.row.PeakMemory, resident)
	if p.state == 'Z' || e.commanded && !risen || b.looks >= maxLooks {
		return
	}

	b.looks++
	if !e.commanded {
		e.commanded = true
		if command := t.commandOf(p.pid); command != "" {
			e.row.Command = command
		}
	}
	if risen {
		e.faults, e.markedAt = p.faults, b.now
		t.readPeakMemory(e)
	}
}

// readPeakMemory reads the high-water mark of a process. One of a process that ran before the table began
// counts only if it has risen since.
func (t *Tree) readPeakMemory(e *entry) {
	data, err := t.dir.read(int32(e.row.PID), "status")
	if err != nil {
		return // it has ended; or its resident size has to do
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

// commandText returns arguments as one line within bounds, without the secrets that Redact knows.
func (t *Tree) commandText(args []string) string {
	if t.o.Redact != nil {
		args = t.o.Redact(args)
	}
	return text.Prefix(strings.Join(args, " "), maxCommand)
}
