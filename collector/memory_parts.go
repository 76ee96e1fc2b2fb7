package collector

import (
	"math"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// MemoryParts are the parts of the job's memory in one sample, in MiB. Without SwapMB, the parts of a control group add
// up to its usage, which includes page cache. Those of processes are AnonMB, FileMB and ShmemMB, which add up to their
// PSS and their open files in memory, and HugeTLBMB. Other parts are 0 if they are unknown. The zero value means that
// no sample had the parts.
type MemoryParts struct {
	Timestamp float64         `json:"timestamp"` // seconds since 1970, on the time axis of the samples
	AnonMB    float64         `json:"anon_mb"`
	FileMB    float64         `json:"file_mb"`
	ShmemMB   float64         `json:"shmem_mb"` // /dev/shm, other tmpfs, shared memory
	KernelMB  series.Optional `json:"kernel_mb,omitzero"`
	SockMB    series.Optional `json:"sock_mb,omitzero"`
	HugeTLBMB series.Optional `json:"hugetlb_mb,omitzero"`
	SwapMB    series.Optional `json:"swap_mb,omitzero"`
	// Source is host.JobFromTree for processes, and Account.Source for a control group.
	Source string `json:"source"`
	// Largest are the largest processes of the job at a kill, largest first; nil if they are unknown.
	Largest []host.Task `json:"largest,omitempty"`
}

// MemoryColumns returns the columns that NewMemoryParts uses.
func MemoryColumns() []Column {
	return []Column{Timestamp, JobMemory, JobMemoryAnon, JobMemoryFile, JobMemoryShmem, JobMemoryKernel, JobMemorySwap}
}

// NewMemoryParts returns the MemoryParts of s, and the job's memory that they explain. This is the job's memory in s
// or, if that has grown since its parts were measured, their sum. It returns zero values if s lacks the parts. source
// is the source of parts from a control group.
func NewMemoryParts(s *Sample, source string) (p MemoryParts, mb float64) {
	v := &s.Values
	if math.IsNaN(v[Timestamp] + v[JobMemory] + v[JobMemoryAnon] + v[JobMemoryFile] + v[JobMemoryShmem]) {
		return p, 0
	}
	if math.IsNaN(v[JobMemoryKernel]) {
		source = host.JobFromTree
	}
	of := func(v float64) series.Optional { return orZero(series.Optional(v)) }
	p = MemoryParts{
		Timestamp: v[Timestamp], AnonMB: v[JobMemoryAnon], FileMB: v[JobMemoryFile], ShmemMB: v[JobMemoryShmem],
		KernelMB: of(v[JobMemoryKernel]), SockMB: of(s.Sock), HugeTLBMB: of(s.HugeTLB), SwapMB: of(v[JobMemorySwap]),
		Source: source,
	}
	return p, min(v[JobMemory], p.SumMB()+float64(p.SwapMB))
}

// SumMB returns the sum of the parts without swap.
func (p *MemoryParts) SumMB() float64 {
	return p.AnonMB + p.FileMB + p.ShmemMB + float64(p.KernelMB+p.SockMB+p.HugeTLBMB)
}
