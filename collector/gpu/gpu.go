// Package gpu reads the GPUs of a node: NVIDIA GPUs through one long-lived nvidia-smi, AMD GPUs through sysfs. It uses
// no C library, so that perfagent can be linked statically. On a node without a GPU, it costs a few calls to stat(2).
package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/timeout"
)

// maxDevices is the largest number of devices of a vendor that are monitored.
const maxDevices = 16

// The codes of missing values in a Reading.
const (
	Silent        series.ReasonCode = "gpu_silent"         // the device, or nvidia-smi, does not respond
	NoValue       series.ReasonCode = "gpu_no_value"       // the driver does not report the value for the device
	NotFollowed   series.ReasonCode = "gpu_not_followed"   // there are more devices than are monitored
	Restarted     series.ReasonCode = "gpu_restarted"      // nvidia-smi was restarted
	NotUnderstood series.ReasonCode = "gpu_not_understood" // nvidia-smi printed something unexpected
	Unsure        series.ReasonCode = "gpu_unsure"         // the job's devices are not certain from the environment
)

// A Device holds the properties of a GPU that do not change during a run.
type Device struct {
	// Index is the index that nvidia-smi shows. AMD devices are numbered after NVIDIA devices.
	Index int `json:"index"`
	// UUID is "GPU-" followed by the driver's ID; "" = unknown.
	UUID string `json:"uuid,omitempty"`
	// Name is the product name or, for an AMD device without one, "AMD GPU" and the PCI device ID.
	Name            string          `json:"name,omitempty"`
	Vendor          string          `json:"-"` // "nvidia", "amd"
	MemoryMB        series.Optional `json:"memory_mb"`
	PowerLimitWatts series.Optional `json:"power_limit_watts"` // the enforced limit
	MIG             bool            `json:"mig,omitempty"`     // NVIDIA's multi-instance mode is on
}

// State is the state of a GPU at its last reading. NaN means unknown.
type State struct {
	// UtilizationPct is the share of the driver's last window, of 1/6 s to 1 s, in which any work ran. It does not show
	// how much of the GPU was in use.
	UtilizationPct     float64
	MemoryUsedMB       float64 // MiB
	PowerWatts         float64 // of the board
	TemperatureCelsius float64 // of the chip
	ClockMHz           float64 // of the compute units (NVIDIA: SM, AMD: sclk)
	// EnergyJoules is a counter. It is NaN for NVIDIA, because nvidia-smi has no field for NVML's counter.
	EnergyJoules float64
	// Throttle lists the reasons for reduced clocks, with NVML's names; nil means that there are none or that they are
	// unknown.
	Throttle []string
}

// A Reading is the last known state of all devices.
type Reading struct {
	Devices []Device         // never fewer than in an earlier Reading
	States  []State          // in the order of Devices
	Missing []series.Missing // values that are missing from this Reading
	Err     error            // why all values of a vendor are missing or will be missing; nil = no failure
}

// Options configures a Monitor.
type Options struct {
	Sys      string        // "" = /sys
	Interval time.Duration // between readings; at least a second
	Env      []string      // environment of nvidia-smi, which is searched for on its PATH; nil = os.Environ()

	// Start is called to start nvidia-smi, unless it is nil. It must call fork immediately, and make sure that the child
	// is not reaped before fork returns its ID. The provider of Start then has to reap the child. If Start is nil, the
	// Monitor reaps the child, and no other process.
	Start func(fork func() (pid int, err error)) error
}

// A Monitor monitors the GPUs of a node.
type Monitor struct {
	o        Options
	smi      string      // path of nvidia-smi; "" = none, or not found yet; written under mu
	cards    []card      // AMD cards
	smiFound chan string // receives the path of nvidia-smi, once
	timing   timing
	pid      atomic.Int64
	child    atomic.Pointer[child] // the newest nvidia-smi

	mu            sync.Mutex
	searchStarted time.Time // when the search for nvidia-smi began; zero = the search has ended
	nvidia        vendorState
	amd           vendorState
}

// A timing holds the intervals and timeouts of a Monitor.
type timing struct {
	interval time.Duration // between readings, at least a second
	stale    time.Duration // age above which a reading is not current
	hang     time.Duration // time without output after which nvidia-smi is killed
	backoff  time.Duration // pause before the first restart; doubled for each further restart
	grace    time.Duration // time to wait after SIGTERM, and again after SIGKILL
}

