package agent

import "github.com/perfagent/perfagent/job"

// ownCPU returns 0: there is no rusage on this system.
func ownCPU() float64 { return 0 }

// peakRSS returns 0: it is not known on this system.
func peakRSS() int64 { return 0 }

// programUsage returns nothing: there is no rusage on this system.
func programUsage() job.Usage { return job.Usage{} }
