package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/scheduler"
)

// JobDevices reports which of a node's devices were given to a job with the environment env. note describes what is
// uncertain about the result, if anything.
//
// It reads CUDA_VISIBLE_DEVICES as CUDA does: in order, up to the first invalid entry. An entry is an index, a UUID, or
// a prefix of a UUID that no other device has. "", "-1" and "NoDevFiles" select no device, and neither does a list that
// names a device several times. For AMD devices, it reads ROCR_VISIBLE_DEVICES in a similar way; HIP_VISIBLE_DEVICES or
// CUDA_VISIBLE_DEVICES then selects from the result. If these variables are not set, Slurm's SLURM_STEP_GPUS or
// SLURM_JOB_GPUS selects the devices by their numbers on the node. Without any of these variables, all visible devices
// are the job's, which is correct in a container. JobDevices ignores NVIDIA_VISIBLE_DEVICES, which is a request to the
// container runtime and has no meaning outside a container.
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

// IsSelectionVariable reports whether JobDevices reads the variable name.
func IsSelectionVariable(name string) bool {
	switch name {
	case "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES":
		return true
	}
	return strings.HasSuffix(name, "_GPUS") && slices.ContainsFunc(scheduler.Systems(), func(s scheduler.System) bool {
		return slices.Contains(s.GPUs, name)
	})
}

// chooseNVIDIA returns the positions in devices of the job's NVIDIA devices. all are the positions of all NVIDIA
// devices.
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
				note = "CUDA_VISIBLE_DEVICES names a MIG instance, but not its device: " +
					"all with MIG on are counted"
			}
			chosen = append(chosen, found...) // several instances of one device are valid
			continue
		}
		i, ok := findDevice(devices, all, entry)
		if !ok {
			if len(all) == maxDevices && isUnfollowed(entry) {
				note = fmt.Sprintf("CUDA_VISIBLE_DEVICES names %s, which is not among the %d devices that perfagent follows",
					clean(entry), maxDevices)
			}
			break
		}
		if slices.Contains(chosen, i) {
			return nil, note
		}
		chosen = append(chosen, i)
		if entry[0] <= '9' && order != "PCI_BUS_ID" && hasMixedModels(devices, all) {
			note = "CUDA orders different models by speed, nvidia-smi by bus: " +
				"set CUDA_DEVICE_ORDER=PCI_BUS_ID for certainty"
		}
	}

	return chosen, note
}

// migParents returns the devices that may contain the MIG instance id. The older form of an ID, "GPU-…/1/0", names the
// device.
func migParents(devices []Device, all []int, id string) (found []int, unsure bool) {
	uuid, _, old := strings.Cut(id, "/")
	for _, i := range all {
		if d := devices[i]; old && d.UUID != "" && d.UUID == uuid || !old && d.MIG {
			found = append(found, i)
		}
	}
	return found, !old && len(found) > 1
}

// findDevice returns the position of the device with the index entry, or of the only device with a UUID that begins
// with entry.
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

// isUnfollowed reports whether entry may name a device that is not monitored.
func isUnfollowed(entry string) bool {
	index, err := strconv.ParseUint(entry, 10, 16)
	return err == nil && index >= maxDevices || err != nil && isUUID(entry)
}

// isUUID reports whether entry can be the beginning of a UUID. It must be longer than "GPU-", which would match any
// device.
func isUUID(entry string) bool { return len(entry) > len("GPU-") && strings.HasPrefix(entry, "GPU-") }

// hasMixedModels reports whether the devices at the positions in all are not all of the same model.
func hasMixedModels(devices []Device, all []int) bool {
	return slices.ContainsFunc(all, func(i int) bool { return devices[i].Name != devices[all[0]].Name })
}

// chooseAMD is like chooseNVIDIA, but for AMD devices. The variables number them from 0. HIP also reads
// CUDA_VISIBLE_DEVICES. chooseAMD does so only if alone is set: on a node with NVIDIA devices, the variable selects
// NVIDIA devices.
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
			i, ok := findByOrdinal(devices, from, strings.TrimSpace(entry))
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

// findByOrdinal returns the device that entry names by its position in from, or by its UUID.
func findByOrdinal(devices []Device, from []int, entry string) (place int, ok bool) {
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

// chooseSlurm returns the devices in Slurm's list, which contains their numbers on the node. If only the devices of the
// step are visible (ConstrainDevices), they are renumbered from 0, and all of them are the job's.
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

	if len(chosen) < len(numbers) { // some devices are renumbered
		return all
	}
	return chosen
}

// slurmNumbers parses a list such as "0,2-3". It returns nil for anything else.
func slurmNumbers(list string) (numbers []int) {
	for rest := []byte(list); len(rest) > 0; {
		var first, last uint64
		var ok bool
		if first, last, rest, ok = procfile.CutRange(rest); !ok || last >= 1024 {
			return nil
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, int(n))
		}
		if len(numbers) > 1024 {
			return nil
		}
	}
	return numbers
}