// Open returns a Monitor after finding AMD cards in sysfs. It starts no process. It starts the search for nvidia-smi,
// but leaves it to Run to wait for the result, because a directory on the PATH may hang.
func Open(o Options) *Monitor {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	m := &Monitor{o: o, searchStarted: time.Now(), smiFound: make(chan string, 1)}
	go func() { m.smiFound <- findSMI(o.Env) }()
	m.cards = findCards(cmp.Or(o.Sys, "/sys"))
	// The driver computes utilization over up to a second, so a shorter interval would only repeat numbers.
	interval := max(o.Interval, time.Second)
	stale := max(5*time.Second, 3*interval)
	m.timing = timing{interval: interval, stale: stale, hang: 6 * stale, backoff: time.Second, grace: time.Second}
	return m
}

// Run monitors the GPUs until ctx ends. Run then ends its processes, which takes a few milliseconds, or up to two
// seconds if nvidia-smi hangs. It returns earlier if nothing is left to monitor. Call Run only once.
func (m *Monitor) Run(ctx context.Context) {
	cards := make(chan struct{})
	go func() {
		defer close(cards)
		if len(m.cards) > 0 {
			m.followCards(ctx)
		}
	}()

	if m.awaitSMI(ctx) {
		m.followNVIDIA(ctx)
	}

	select {
	case <-cards:
		return
	case <-ctx.Done():
	}

	timeout.Receive(cards, m.timing.grace/4) // a read that hangs in the driver cannot be stopped
}

// awaitSMI waits for the result of the search for nvidia-smi, and reports whether it was found. It reports false if ctx
// ends first.
func (m *Monitor) awaitSMI(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case smi := <-m.smiFound:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.smi, m.searchStarted, m.nvidia.complete = smi, time.Time{}, smi == ""
		return smi != ""
	}
}

// Kill kills the current query and all its descendants, and does not wait for them. It is meant for a program that
// exits without waiting for Run: if nvidia-smi is a wrapper script, the script may exit immediately and leave a process
// behind. Kill may be called concurrently with Run.
func (m *Monitor) Kill() {
	if c := m.child.Load(); c != nil {
		c.send(true)
		c.abandon() // after this, a new process may have the ID
	}
}

// PID returns the process ID of the running nvidia-smi; 0 if none is running or m is nil.
func (m *Monitor) PID() int {
	if m == nil {
		return 0
	}
	return int(m.pid.Load())
}

// Read returns the last known state of all devices. It never waits for a GPU and may be called concurrently with Run.
func (m *Monitor) Read() Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	var r Reading
	now := time.Now()
	switch {
	case m.smi == "" && !m.searchStarted.IsZero() && now.Sub(m.searchStarted) > searchTimeout:
		r.Err = fmt.Errorf("find nvidia-smi on the PATH: one of its directories has not responded for %.0f s",
			now.Sub(m.searchStarted).Seconds())
	case m.smi != "":
		m.nvidia.add(&r, now, m.timing.stale, 0)
		r.Err = m.nvidia.check(now, m.timing.stale)
	}

	if len(m.cards) > 0 && m.nvidia.complete { // otherwise, the first index of AMD devices is not known yet
		m.amd.add(&r, now, m.timing.stale, m.nvidia.nextIndex)
		if old := now.Sub(m.amd.updatedAt); old > m.timing.stale && !m.amd.updatedAt.IsZero() {
			r.Err = errors.Join(r.Err, fmt.Errorf("read GPUs: AMD's cards have not responded for %.0f s", old.Seconds()))
		}
	}
	return r
}

// unknownState returns a State with all numbers unknown.
func unknownState() State {
	nan := math.NaN()
	return State{nan, nan, nan, nan, nan, nan, nil}
}

// searchTimeout is longer than the duration of a PATH search on a working disk.
const searchTimeout = time.Second

// findSMI searches the PATH in env for nvidia-smi as a shell would, except in directories relative to the working
// directory, which belongs to the job. It returns "" if nvidia-smi is not found.
func findSMI(env []string) string {
	path, _ := lookup(env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, "nvidia-smi")
		info, err := os.Stat(file)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			// If the file is on a dead file server, this goroutine blocks here, before a process is started that would hang.
			if f, err := os.Open(file); err == nil {
				_, _ = f.Read(make([]byte, 1))
				f.Close()
			}
			return file
		}
	}
	return ""
}

// lookup returns the variable key of env. The last definition counts.
func lookup(env []string, key string) (value string, ok bool) {
	for i := len(env) - 1; i >= 0; i-- {
		name, value, found := strings.Cut(env[i], "=")
		if found && name == key {
			return value, true
		}
	}
	return "", false
}
