// Package gpu reads the GPUs of a node: NVIDIA's through one long-lived nvidia-smi, AMD's through sysfs. It uses no C
// library, so that a program with it can be static. On a node without a GPU it costs a few stats.
package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/timeout"
)

// maxDevices is how many devices of a vendor are monitored.
const maxDevices = 16

// The codes of missing values in a Reading.
const (
	Silent        series.ReasonCode = "gpu_silent"         // the device, or nvidia-smi, does not respond
	NoValue       series.ReasonCode = "gpu_no_value"       // the driver does not report it for the device
	NotFollowed   series.ReasonCode = "gpu_not_followed"   // there are more devices than are monitored
	Restarted     series.ReasonCode = "gpu_restarted"      // nvidia-smi was restarted
	NotUnderstood series.ReasonCode = "gpu_not_understood" // nvidia-smi printed something unexpected
	Unsure        series.ReasonCode = "gpu_unsure"         // the job's devices are not certain from the environment
)

// A Device holds the properties of a GPU that do not change during a run.
type Device struct {
	// Index is nvidia-smi's; AMD's devices are numbered after NVIDIA's.
	Index int `json:"index"`
	// UUID is "GPU-" and the driver's ID; "" is unknown.
	UUID string `json:"uuid,omitempty"`
	// Name is the product's. AMD's without one are "AMD GPU" and the PCI device ID.
	Name            string          `json:"name,omitempty"`
	Vendor          string          `json:"-"` // "nvidia", "amd"
	MemoryMB        series.Optional `json:"memory_mb"`
	PowerLimitWatts series.Optional `json:"power_limit_watts"` // the enforced limit
	MIG             bool            `json:"mig,omitempty"`     // NVIDIA's multi-instance mode is on
}

// State is the state of a GPU at its last reading. NaN is unknown.
type State struct {
	// UtilizationPct is the share of the driver's last 1/6 s to 1 s in which something ran. It does not show how much
	// of the GPU was in use.
	UtilizationPct     float64
	MemoryUsedMB       float64 // MiB
	PowerWatts         float64 // of the board
	TemperatureCelsius float64 // of the chip
	ClockMHz           float64 // of the compute units (NVIDIA: SM, AMD: sclk)
	// EnergyJoules is a counter, NaN for NVIDIA: nvidia-smi has no field for NVML's counter.
	EnergyJoules float64
	// Throttle lists what limits the clocks, by NVML's names; nil is nothing, or unknown.
	Throttle []string
}

// A Reading is the last known state of all devices.
type Reading struct {
	Devices []Device         // never shrinks
	States  []State          // in the order of Devices
	Missing []series.Missing // values that are missing now
	Err     error            // why a vendor's values are all missing, or end here; nil = no failure
}

// Options configures a Monitor.
type Options struct {
	Sys      string        // "" = /sys
	Interval time.Duration // between readings; at least a second
	Env      []string      // of nvidia-smi; its PATH is searched for nvidia-smi; nil = os.Environ()

	// Start is called to start nvidia-smi, unless it is nil. It must call fork immediately, and prevent that the child
	// is reaped before Start knows it. On Linux the caller then has to wait for the child. Elsewhere, and if Start is
	// nil, the Monitor waits for the child, and for no other process.
	Start func(fork func() (pid int, err error)) error
}

// A Monitor monitors the GPUs of a node.
type Monitor struct {
	o        Options
	smi      string      // nvidia-smi; "" = none, or not found yet; written under mu
	cards    []card      // AMD's
	smiFound chan string // receives the path of nvidia-smi, once
	timing   timing
	pid      atomic.Int64
	child    atomic.Pointer[child] // the last one started

	mu            sync.Mutex
	searchStarted time.Time // when the search for nvidia-smi began; zero = it is over
	nvidia        vendorState
	amd           vendorState
}

// A timing holds the intervals and timeouts of a Monitor.
type timing struct {
	interval time.Duration // between readings, at least a second
	stale    time.Duration // age from which a reading is not current
	hang     time.Duration // when a silent process is killed
	backoff  time.Duration // before the first restart; doubled for each further one
	grace    time.Duration // between SIGTERM and SIGKILL, and after SIGKILL
}

