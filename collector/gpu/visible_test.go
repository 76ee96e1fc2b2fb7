package gpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// gpuNode returns the devices of a node with n devices of a vendor.
func gpuNode(vendor string, n int) []Device {
	var devices []Device
	for i := range n {
		devices = append(devices, Device{Index: i, Vendor: vendor, Name: "X", UUID: fmt.Sprintf("GPU-%d%d00beef-1b2c", i%2, i)})
	}
	return devices
}

// gpuChosen returns the indexes of the job's devices, followed by "?" if JobDevices returns a note.
func gpuChosen(devices []Device, env ...string) string {
	yes, note := JobDevices(devices, env)
	var s []string
	for i := range devices {
		if yes[i] {
			s = append(s, fmt.Sprint(devices[i].Index))
		}
	}
	if note != "" {
		s = append(s, "?")
	}
	return strings.Join(s, " ")
}

func TestJobDevices_FollowsCUDAVariables(t *testing.T) {
	four := gpuNode("nvidia", 4) // GPU-0000beef, GPU-1100beef, GPU-0200beef, GPU-1300beef
	for list, want := range map[string]string{
		"0,1,2,3": "0 1 2 3", "2": "2", "3,1": "1 3", " 1 , 2 ": "1 2",
		"": "", "-1": "", "NoDevFiles": "", "none": "", ",0": "",
		"0,-1,1": "0", "1,9,2": "1", "0,x,1": "0", "0,1x": "0", "4": "", "0:1": "",
		"0,0": "", "1,2,1": "", "99999999999999999999": "", "+1": "",
		"GPU-1100beef-1b2c": "1", "GPU-02": "2", "GPU-13,GPU-00": "0 3", "GPU-1": "", "GPU-": "", "GPU-02,GPU-1,GPU-00": "2",
		"GPU-ffff": "", "gpu-02": "", "2,GPU-00": "0 2", "GPU-00,0": "",
		"MIG-GPU-1100beef-1b2c/1/0": "1", "MIG-GPU-1100beef-1b2c/1/0,MIG-GPU-1100beef-1b2c/2/0": "1", "MIG-GPU-aaaa/1/0": "",
		"MIG-d184f67c-c95f-5ef2-a935-195bd0094fbd": "",
	} {
		got := gpuChosen(four, "CUDA_VISIBLE_DEVICES="+list)
		check.True(t, got == want, "CUDA_VISIBLE_DEVICES=%q: GPUs %q, want %q", list, got, want)
	}

	got := gpuChosen(four, "HOME=/root", "NVIDIA_VISIBLE_DEVICES=void", "CUDA_VISIBLE_DEVICES")
	check.True(t, got == "0 1 2 3", "without a selection: GPUs %q, want \"0 1 2 3\"", got)
	got = gpuChosen(four, "CUDA_VISIBLE_DEVICES=1", "SLURM_JOB_GPUS=2", "SLURM_STEP_GPUS=3")
	check.True(t, got == "1", "CUDA_VISIBLE_DEVICES=1 and Slurm's variables: GPUs %q, want \"1\"", got)
}

func TestJobDevices_NotesUncertainty(t *testing.T) {
	four := gpuNode("nvidia", 4)
	four[3].Name = "Y"
	got := gpuChosen(four, "CUDA_VISIBLE_DEVICES=0")
	check.True(t, got == "0 ?", "different models without CUDA_DEVICE_ORDER: GPUs %q, want \"0 ?\"", got)

	for _, env := range []string{"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=GPU-00"} {
		got := gpuChosen(four, "CUDA_VISIBLE_DEVICES=0", env)
		check.True(t, got == "0", "different models with %s: GPUs %q, want \"0\"", env, got)
	}

	mig := "CUDA_VISIBLE_DEVICES=MIG-d184f67c-c95f-5ef2-a935-195bd0094fbd"
	four[1].MIG = true
	got = gpuChosen(four, mig)
	check.True(t, got == "1", "MIG instance, one device with MIG: GPUs %q, want \"1\"", got)
	four[2].MIG = true
	got = gpuChosen(four, mig)
	check.True(t, got == "1 2 ?", "MIG instance, two devices with MIG: GPUs %q, want \"1 2 ?\"", got)
}

