package collector

const (
	// maxKernelLog bounds what is read of the kernel's log after a kill, maxKernelPoll what
	// is at other times.
	maxKernelLog  = 8 << 20
	maxKernelPoll = 64 << 10
)

// victims lists the processes that the kernel is known to have killed for want of memory
// since the baseline; nil where its log may not be read.
func (s *Sampler) victims(now Instant) []Victim {
	if s.log == nil {
		return nil
	}
	s.log.read(s.rec.Start, now, s.reader.job.tree.foreign, maxKernelLog)
	return s.log.victims()
}

// pollLog reads on in the kernel's log, where others are in the job's group, before a
// counter tells of a kill: whose a process was, only the newest scans know.
func (s *Sampler) pollLog(now Instant) {
	if job := &s.reader.job; s.log != nil && job.Source == JobFromTree && job.Group != nil {
		s.log.read(s.rec.Start, now, job.tree.foreign, maxKernelPoll)
	}
}
