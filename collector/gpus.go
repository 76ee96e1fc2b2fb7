package collector

import (
	"slices"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// noteGPUs updates gpus in place with r, and returns gpus and the values that r could not measure. Until the
// environments of the job's processes are known, the environment of the job decides which GPUs are the job's.
func noteGPUs(gpus []GPU, r *gpu.Reading, job host.JobOptions, environs [][]string) ([]GPU, []series.Missing) {
	missing := slices.Clone(r.Missing)
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
				missing = append(missing, series.Missing{What: "gpus.of_job", Code: gpu.Unsure, Why: doubt})
			}
		}
	}
	noteVisible(gpus, devices, environs)

	for i := range devices {
		gpus[i].note(r.States[i])
	}
	return gpus, missing
}

// leastVisible is the smallest share of checks in which a process of the job could use a device that counts as the
// job's. One check is not enough: scripts may begin and end with commands that could use all devices.
const leastVisible = 0.1

// noteVisible updates which devices are the job's from environs, the environments of the job's processes; nil means not
// read.
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
