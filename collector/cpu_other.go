//go:build !linux

package collector

import (
	"errors"

	"github.com/shirou/gopsutil/v3/cpu"
)

// readCPU asks the system through gopsutil.
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
		out[i] = CPUTimes{Name: s.CPU, User: s.User, Nice: s.Nice, System: s.System, Idle: s.Idle,
			Iowait: s.Iowait, IRQ: s.Irq, SoftIRQ: s.Softirq, Steal: s.Steal, Guest: s.Guest, GuestNice: s.GuestNice}
	}
	return out, nil
}
