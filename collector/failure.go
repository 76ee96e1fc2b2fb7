package collector

import (
	"errors"
	"slices"

	"github.com/perfagent/perfagent/collector/host"
)

// A Failure is a reason for which a source, or one file of it, had no values, and how often.
type Failure struct {
	Source string
	File   string `json:",omitempty"` // "" = the whole source
	Why    string
	Count  int64
}

// noteFailures counts the reasons for which sources were absent.
func (s *Sampler) noteFailures(r *host.Reading) {
	for _, source := range host.Sources() {
		for _, err := range apart(r.Failed[source]) {
			s.noteFailure(source, err)
		}
	}
}

// apart lists the errors that were joined.
func apart(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, apart(e)...)
	}
	return all
}

func (s *Sampler) noteFailure(source string, err error) {
	f := Failure{Source: source, Why: err.Error(), Count: 1}
	if of := (host.FileError{}); errors.As(err, &of) {
		f.File = of.File
	}
	i := slices.IndexFunc(s.rec.Failures, func(old Failure) bool { return old.Source == source && old.Why == f.Why })
	switch {
	case i >= 0:
		s.rec.Failures[i].Count++
	case len(s.rec.Failures) < maxFailures:
		s.rec.Failures = append(s.rec.Failures, f)
	}
}

// AffectedBy reports whether a failure keeps a column from being measured.
func (c Column) AffectedBy(f Failure) bool {
	if f.Source != c.Source() {
		return false
	}
	files := c.files()
	return f.File == "" || files == nil || slices.Contains(files, f.File)
}

// files returns the files that a column of the job or of its control group is made from, of v2 and
// v1, and the parts of /proc/PID. nil means all of its source.
func (c Column) files() []string {
	switch c {
	case JobCPU, JobProcesses, JobThreads:
		return []string{"stat"}
	case JobMemory:
		return []string{"memory"}
	case JobRead, JobWrite, JobReadRate, JobWriteRate:
		return []string{"io"}
	case JobPageCache:
		return []string{"memory.stat"}
	case JobThrottled:
		return []string{"cpu.stat", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"}
	case LimitMemory, LimitMemoryPercent:
		return []string{
			"memory.stat", "memory.current", "memory.max", "memory.usage_in_bytes", "memory.limit_in_bytes",
		}
	case JobPSICPUSome, JobPSICPUFull:
		return []string{"cpu.pressure"}
	case JobPSIMemorySome, JobPSIMemoryFull:
		return []string{"memory.pressure"}
	case JobPSIIOSome, JobPSIIOFull:
		return []string{"io.pressure"}
	}
	return nil
}
