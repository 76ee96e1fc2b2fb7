package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/scheduler"
)

// JobDevices reports which of all devices of a node a job with this environment was given, and in note
// what is uncertain about it ("" if nothing).
//
// CUDA_VISIBLE_DEVICES is read as CUDA does: in its order up to the first invalid entry; by index,
// UUID, or a prefix of one that no other device has. "", "-1" and "NoDevFiles" are none, and so is
// a list that names a device twice. ROCR_VISIBLE_DEVICES and, counted among what that leaves,
// HIP_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES are read alike for AMD's. If these are not set,
// Slurm's SLURM_STEP_GPUS or SLURM_JOB_GPUS say it, by the node's own numbers. With none of them
// all visible devices are the job's, which is right in a container. NVIDIA_VISIBLE_DEVICES is not
// read: it is an order to the container runtime, and outside of a container it means nothing.
func JobDevices(devices []Device, env []string) (ofJob []bool, note string) {
	var nvidia, amd []int
	for i, d := range devices {
		if d.Vendor == "amd" {
			amd = append(amd, i)
		} else {
			nvidia = append(nvidia, i)
		}
	}

	ofJob = make([]bool, len(devices))
	chosen, note := chooseNVIDIA(devices, nvidia, env)
	for _, i := range append(chosen, chooseAMD(devices, amd, env, len(nvidia) == 0)...) {
		ofJob[i] = true
	}
	return ofJob, note
}

// IsSelectionVariable reports whether OfJob reads a variable of this name.
func IsSelectionVariable(name string) bool {
	switch name {
	case "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES":
		return true
	}
	return strings.HasSuffix(name, "_GPUS") && slices.ContainsFunc(scheduler.Systems(), func(s scheduler.System) bool {
		return slices.Contains(s.GPUs, name)
	})
}

// chooseNVIDIA returns the positions of the job's devices in the list of all.
func chooseNVIDIA(devices []Device, all []int, env []string) (chosen []int, note string) {
	list, set := lookup(env, "CUDA_VISIBLE_DEVICES")
	if !set {
		return chooseSlurm(devices, all, env), ""
	}

	order, _ := lookup(env, "CUDA_DEVICE_ORDER")
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if id, ok := strings.CutPrefix(entry, "MIG-"); ok {
			found, unsure := migParents(devices, all, id)
			if len(found) == 0 {
				break
			}
			if unsure {
				note = "CUDA_VISIBLE_DEVICES names a MIG instance, which does not say of which device: " +
					"all with MIG on are counted"
			}
			chosen = append(chosen, found...) // several instances of one device are no mistake
			continue
		}
		i, ok := findDevice(devices, all, entry)
		if !ok {
			if len(all) == maxDevices && beyond(entry) {
				note = fmt.Sprintf("CUDA_VISIBLE_DEVICES names %s, which is not among the %d devices that are followed",
					clean(entry), maxDevices)
			}
			break
		}
		if slices.Contains(chosen, i) {
			return nil, note
		}
		chosen = append(chosen, i)
		if entry[0] <= '9' && order != "PCI_BUS_ID" && mixed(devices, all) {
			note = "CUDA counts different models by their speed, nvidia-smi by the bus: " +
				"set CUDA_DEVICE_ORDER=PCI_BUS_ID for certainty"
		}
	}

	return chosen, note
}

// migParents returns the devices that a MIG instance may belong to. "GPU-…/1/0", the older form,
// names it.
func migParents(devices []Device, all []int, id string) (found []int, unsure bool) {
	uuid, _, old := strings.Cut(id, "/")
	for _, i := range all {
		if d := devices[i]; old && d.UUID != "" && d.UUID == uuid || !old && d.MIG {
			found = append(found, i)
		}
	}
	return found, !old && len(found) > 1
}

