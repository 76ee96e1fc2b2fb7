package collector

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/mem"
)

// Memory is physical memory in bytes (/proc/meminfo).
type Memory struct {
	Total uint64
	// Available is what could be given to new work without swapping:
	// MemAvailable, or an estimate where the kernel gives none.
	Available uint64
}

// Percent is psutil's: (total − available) / total, rounded to one decimal.
func (m Memory) Percent() float64 {
	return round1(float64(m.Total-m.Available) / float64(m.Total) * 100)
}

// readMemory reads /proc/meminfo. psutil's guards for odd kernels are added: an
// available of 0 is estimated, one above the total (LXC) is MemFree, and a
// negative estimate (which wraps in gopsutil's unsigned type) is 0.
func (r *Reader) readMemory() (*Memory, error) {
	vm, err := mem.VirtualMemoryWithContext(r.ctx)
	if err != nil {
		return nil, err
	}
	if vm.Total == 0 {
		return nil, readErr(filepath.Join(r.proc, "meminfo"), "no MemTotal")
	}
	available := vm.Available
	if available == 0 {
		available = r.estimateAvailable(vm)
	}
	switch {
	case available > 1<<63:
		available = 0
	case available > vm.Total:
		available = min(vm.Free, vm.Total)
	}
	return &Memory{Total: vm.Total, Available: available}, nil
}

// estimateAvailable is psutil's estimate for kernels whose MemAvailable is 0:
// free − low watermark + the part of page cache and reclaimable slab that can be
// dropped. Without /proc/zoneinfo: free + cached.
func (r *Reader) estimateAvailable(vm *mem.VirtualMemoryStat) uint64 {
	ex, err := mem.VirtualMemoryExWithContext(r.ctx)
	cached := vm.Cached - min(vm.Cached, vm.Sreclaimable) // gopsutil adds the slab to Cached
	low, zoneErr := lowWatermark(filepath.Join(r.proc, "zoneinfo"))
	if err != nil || zoneErr != nil || ex.ActiveFile+ex.InactiveFile == 0 {
		return vm.Free + cached
	}
	cache := ex.ActiveFile + ex.InactiveFile
	cache -= min(cache/2, low)
	slab := vm.Sreclaimable - min(vm.Sreclaimable/2, low)
	sum := vm.Free + cache + slab
	return sum - min(sum, low)
}

// lowWatermark sums the "low" lines of /proc/zoneinfo, in bytes.
func lowWatermark(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var pages uint64
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 || fields[0] != "low" {
			continue
		}
		n, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: low watermark %q", path, fields[1])
		}
		pages += n
	}
	return pages * uint64(os.Getpagesize()), lines.Err()
}
