package diagnosis

import (
	"path"
	"slices"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
)

// filledByCore reports whether a file system would have room without a core file of the job: then the crash is the
// reason that it is full, and not the other way round.
func (q *verdictInput) filledByCore(r host.FreeSpace) bool {
	return slices.ContainsFunc(q.end.Cores, func(c host.Core) bool {
		return slices.Contains(c.Paths, r.Path) && !(r.FreeMB+c.MB < fullMB)
	})
}

// coreLost reports whether the kernel wrote a core of the main process somewhere, so that what it filled is not known.
func (q *verdictInput) coreLost() bool {
	return q.end.CoreDumped && q.end.CoresWritten && len(q.end.Cores) == 0
}

// noteCore adds to the evidence the core of a process that a signal ended.
func (q *verdictInput) noteCore() {
	if q.end.CoreDumped {
		q.evidence["core_dumped"] = true
	}
	largest := 0.0
	for _, c := range q.end.Cores {
		largest = max(largest, c.MB)
	}
	if largest > 0 {
		q.note("core_mb", largest)
	}
}

// coreText returns a remark on a core file that filled a file system, or "" if none did.
func (q *verdictInput) coreText() string {
	q.noteCore()
	for _, r := range q.end.Space {
		if !Full(r) || q.fullBefore(r.Path) {
			continue
		}
		where := text.Printable(path.Clean(r.Path))
		for _, c := range q.end.Cores {
			if slices.Contains(c.Paths, r.Path) && q.filledByCore(r) {
				return "; a core file of " + text.SizeText(c.MB) + " filled the file system of " + where
			}
		}
		if q.coreLost() {
			return "; its core was dumped, and no room was left on the file system of " + where + " when it ended"
		}
	}
	return ""
}