// findDevice returns the one device with an index or a UUID that begins so.
func findDevice(devices []Device, all []int, entry string) (place int, ok bool) {
	index, err := strconv.ParseUint(entry, 10, 16)
	for _, i := range all {
		d := devices[i]
		if err == nil && d.Index == int(index) {
			return i, true
		}
		if err != nil && isUUID(entry) && strings.HasPrefix(d.UUID, entry) {
			if ok {
				return 0, false
			}
			place, ok = i, true
		}
	}
	return place, ok
}

// beyond reports whether an entry may be a device that is not followed.
func beyond(entry string) bool {
	index, err := strconv.ParseUint(entry, 10, 16)
	return err == nil && index >= maxDevices || err != nil && isUUID(entry)
}

// isUUID reports whether an entry begins a UUID: "GPU-" and something, as the bare word would be
// anybody's.
func isUUID(entry string) bool { return len(entry) > len("GPU-") && strings.HasPrefix(entry, "GPU-") }

// mixed reports whether the devices are of different models.
func mixed(devices []Device, all []int) bool {
	return slices.ContainsFunc(all, func(i int) bool { return devices[i].Name != devices[all[0]].Name })
}

// chooseAMD is chooseNVIDIA for AMD's devices, which count from 0 among themselves.
// CUDA_VISIBLE_DEVICES is also HIP's, but beside NVIDIA's devices it is theirs.
func chooseAMD(devices []Device, all []int, env []string, alone bool) []int {
	limited := false
	filter := func(key string, from []int) []int {
		list, set := lookup(env, key)
		if !set {
			return from
		}
		limited = true
		var chosen []int
		for entry := range strings.SplitSeq(list, ",") {
			i, ok := ordinal(devices, from, strings.TrimSpace(entry))
			if !ok || slices.Contains(chosen, i) {
				break
			}
			chosen = append(chosen, i)
		}
		return chosen
	}

	chosen := filter("ROCR_VISIBLE_DEVICES", all)
	hip := "HIP_VISIBLE_DEVICES"
	if _, set := lookup(env, hip); !set && alone {
		hip = "CUDA_VISIBLE_DEVICES"
	}
	if chosen = filter(hip, chosen); limited {
		return chosen
	}
	return chooseSlurm(devices, all, env)
}

// ordinal finds a device by its position among others, or by its UUID.
func ordinal(devices []Device, from []int, entry string) (place int, ok bool) {
	n, err := strconv.ParseUint(entry, 10, 16)
	if err == nil {
		if int(n) < len(from) {
			return from[n], true
		}
		return 0, false
	}
	for _, i := range from {
		if devices[i].UUID != "" && strings.EqualFold(devices[i].UUID, entry) {
			return i, true
		}
	}
	return 0, false
}

// chooseSlurm follows Slurm's list. Its numbers count the whole node's devices. If the step sees only
// its own devices (ConstrainDevices), these are counted from 0 again, and all of them are the
// job's.
func chooseSlurm(devices []Device, all []int, env []string) []int {
	list, set := scheduler.GPUs(func(key string) (string, bool) { return lookup(env, key) })
	numbers := slurmNumbers(list)
	if !set || len(numbers) == 0 || len(numbers) == len(all) {
		return all
	}

	var chosen []int
	for place, i := range all {
		n := devices[i].Index
		if devices[i].Vendor == "amd" {
			n = place
		}
		if slices.Contains(numbers, n) {
			chosen = append(chosen, i)
		}
	}

	if len(chosen) < len(numbers) { // some are not to be seen by this number
		return all
	}
	return chosen
}

// slurmNumbers parses "0,2-3". It returns nil for anything else.
func slurmNumbers(list string) (numbers []int) {
	for entry := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(entry), "-")
		if !isRange {
			last = first
		}
		a, err := strconv.ParseUint(first, 10, 10)
		b, err2 := strconv.ParseUint(last, 10, 10)
		if err != nil || err2 != nil {
			return nil
		}
		for n := a; n <= b && len(numbers) < 1024; n++ {
			numbers = append(numbers, int(n))
		}
	}
	return numbers
}
