package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/internal/procfile"
)

// readLoad reads /proc/loadavg: "0.20 0.18 0.12 1/80 11206" (proc(5)).
func (r *Reader) readLoad() (Load, error) {
	if r.gopsutil != nil {
		return r.gopsutil.readLoad()
	}
	load, err := readParsed(&r.scratch, r.paths.loadavg, parseLoad)
	if r.hostProc {
		load.NewestPID = 0
	}
	return load, err
}

func parseLoad(data []byte) (Load, error) {
	var f [5][]byte
	if procfile.SplitFields(data, f[:]) < 4 {
		return Load{}, errors.New("fewer than 4 fields")
	}
	one, err := strconv.ParseFloat(string(f[0]), 64) // does not allocate
	if err != nil || !isAmount(one) {
		return Load{}, fmt.Errorf("the load %.20q is not a number", f[0])
	}

	running, _, _ := bytes.Cut(f[3], []byte{'/'})
	n, ok := procfile.ParseCount(running)
	if !ok {
		return Load{}, fmt.Errorf("%.20q is not a count of tasks", running)
	}
	newest, _ := procfile.ParseCount(f[4])
	return Load{Load1: one, Running: float64(n), NewestPID: int64(newest)}, nil
}

// readVM reads /proc/vmstat.
func (r *Reader) readVM() (VMStat, error) { return readParsed(&r.scratch, r.paths.vmstat, parseVMStat) }

// readPressure reads the host's PSI. If a file fails, only its numbers are NaN. CPU.Full is always NaN, because it has
// no meaning for a host: the kernel always writes 0.
func (r *Reader) readPressure() (p cgroup.Pressure, known bool, err error) {
	p = cgroup.UnknownPressure()
	var errs []error
	for i, s := range [...]*cgroup.Stall{&p.CPU, &p.IO, &p.Memory} {
		stall, err := readParsed(&r.scratch, r.paths.pressure[i], cgroup.ParseStall)
		switch {
		case err == nil:
			*s = stall
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP):
			return p, false, fmt.Errorf("read pressure: the kernel does not report it (CONFIG_PSI, psi=1): %w", err)
		default:
			errs = append(errs, FileError{filepath.Base(r.paths.pressure[i]), err})
		}
	}
	p.CPU.Full = math.NaN()
	return p, true, errors.Join(errs...)
}
