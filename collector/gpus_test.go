package collector

import (
	"fmt"
	"testing"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
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
		if got != want {
			t.Errorf("after %d checks of environments %q: GPUs of the job = %q, want %q", times, environs, got, want)
		}
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
