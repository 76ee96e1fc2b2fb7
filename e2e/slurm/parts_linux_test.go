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

// Environment variables of burn: the CPU time of rank 0 in seconds, and the directory for files.
const (
	burnSeconds = "E2E_BURN_SECONDS"
	burnDir     = "E2E_BURN_DIR"
)

// burn is a helper that uses CPU time, a tenth of a second more for each rank. It writes the CPU time counted by the
// kernel into a file with the number of the rank as its name.
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

// cpuTime returns the CPU time of this process in seconds.
func cpuTime() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail with this argument
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
