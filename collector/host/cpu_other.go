//go:build !linux

package host

import (
	"errors"

	"github.com/shirou/gopsutil/v3/cpu"
)

// readCPU reads CPU times through gopsutil.
func (r *Reader) readCPU() ([]CPUTimes, error) {
	stats, err := cpu.Times(true)
	if err != nil {
		return nil, err
	}
	if len(stats) == 0 {
		return nil, errors.New("the system named no CPU")
	}
	out := make([]CPUTimes, len(stats))
	for i, s := range stats {
		out[i] = CPUTimes{Name: s.CPU, Guest: s.Guest, GuestNice: s.GuestNice, Seconds: [NumCPUModes]float64{
			s.User, s.Nice, s.System, s.Idle, s.Iowait, s.Irq, s.Softirq, s.Steal}}
	}
	return out, nil
}
