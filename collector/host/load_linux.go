package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/perfagent/perfagent/internal/procfile"
)

// readLoad reads /proc/loadavg: "0.20 0.18 0.12 1/80 11206" (proc(5)).
func (r *Reader) readLoad() (*Load, error) {
	if r.gopsutil != nil {
		return r.gopsutil.readLoad()
	}

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
		return nil, fmt.Errorf("the load %.20q is not a number", f[0])
	}

	running, _, _ := bytes.Cut(f[3], []byte{'/'})
	n, ok := procfile.ParseCount(running)
	if !ok {
		return nil, fmt.Errorf("%.20q is not a number of tasks", running)
	}
	return &Load{One: one, Running: float64(n)}, nil
}