func TestJobDevices_FollowsSlurmVariables(t *testing.T) {
	for _, c := range []struct {
		visible int
		env     string
		want    string
	}{
		{8, "SLURM_JOB_GPUS=2,5", "2 5"}, {8, "SLURM_JOB_GPUS=4-6", "4 5 6"}, {8, "SLURM_STEP_GPUS=1", "1"},
		{2, "SLURM_JOB_GPUS=2,5", "0 1"},  // constrained: as many numbers as visible devices
		{2, "SLURM_STEP_GPUS=7", "0 1"},   // constrained: no visible device has this number
		{4, "SLURM_JOB_GPUS=", "0 1 2 3"}, // empty
		{4, "SLURM_JOB_GPUS=all", "0 1 2 3"}, {4, "SLURM_JOB_GPUS=0-99999999999", "0 1 2 3"}, {4, "SLURM_JOB_GPUS=3-1", "0 1 2 3"},
	} {
		for _, vendor := range []string{"nvidia", "amd"} {
			got := gpuChosen(gpuNode(vendor, c.visible), c.env)
			check.True(t, got == c.want, "%d visible devices of %s, %s: GPUs %q, want %q", c.visible, vendor, c.env, got, c.want)
		}
	}

	got := gpuChosen(gpuNode("nvidia", 8), "SLURM_JOB_GPUS=0,1,2", "SLURM_STEP_GPUS=2")
	check.True(t, got == "2", "SLURM_JOB_GPUS=0,1,2 SLURM_STEP_GPUS=2: GPUs %q, want \"2\"", got)
}

func TestJobDevices_FollowsAMDVariables(t *testing.T) {
	four := gpuNode("amd", 4)
	for env, want := range map[string]string{
		"": "0 1 2 3", "ROCR_VISIBLE_DEVICES=1,3": "1 3", "ROCR_VISIBLE_DEVICES=": "", "ROCR_VISIBLE_DEVICES=GPU-0200BEEF-1b2c": "2",
		"HIP_VISIBLE_DEVICES=2": "2", "ROCR_VISIBLE_DEVICES=1,3 HIP_VISIBLE_DEVICES=1": "3", "HIP_VISIBLE_DEVICES=1,7,2": "1",
		"CUDA_VISIBLE_DEVICES=0": "0", "HIP_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=0": "1", "ROCR_VISIBLE_DEVICES=3,0 CUDA_VISIBLE_DEVICES=0": "3",
	} {
		got := gpuChosen(four, strings.Fields(env)...)
		check.True(t, got == want, "%s: GPUs %q, want %q", env, got, want)
	}

	both := append(gpuNode("nvidia", 2), gpuNode("amd", 2)...)
	both[2].Index, both[3].Index = 2, 3
	got := gpuChosen(both, "CUDA_VISIBLE_DEVICES=1", "ROCR_VISIBLE_DEVICES=0")
	check.True(t, got == "1 2", "NVIDIA and AMD, CUDA_VISIBLE_DEVICES=1 ROCR_VISIBLE_DEVICES=0: GPUs %q, want \"1 2\"", got)
	got = gpuChosen(both, "CUDA_VISIBLE_DEVICES=1")
	check.True(t, got == "1 2 3", "NVIDIA and AMD, only CUDA_VISIBLE_DEVICES=1: GPUs %q, want \"1 2 3\"", got)
}

func FuzzGPUOfJob(f *testing.F) {
	f.Add("0,1", "GPU-0", "1-2")
	f.Add("MIG-GPU-0200beef-1b2c/1/0", "-1", "")
	f.Fuzz(func(t *testing.T, cuda, rocr, slurm string) {
		both := append(gpuNode("nvidia", 3), gpuNode("amd", 2)...)
		for _, env := range [][]string{
			{"CUDA_VISIBLE_DEVICES=" + cuda, "ROCR_VISIBLE_DEVICES=" + rocr}, {"SLURM_JOB_GPUS=" + slurm},
		} {
			if yes, _ := JobDevices(both, env); len(yes) != len(both) {
				t.Fatalf("JobDevices = %v for %d devices, want one value per device", yes, len(both))
			}
		}
	})
}

// If a node has more devices than are monitored, the job may use a device that is not monitored.
func TestJobDevices_NotesDevicesNotMonitored(t *testing.T) {
	devices := gpuNode("nvidia", maxDevices)
	for list, want := range map[string]string{"18": "?", "3,18": "3 ?", "GPU-ffff": "?", "15": "15", "-1": "", "": "", "x": "", "1,none": "1"} {
		got := gpuChosen(devices, "CUDA_VISIBLE_DEVICES="+list)
		check.True(t, got == want, "CUDA_VISIBLE_DEVICES=%q: GPUs %q, want %q", list, got, want)
	}
	if _, note := JobDevices(devices, []string{"CUDA_VISIBLE_DEVICES=18"}); note != "CUDA_VISIBLE_DEVICES names 18, which is not among the 16 devices that perfagent follows" {
		t.Errorf("note = %q, want that device 18 is not among the 16 monitored devices", note)
	}
}

// Not only each number but also the length of the whole list is limited.
func TestSlurmNumbers_LimitsLengthOfList(t *testing.T) {
	for list, want := range map[string]int{"0,2-3": 3, "0-1023": 1024, strings.Repeat("0-1023,", 9) + "0": 0, "1024": 0, "x": 0} {
		got := slurmNumbers(list)
		check.True(t, len(got) == want, "slurmNumbers(%.20s): %d numbers, want %d", list, len(got), want)
	}
}
