package collector

import (
	"fmt"
	"testing"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
)

// The GPUs of the job are those that its processes can use, once their environments are known. GPUs that are visible in
// only a few checks, such as to the first commands of a script, are not the job's.
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
			t.Errorf("after %d checks of environments %q: the job's GPUs are %q, want %q", times, environs, got, want)
		}
	}

	one, two := []string{"CUDA_VISIBLE_DEVICES=1"}, []string{"CUDA_VISIBLE_DEVICES=2"}
	look(1, "0123") // by the job's environment
	look(1, "1", one)
	look(1, "1")
	look(10, "12", one, two)
	look(2, "0123", []string{}) // one process can use all
	look(10, "12", one, two)
	look(1, "12")
	look(300, "1", one)
}
