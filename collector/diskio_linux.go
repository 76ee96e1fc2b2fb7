package collector

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// diskUnit is the bytes of one count of /proc/diskstats: 512, whatever the
// device's own sector is (Documentation/admin-guide/iostats.rst).
const diskUnit = 512

// readDiskIO reads /proc/diskstats, or /sys/block/*/stat where that is missing,
// as psutil does. gopsutil is not used here: on each call it looks up the serial
// number and udev record of every device, and it hides quiet devices, which then
// seem to appear later.
func (r *Reader) readDiskIO() ([]Device, error) {
	path := filepath.Join(r.proc, "diskstats")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r.readSysBlock(err)
	}
	if err != nil {
		return nil, err
	}
	devs, err := parseDiskstats(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return devs, nil
}

// parseDiskstats gives every line's device, partitions included. The forms are
// psutil's: 14 fields or 18 and more (2.6, 4.18, 5.5), 7 for partitions of old.
func parseDiskstats(data []byte) ([]Device, error) {
	devs := make([]Device, 0, bytes.Count(data, []byte{'\n'}))
	for line := range bytes.Lines(data) {
		f := bytes.Fields(line)
		if len(f) == 0 {
			continue
		}
		read, written := 5, 9
		switch {
		case len(f) == 7:
			read, written = 4, 6
		case len(f) < 14:
			return nil, fmt.Errorf("line %q has %d fields", strings.TrimSpace(string(line)), len(f))
		}
		in, err := strconv.ParseUint(string(f[read]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("device %q: sectors read %q", f[2], f[read])
		}
		out, err := strconv.ParseUint(string(f[written]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("device %q: sectors written %q", f[2], f[written])
		}
		devs = append(devs, Device{Name: string(f[2]), In: in, Out: out})
	}
	return devs, nil
}

// readSysBlock is the fallback; why says what is wrong with /proc/diskstats.
func (r *Reader) readSysBlock(why error) ([]Device, error) {
	entries, err := os.ReadDir(filepath.Join(r.sys, "block"))
	if err != nil {
		return nil, why
	}
	var devs []Device
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.sys, "block", e.Name(), "stat"))
		if err != nil {
			continue
		}
		f := strings.Fields(string(data))
		if len(f) < 7 {
			continue
		}
		in, errIn := strconv.ParseUint(f[2], 10, 64)
		out, errOut := strconv.ParseUint(f[6], 10, 64)
		if errIn != nil || errOut != nil {
			continue
		}
		devs = append(devs, Device{Name: strings.ReplaceAll(e.Name(), "!", "/"), In: in, Out: out})
	}
	if len(devs) == 0 {
		return nil, why
	}
	return devs, nil
}

// classifyBlocks marks the whole devices whose bytes are counted nowhere else:
// no partitions, nothing stacked on a listed device (dm, md, bcache: they have
// slaves), no memory (ram, zram), no hidden path of a multipath device. Loop,
// ZFS volumes and DRBD stand on another device without saying so in sysfs; they
// count only where no other device does.
func (r *Reader) classifyBlocks(devs []Device) []Class {
	listed := make(map[string]bool, len(devs))
	for _, d := range devs {
		listed[d.Name] = true
	}
	_, err := os.Stat(filepath.Join(r.sys, "block"))
	haveSys := err == nil
	classes := make([]Class, len(devs))
	counted := false
	var fallback []int
	for i, d := range devs {
		dir := filepath.Join(r.sys, "block", strings.ReplaceAll(d.Name, "/", "!"))
		_, err := os.Stat(dir)
		whole := err == nil
		if !haveSys {
			whole = !looksLikePartition(d.Name, listed)
		}
		if !whole {
			continue
		}
		classes[i] |= PerfPy
		switch {
		case hasPrefix(d.Name, "ram", "zram") || readsOne(filepath.Join(dir, "hidden")) || stacked(dir, listed):
		case !haveSys && hasPrefix(d.Name, "dm-", "md"):
		case hasPrefix(d.Name, "loop", "zd", "drbd"):
			fallback = append(fallback, i)
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

// stacked tells whether a device lies on another one of the kernel's list.
func stacked(dir string, listed map[string]bool) bool {
	slaves, err := os.ReadDir(filepath.Join(dir, "slaves"))
	if err != nil {
		return false
	}
	for _, s := range slaves {
		if listed[strings.ReplaceAll(s.Name(), "!", "/")] {
			return true
		}
	}
	return false
}

// readsOne tells whether a one-line sysfs file says 1.
func readsOne(path string) bool {
	data, err := os.ReadFile(path)
	return err == nil && strings.TrimSpace(string(data)) == "1"
}

// looksLikePartition is for hosts without sysfs: sda1 beside sda, nvme0n1p2
// beside nvme0n1.
func looksLikePartition(name string, listed map[string]bool) bool {
	base := strings.TrimRight(name, "0123456789")
	if base == name {
		return false
	}
	return listed[base] || strings.HasSuffix(base, "p") && listed[strings.TrimSuffix(base, "p")]
}

func hasPrefix(name string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
