package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

// diskUnit is the unit of /proc/diskstats, in bytes. It does not depend on the device's sector size
// (Documentation/admin-guide/iostats.rst).
const diskUnit = 512

// readDiskIO reads /proc/diskstats. gopsutil looks up the serial number and udev record of every device on each call,
// and omits devices without any I/O since boot, which then appear to be added later.
func (r *Reader) readDiskIO(_ time.Duration, into []Device) ([]Device, error) {
	if r.gopsutil != nil {
		return r.gopsutil.readDiskIO()
	}
	return readParsed(&r.scratch, r.paths.diskstats, func(data []byte) ([]Device, error) {
		return parseDiskstats(data, &r.diskNames, into)
	})
}

// parseDiskstats appends the device of every line, including partitions, to devs. A line has at least 14 fields; Linux
// 4.18 and 5.5 added more.
func parseDiskstats(data []byte, names *nameCache, devs []Device) ([]Device, error) {
	if devs == nil {
		devs = make([]Device, 0, len(*names))
	}
	for line := range bytes.Lines(data) {
		var f [14][]byte
		n := procfile.SplitFields(line, f[:])
		if n == 0 {
			continue
		}
		if n < len(f) {
			return nil, fmt.Errorf("line %q has %d fields", bytes.TrimSuffix(line, []byte{'\n'}), n)
		}
		in, okIn := procfile.ParseCount(f[5])
		out, okOut := procfile.ParseCount(f[9])
		if !okIn || !okOut {
			return nil, fmt.Errorf("device %q: %q sectors read, %q written", f[2], f[5], f[9])
		}
		devs = append(devs, Device{Name: names.at(len(devs), f[2]), In: in, Out: out})
	}

	return devs, nil
}

// unslash returns the name of a device from the name of its sysfs directory.
func unslash(folder string) string { return strings.ReplaceAll(folder, "!", "/") }

// classifyBlocks marks a device as Counted if no other listed device counts its bytes. It excludes partitions, devices
// on top of a listed device (dm, md and bcache have slaves), memory (ram, zram) and hidden paths of a multipath device.
// Loop devices, ZFS volumes and DRBD are on top of another device but have no link to it in sysfs, so they count only
// if no other device does.
func (r *Reader) classifyBlocks(devs []Device) []DeviceClass {
	byName := make(map[string]Device, len(devs))
	for _, d := range devs {
		byName[d.Name] = d
	}
	// If /sys/block lists none of the devices, it is missing or belongs to another host.
	haveSys := slices.ContainsFunc(devs, func(d Device) bool { return r.isWhole(d.Name) })
	classes := make([]DeviceClass, len(devs))
	counted := false
	var fallback []int
	for i, d := range devs {
		if haveSys && !r.isWhole(d.Name) || !haveSys && looksLikePartition(d.Name, byName) {
			continue
		}
		classes[i] |= PerfPy
		switch {
		case hasPrefix(d.Name, "loop", "zd", "drbd"): // no sysfs look-up: a host may have many loop devices
			fallback = append(fallback, i)
		case hasPrefix(d.Name, "ram", "zram") || r.isDuplicatePath(d, byName) || stacked(r.blockDir(d.Name), byName):
		case !haveSys && hasPrefix(d.Name, "dm-", "md"):
		default:
			classes[i] |= Counted
			counted = true
		}
	}

	if !counted {
		for _, i := range fallback {
			classes[i] |= Counted
		}
	}

	return classes
}

// blockDir returns the sysfs directory of the device name.
func (r *Reader) blockDir(name string) string {
	return filepath.Join(r.sys, "block", strings.ReplaceAll(name, "/", "!"))
}

// isWhole reports whether the device name is not a partition, that is, whether /sys/block lists it.
func (r *Reader) isWhole(name string) bool {
	_, err := os.Stat(r.blockDir(name))
	return err == nil
}

// isDuplicatePath reports whether d is a hidden path to an NVMe drive that counts the same bytes. Before Linux 6.3 only
// the paths counted bytes.
func (r *Reader) isDuplicatePath(d Device, byName map[string]Device) bool {
	if readWord(filepath.Join(r.blockDir(d.Name), "hidden")) != "1" {
		return false
	}
	subsystem, path, isPath := strings.Cut(d.Name, "c") // nvme0c1n1 is a path to nvme0n1
	_, namespace, hasNamespace := strings.Cut(path, "n")
	drive, listed := byName[subsystem+"n"+namespace]
	uncounted := isPath && hasNamespace && listed && drive.In == 0 && drive.Out == 0
	return !uncounted || d.In == 0 && d.Out == 0
}

// stacked reports whether the device with the sysfs directory dir is on top of a device in byName or of a partition of
// such a device.
func stacked(dir string, byName map[string]Device) bool {
	dir = filepath.Join(dir, "slaves")
	slaves, _ := os.ReadDir(dir)
	return slices.ContainsFunc(slaves, func(s os.DirEntry) bool {
		_, listed := byName[unslash(s.Name())]
		target, err := os.Readlink(filepath.Join(dir, s.Name())) // …/block/sda/sda1
		_, diskListed := byName[unslash(filepath.Base(filepath.Dir(target)))]
		return listed || err == nil && diskListed
	})
}

// looksLikePartition reports whether name looks like a partition of a device in byName, as sda1 of sda or nvme0n1p2 of
// nvme0n1. It is used if there is no sysfs.
func looksLikePartition(name string, byName map[string]Device) bool {
	base := strings.TrimRight(name, "0123456789")
	if base == name {
		return false
	}
	_, disk := byName[base]
	base, numbered := strings.CutSuffix(base, "p")
	_, numberedDisk := byName[base]
	return disk || numbered && numberedDisk
}

// hasPrefix reports whether name has one of the prefixes.
func hasPrefix(name string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
