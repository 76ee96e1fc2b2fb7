//go:build !linux

package host

import (
	"errors"

	"github.com/shirou/gopsutil/v3/net"
)

// readNet reads network interfaces through gopsutil.
func (r *Reader) readNet() ([]Device, error) {
	stats, err := net.IOCounters(true)
	if err != nil {
		return nil, err
	}
	if len(stats) == 0 {
		return nil, errors.New("the system named no network interface")
	}
	nics := make([]Device, len(stats))
	for i, s := range stats {
		nics[i] = Device{Name: s.Name, In: s.BytesRecv, Out: s.BytesSent}
	}
	return nics, nil
}
