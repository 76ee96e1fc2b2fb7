//go:build e2e

package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
)

// parts are the helpers of this test binary.
var parts = map[string]func(){"burn": burn}

// Variables that burn reads: the seconds of rank 0, and the directory for files.
const (
	burnSeconds = "E2E_BURN_SECONDS"
	burnDir     = "E2E_BURN_DIR"
)

// burn is a helper that uses CPU time, a tenth of a second more with each rank, and writes the kernel's count into a
// file named by the rank.
func burn() {
	clitest.LimitLifetime()
	rank := os.Getenv("SLURM_PROCID")
	n, _ := strconv.Atoi(rank)
	least, _ := strconv.ParseFloat(os.Getenv(burnSeconds), 64)
	for cpuTime() < least+float64(n)/10 {
		for begin := time.Now(); time.Since(begin) < 5*time.Millisecond; {
		}
	}
	text := strconv.FormatFloat(cpuTime(), 'f', -1, 64)
	if err := os.WriteFile(filepath.Join(os.Getenv(burnDir), rank), []byte(text), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cpuTime returns the CPU seconds of this process.
func cpuTime() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail with this argument
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
