package collector

import (
	"slices"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// noteGPUs updates the devices in place by a Reading, and returns them with what is missing of
// them. The job's environment says which of them are its own, until those of its processes are known.
func noteGPUs(gpus []GPU, r *gpu.Reading, job host.JobOptions, environs [][]string) ([]GPU, []series.Missing) {
	gaps := slices.Clone(r.Missing)
	devices := r.Devices[:min(len(r.Devices), MaxGPUs)]

	if known := len(gpus); known < len(devices) {
		for _, d := range devices[known:] {
			gpus = append(gpus, GPU{Device: d, EnergyJoules: series.Unknown(), ClockMHz: series.Unknown()})
		}
		if job.Source != "" {
			ofJob, doubt := gpu.JobDevices(devices, job.Env)
			for i := range ofJob {
				gpus[i].OfJob = ofJob[i]
			}
			if doubt != "" {
				gaps = append(gaps, series.Missing{What: "gpus.of_job", Code: gpu.Unsure, Why: doubt})
			}
		}
	}
	noteVisible(gpus, devices, environs)

	for i := range devices {
		gpus[i].note(r.States[i])
	}
	return gpus, gaps
}

// leastVisible is the part of the looks at the processes of the job in which one of them could use a device that is
// the job's: a script may begin and end with commands that could use all.
const leastVisible = 0.1

// noteVisible settles which devices are the job's by the environments of its processes; nil if they were not read.
func noteVisible(gpus []GPU, devices []gpu.Device, environs [][]string) {
	if len(environs) == 0 {
		return
	}
	visible := make([]bool, len(devices))
	for _, env := range environs {
		ofJob, _ := gpu.JobDevices(devices, env)
		for i, its := range ofJob {
			visible[i] = visible[i] || its
		}
	}
	for i := range devices {
		g := &gpus[i]
		if g.looks++; visible[i] {
			g.visible++
		}
		g.OfJob = g.visible >= leastVisible*g.looks
	}
}
