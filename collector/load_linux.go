package collector

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/internal/procfile"
)

// readLoad reads /proc/loadavg: "0.20 0.18 0.12 1/80 11206" (proc(5)).
func (r *Reader) readLoad() (*Load, error) {
	data, err := r.readProc("loadavg")
	if err != nil {
		return nil, err
	}
	load, err := parseLoad(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(r.proc, "loadavg"), err)
	}
	return load, nil
}

func parseLoad(data []byte) (*Load, error) {
	var f [4][]byte
	if procfile.SplitFields(data, f[:]) < len(f) {
		return nil, errors.New("fewer than 4 fields")
	}
	one, err := strconv.ParseFloat(string(f[0]), 64)
	if err != nil || !(one >= 0) || math.IsInf(one, 0) {
		return nil, fmt.Errorf("the load %.20q is no number", f[0])
	}
	running, _, _ := bytes.Cut(f[3], []byte{'/'})
	n, ok := procfile.ParseCount(running)
	if !ok {
		return nil, fmt.Errorf("%.20q is no number of tasks", running)
	}
	return &Load{One: one, Running: float64(n)}, nil
}

// readVM reads /proc/vmstat, which counts swapped pages and killed processes.
func (r *Reader) readVM() (*VMStat, error) {
	data, err := r.readProc("vmstat")
	if err != nil {
		return nil, err
	}
	vm, err := parseVMStat(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(r.proc, "vmstat"), err)
	}
	return vm, nil
}

func parseVMStat(data []byte) (*VMStat, error) {
	vm := &VMStat{SwapIn: math.NaN(), SwapOut: math.NaN(), OOMKills: math.NaN()}
	page := float64(unix.Getpagesize())
	for _, line := range []struct {
		key  string
		into *float64
		unit float64
	}{{"\npswpin ", &vm.SwapIn, page}, {"\npswpout ", &vm.SwapOut, page}, {"\noom_kill ", &vm.OOMKills, 1}} {
		at := bytes.Index(data, []byte(line.key)) // none of them is the file's first line
		if at < 0 {
			continue
		}
		value, _, _ := bytes.Cut(data[at+len(line.key):], []byte{'\n'})
		n, ok := procfile.ParseCount(bytes.TrimSpace(value))
		if !ok {
			return nil, fmt.Errorf("%.20q is no count", value)
		}
		*line.into = float64(n) * line.unit
	}
	if math.IsNaN(vm.SwapIn) || math.IsNaN(vm.SwapOut) {
		return nil, errors.New("no line pswpin or pswpout")
	}
	return vm, nil
}

// readPressure reads the host's PSI.
func (r *Reader) readPressure() (*cgroup.Pressure, error) {
	if r.pressure == nil {
		r.pressure = cgroup.NewHostPressure(r.proc)
	}
	p, err := r.pressure.Read()
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// affinity is on how many CPUs this process, and so the job, may run; 0 = not known.
func affinity() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(unix.Getpid(), &set) != nil {
		return 0
	}
	return set.Count()
}
