//go:build !linux

package host

import (
	"errors"

	"github.com/shirou/gopsutil/v3/mem"
)

// readMemory reads memory through gopsutil.
func (r *Reader) readMemory() (*Memory, error) {
	vm, err := mem.VirtualMemory()
	if err != nil {
		return nil, err
	}
	if vm.Total == 0 {
		return nil, errors.New("the system named no memory")
	}
	return &Memory{Total: vm.Total, Available: min(vm.Available, vm.Total)}, nil
}