// Open finds AMD's cards in sysfs, and starts no process. It starts the search for nvidia-smi, but only Run waits for
// it: a directory in the PATH may hang.
func Open(o Options) *Monitor {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	m := &Monitor{o: o, searchStarted: time.Now(), smiFound: make(chan string, 1)}
	go func() { m.smiFound <- findSMI(o.Env) }()
	m.cards = findCards(cmp.Or(o.Sys, "/sys"))
	// The driver computes utilization over up to a second: shorter intervals would return the same numbers again.
	interval := max(o.Interval, time.Second)
	stale := max(5*time.Second, 3*interval)
	m.timing = timing{interval: interval, stale: stale, hang: 6 * stale, backoff: time.Second, grace: time.Second}
	return m
}

// Run monitors the GPUs until ctx ends, then ends its processes, which takes a few milliseconds, or up to two seconds
// if nvidia-smi hangs. It returns earlier if nothing is left to monitor. Call it once.
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

// awaitSMI waits for the search for nvidia-smi, and reports whether it was found. It returns false when ctx ends.
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

// Kill kills the current query, with all its descendants, and does not wait for their end. It is for a program that
// cannot wait for Run after ctx has ended: a script around nvidia-smi may end at once and leave a process behind. It
// may be called concurrently with Run.
func (m *Monitor) Kill() {
	if c := m.child.Load(); c != nil {
		c.send(true)
		c.abandon() // from here on another process may have its ID
	}
}

// PID returns the process of the current query; 0 if there is none.
func (m *Monitor) PID() int { return int(m.pid.Load()) }

// Read returns the last reading. It never waits for a GPU and may be called concurrently with Run.
func (m *Monitor) Read() Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	var r Reading
	now := time.Now()
	switch {
	case m.smi == "" && !m.searchStarted.IsZero() && now.Sub(m.searchStarted) > searchTimeout:
		r.Err = fmt.Errorf("find nvidia-smi on the PATH: a directory of it has not answered for %.0f s",
			now.Sub(m.searchStarted).Seconds())
	case m.smi != "":
		m.nvidia.add(&r, now, m.timing.stale, 0)
		r.Err = m.nvidia.check(now, m.timing.stale)
	}

	if len(m.cards) > 0 && m.nvidia.complete { // the first index of AMD's devices is only known now
		m.amd.add(&r, now, m.timing.stale, m.nvidia.nextIndex)
		if old := now.Sub(m.amd.updatedAt); old > m.timing.stale && !m.amd.updatedAt.IsZero() {
			r.Err = errors.Join(r.Err, fmt.Errorf("read GPUs: no answer of AMD's cards for %.0f s", old.Seconds()))
		}
	}
	return r
}

// unknownState returns a State with all numbers unknown.
func unknownState() State {
	nan := math.NaN()
	return State{nan, nan, nan, nan, nan, nan, nil}
}

// searchTimeout exceeds the time to search the PATH on a working disk.
const searchTimeout = time.Second

// findSMI searches the PATH for nvidia-smi as a shell would, except in the working directory, which is the job's.
// It returns "" if there is none.
func findSMI(env []string) string {
	name := "nvidia-smi"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path, _ := lookup(env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
			probe(file, true)
			return file
		}
	}
	return ""
}

// probe reads the beginning of a program, and of a script's interpreter: on a dead file server this blocks here, before
// a process exists that would hang.
func probe(file string, script bool) {
	f, err := os.Open(file)
	if err != nil { // an executable may be unreadable
		return
	}
	defer f.Close()
	begin := make([]byte, 512)
	n, _ := io.ReadFull(f, begin)
	line, isScript := strings.CutPrefix(string(begin[:n]), "#!")
	if words := strings.Fields(strings.SplitN(line, "\n", 2)[0]); script && isScript && len(words) > 0 {
		probe(words[0], false)
	}
}

// lookup returns a variable of an environment. The last definition counts.
func lookup(env []string, key string) (value string, ok bool) {
	for i := len(env) - 1; i >= 0; i-- {
		name, value, found := strings.Cut(env[i], "=")
		if found && (name == key || runtime.GOOS == "windows" && strings.EqualFold(name, key)) {
			return value, true
		}
	}
	return "", false
}
