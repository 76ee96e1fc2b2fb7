package host

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/internal/procfile"
)

// readLoad reads /proc/loadavg: "0.20 0.18 0.12 1/80 11206" (proc(5)).
func (r *Reader) readLoad() (load Load, known bool, err error) {
	if r.gopsutil != nil {
		load, err = r.gopsutil.readLoad()
		return load, err == nil, err
	}

	path := r.paths.loadavg
	data, err := r.again(path)
	if err != nil {
		return load, false, err
	}
	if load, err = parseLoad(data); err != nil {
		return load, false, fmt.Errorf("read %s: %w", path, err)
	}
	if r.hostProc {
		load.Newest = 0
	}
	return load, true, nil
}

func parseLoad(data []byte) (Load, error) {
	var f [5][]byte
	if procfile.SplitFields(data, f[:]) < 4 {
		return Load{}, errors.New("fewer than 4 fields")
	}
	one, ok := procfile.ParseDecimal(f[0])
	if !ok {
		return Load{}, fmt.Errorf("the load %.20q is not a number", f[0])
	}

	running, _, _ := bytes.Cut(f[3], []byte{'/'})
	n, ok := procfile.ParseCount(running)
	if !ok {
		return Load{}, fmt.Errorf("%.20q is not a number of tasks", running)
	}
	newest, _ := procfile.ParseCount(f[4])
	return Load{One: one, Running: float64(n), Newest: int64(newest)}, nil
}

// readVM reads /proc/vmstat, which counts swapped pages and OOM kills.
func (r *Reader) readVM() (vm VMStat, known bool, err error) {
	path := r.paths.vmstat
	data, err := r.again(path)
	if err != nil {
		return vm, false, err
	}
	if vm, err = parseVMStat(data); err != nil {
		return vm, false, fmt.Errorf("read %s: %w", path, err)
	}
	return vm, true, nil
}
