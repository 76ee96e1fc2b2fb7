package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// readVM reads /proc/vmstat, which counts swapped pages and OOM kills.
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
			return nil, fmt.Errorf("%.20q is not a count", value)
		}
		*line.into = float64(n) * line.unit
	}

	if math.IsNaN(vm.SwapIn) || math.IsNaN(vm.SwapOut) {
		return nil, errors.New("no line pswpin or pswpout")
	}
	return vm, nil
}
