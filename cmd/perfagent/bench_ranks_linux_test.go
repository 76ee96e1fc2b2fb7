package main

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// BenchmarkRanks measures the total CPU time per second of 64 perfagents on one host, one for each rank, that sample at
// 1 Hz. The jobs sleep. To exclude the start, it subtracts the cost of jobs of 8 s from the cost of jobs of 38 s.
func BenchmarkRanks(b *testing.B) {
	testenv.SkipIfShort(b, "64 ranks for a minute")
	const short, long = 8, 38
	var share []float64
	for b.Loop() {
		spent := ranksCPU(b, long) - ranksCPU(b, short)
		share = append(share, 100*spent.Seconds()/(long-short))
	}
	b.ReportMetric(clitest.Median(share), "%-of-a-core")
}

// ranksCPU returns the CPU time of 64 ranks that sleep for some seconds, including their perfagents.
func ranksCPU(b *testing.B, seconds int) time.Duration {
	b.Helper()
	const ranks = 64
	out, spent := b.TempDir(), make([]time.Duration, ranks)
	var running sync.WaitGroup
	for rank := range ranks {
		cmd := clitest.Perfagent(b, "run", "--out", out, "--no-page", "--summary", "never", "--", "sleep", strconv.Itoa(seconds))
		cmd.Env = append(cmd.Env, "SLURM_JOB_ID=4711", "SLURM_STEP_ID=0", "SLURM_NODEID=0", "SLURM_STEP_NUM_NODES=1",
			fmt.Sprint("SLURM_PROCID=", rank), fmt.Sprint("SLURM_LOCALID=", rank), fmt.Sprint("SLURM_STEP_NUM_TASKS=", ranks),
			fmt.Sprint("SLURM_STEP_TASKS_PER_NODE=", ranks))
		running.Go(func() {
			if err := cmd.Run(); err != nil {
				b.Errorf("rank %d: %v", rank, err)
				return
			}
			spent[rank] = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		})
	}
	running.Wait()

	var all time.Duration
	for _, d := range spent {
		all += d
	}
	return all
}
