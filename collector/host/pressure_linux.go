package host

import (
	"errors"
	"maps"
	"slices"

	"github.com/perfagent/perfagent/collector/cgroup"
)

// readPressure reads the host's PSI. What one file lacks, the others have.
func (r *Reader) readPressure() (p cgroup.Pressure, known bool, err error) {
	if r.pressure == nil {
		r.pressure = cgroup.NewHostPressure(r.proc)
	}
	p, failed, err := r.pressure.Read()
	if err != nil || len(failed) == 0 {
		return p, err == nil, err
	}

	var errs []error
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		errs = append(errs, FileError{name, failed[name]})
	}
	return p, true, errors.Join(errs...)
}
