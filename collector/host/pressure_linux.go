package host

import "github.com/perfagent/perfagent/collector/cgroup"

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
