package collector

import (
	"strings"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// noteGPUs brings the devices up to a Reading, in place, and returns them with what is missing of them. The job's
// environment tells which of them are its own.
func noteGPUs(gpus []GPU, r *gpu.Reading, job host.JobOptions) ([]GPU, []Gap) {
	var gaps []Gap
	for _, g := range r.Missing {
		gaps = append(gaps, Gap(g))
	}
	devices := r.Devices[:min(len(r.Devices), MaxGPUs)]

	if known := len(gpus); known < len(devices) {
		for _, d := range devices[known:] {
			gpus = append(gpus, newGPU(d))
		}
		if job.Source != "" {
			ofJob, doubt := gpu.OfJob(devices, job.Env)
			for i := range ofJob {
				gpus[i].OfJob = ofJob[i]
			}
			if doubt != "" {
				gaps = append(gaps, Gap{"gpus.of_job", doubt})
			}
		}
	}

	for i := range devices {
		gpus[i].note(r.States[i])
	}
	return gpus, gaps
}

func newGPU(d gpu.Device) GPU {
	u := series.Unknown()
	return GPU{Index: d.Index, UUID: d.UUID, Name: strings.TrimSpace(d.Name), MemoryMB: series.Optional(d.MemoryMB),
		PowerLimitWatts: series.Optional(d.PowerLimitWatts), MIG: d.MIG, EnergyJoules: u, ClockMHz: u}
}
