package reporter

import "slices"

// MinComparedSeconds is the shortest time that is compared with earlier runs. Differences between shorter times are
// mostly noise.
const MinComparedSeconds = 0.1

// Earlier describes the resource usage of the node in earlier runs of the same command line. It covers only runs with
// exit code 0, because a run that failed or was cut off did not do the same work.
type Earlier struct {
	Runs        int    `json:"runs"`
	WallSeconds Spread `json:"wall_seconds"`
	// CPUSeconds and PeakMemoryMB are nil unless all the runs have them.
	CPUSeconds   *Spread `json:"cpu_seconds,omitempty"`
	PeakMemoryMB *Spread `json:"peak_memory_mb,omitempty"`
}

// Spread is the range of a number over several runs, and its median.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// NewEarlier returns the summary of runs with the given heads; nil if there are none, or if the length of a run is
// unknown.
func NewEarlier(heads []*Head) *Earlier {
	spread := func(value func(*Head) float64) *Spread {
		var values []float64
		for _, h := range heads {
			values = append(values, value(h))
		}
		slices.Sort(values)
		n := len(values)
		if n == 0 || !(values[0] > 0) { // 0 means unknown
			return nil
		}
		return &Spread{values[0], values[(n-1)/2]/2 + values[n/2]/2, values[n-1]}
	}
	wall := spread(func(h *Head) float64 { return h.Run.WallSeconds })
	if wall == nil {
		return nil
	}
	return &Earlier{
		Runs: len(heads), WallSeconds: *wall,
		CPUSeconds:   spread(func(h *Head) float64 { return h.Job.KnownCPUSeconds() }),
		PeakMemoryMB: spread(func(h *Head) float64 { return h.Job.KnownPeakMemoryMB() }),
	}
}

// KnownCPUSeconds returns the CPU time of the job; 0 if it is unknown, or only a lower bound of it is known.
func (j *Job) KnownCPUSeconds() float64 {
	if j == nil || j.CPUAtLeast {
		return 0
	}
	return j.CPUSeconds
}

// KnownPeakMemoryMB returns the peak memory of the whole job in MiB; 0 if it is unknown.
func (j *Job) KnownPeakMemoryMB() float64 {
	if j == nil {
		return 0
	}
	return j.PeakMemoryMB
}
