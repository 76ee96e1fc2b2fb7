package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

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

func parseVMStat(data []byte) (VMStat, error) {
	vm := VMStat{SwapIn: math.NaN(), SwapOut: math.NaN(), OOMKills: math.NaN()}
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
			return vm, fmt.Errorf("%.20q is not a count", value)
		}
		*line.into = float64(n) * line.unit
	}

	if math.IsNaN(vm.SwapIn) || math.IsNaN(vm.SwapOut) {
		return vm, errors.New("no line pswpin or pswpout")
	}
	return vm, nil
}
