package collector

import (
	"slices"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// noteGPUs updates the devices in place by a Reading, and returns them with what is missing of
// them. The job's environment says which of them are its own.
func noteGPUs(gpus []GPU, r *gpu.Reading, job host.JobOptions) ([]GPU, []series.Gap) {
	gaps := slices.Clone(r.Missing)
	devices := r.Devices[:min(len(r.Devices), MaxGPUs)]

	if known := len(gpus); known < len(devices) {
		for _, d := range devices[known:] {
			gpus = append(gpus, GPU{Device: d, EnergyJoules: series.Unknown(), ClockMHz: series.Unknown()})
		}
		if job.Source != "" {
			ofJob, doubt := gpu.OfJob(devices, job.Env)
			for i := range ofJob {
				gpus[i].OfJob = ofJob[i]
			}
			if doubt != "" {
				gaps = append(gaps, series.Gap{What: "gpus.of_job", Code: gpu.Unsure, Why: doubt})
			}
		}
	}

	for i := range devices {
		gpus[i].note(r.States[i])
	}
	return gpus, gaps
}
