package journal

import (
	"errors"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/process"
)

// The table of processes is written when it has changed, and the more seldom the larger it is: a journal
// that grows faster is rewritten more often.
const (
	tableEvery = 3 * time.Second // a small one
	tableBytes = 1 << 10         // as many more take as much longer
	tableLate  = 15 * time.Second
)

// A writtenTable is the table of processes that was written last.
type writtenTable struct {
	list []process.Process
	next time.Duration // when the next may be written, since the start
}

// appendTable adds the table of processes to the line of a sample if it is time for it.
func (j *Journal) appendTable(out []byte, rec *collector.Recording) []byte {
	at := rec.End.Mono - rec.Start.Mono
	if len(rec.Processes) == 0 || at < j.table.next || slices.Equal(rec.Processes, j.table.list) {
		return out
	}
	line := appendMember(out, `,"processes":`, rec.Processes)
	rest := tableEvery * time.Duration(tableBytes+len(line)-len(out)) / tableBytes
	j.table = writtenTable{list: rec.Processes, next: at + min(rest, tableLate)}
	return line
}

// checkTable rejects what only damage can produce.
func checkTable(list []process.Process) error {
	for _, p := range list {
		if p.PID < 1 || p.PPID < 0 || p.Start < 0 || p.End < 0 || p.Threads < 0 ||
			p.CPUSeconds < 0 || p.EndedChildren < 0 || p.PeakMemory < 0 {
			return errors.New("a process without an ID, or with a number below 0")
		}
	}
	return nil
}
