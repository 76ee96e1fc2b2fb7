package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/perfagent/perfagent/internal/procfile"
)

// VMStat holds the counters of /proc/vmstat that perfagent uses, since boot. NaN means unknown.
type VMStat struct {
	SwapIn, SwapOut float64 // bytes
	MajorFaults     float64 // page faults that waited for storage
	Stale           bool    // from an earlier Reading, because the file was not due
	OOMKills        float64 // processes killed by the OOM killer, for any reason; NaN before Linux 4.13
}

func unknownVMStat() VMStat {
	return VMStat{SwapIn: math.NaN(), SwapOut: math.NaN(), MajorFaults: math.NaN(), OOMKills: math.NaN()}
}

func parseVMStat(data []byte) (VMStat, error) {
	vm := unknownVMStat()
	page := float64(os.Getpagesize())
	for _, line := range []struct {
		key  string
		into *float64
		unit float64
	}{
		{"\npswpin ", &vm.SwapIn, page}, {"\npswpout ", &vm.SwapOut, page},
		{"\npgmajfault ", &vm.MajorFaults, 1}, {"\noom_kill ", &vm.OOMKills, 1},
	} {
		at := bytes.Index(data, []byte(line.key)) // no key is in the file's first line
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
