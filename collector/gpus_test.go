package collector

import (
	"fmt"
	"math"
	"testing"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
)

// Once the environments of the job's processes are known, the GPUs that they can use are the job's. GPUs that are
// visible in only a few checks, for example to the first commands of a script, are not.
func TestNoteGPUs_AttributesGPUsByProcesses(t *testing.T) {
	r := &gpu.Reading{States: make([]gpu.State, 4)}
	for i := range 4 {
		r.Devices = append(r.Devices, gpu.Device{Index: i, Vendor: "nvidia"})
	}
	var gpus []GPU
	look := func(times int, want string, environs ...[]string) {
		t.Helper()
		for range times {
			gpus, _ = noteGPUs(gpus, r, host.JobOptions{Source: host.JobFromTree, Env: []string{"HOME=/"}}, environs)
		}
		got := ""
		for _, g := range gpus {
			if g.OfJob {
				got += fmt.Sprint(g.Index)
			}
		}
		check.True(t, got == want, "after %d checks of environments %q: GPUs of the job = %q, want %q", times, environs, got, want)
	}

	one, two := []string{"CUDA_VISIBLE_DEVICES=1"}, []string{"CUDA_VISIBLE_DEVICES=2"}
	look(1, "0123") // according to the job's environment
	look(1, "1", one)
	look(1, "1")
	look(10, "12", one, two)
	look(2, "0123", []string{}) // one process can use all GPUs
	look(10, "12", one, two)
	look(1, "12")
	look(300, "1", one)
}

// Idle gaps last at least a second. Other activity is recorded only during these gaps.
func TestGPU_NoteIdleCountsGapsOfASecondOrMore(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		use  []float64 // in samples of half a second
		want IdleGaps
	}{
		"never":             {[]float64{100, 6, 50}, IdleGaps{}},
		"too short":         {[]float64{100, 0, 100, 5, 100}, IdleGaps{}},
		"one second":        {[]float64{100, 0, 5, 100}, gaps(1, 1, 1)},
		"two gaps":          {[]float64{0, 0, 0, 99, 1, 1}, gaps(2.5, 2, 1.5)},
		"idle at the end":   {[]float64{99, 0, 0, 0, 0}, gaps(2, 1, 2)},
		"one value missing": {[]float64{0, 0, nan, 0, 0}, gaps(2, 2, 1)},
		"not measured":      {[]float64{nan, nan, nan}, IdleGaps{}},
	} {
		var g GPU
		for _, v := range c.use {
			s := idleSample(v)
			g.noteIdle(&s, 2)
		}
		check.True(t, g.IdleGaps == c.want, "%s: IdleGaps = %+v, want %+v", name, g.IdleGaps, c.want)
	}
}

// gaps returns the IdleGaps of samples made by idleSample, for the given idle time.
func gaps(seconds float64, n int64, longest float64) IdleGaps {
	return IdleGaps{Seconds: seconds, Count: n, LongestSeconds: longest,
		JobCPUs: GapMean{1.5 * seconds, seconds}, DiskRate: GapMean{5 * seconds, seconds}, Waiting: GapMean{40 * seconds, seconds}}
}

// idleSample returns a sample of half a second with the given utilization of the third GPU.
func idleSample(use float64) Sample {
	var s Sample
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.NaN(), 0.5
	}
	s.Values[GPUColumn(2, GPUUtilization)], s.Values[JobCPU] = use, 1.5
	s.Values[DiskReadRate], s.Values[DiskWriteRate], s.Values[PSIIOSome] = 2, 3, 40
	return s
}
