// Package gpu reads the GPUs of a node: NVIDIA's through one long-lived nvidia-smi, AMD's through
// sysfs. It uses no C library, so the program that links it stays static. On a node without a GPU
// it costs a few stats.
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

// maxDevices is how many devices of a vendor are followed.
const maxDevices = 16

// The codes of what a Reading lacks.
const (
	Silent        series.ReasonCode = "gpu_silent"         // the device, or nvidia-smi, does not answer
	NoValue       series.ReasonCode = "gpu_no_value"       // the driver does not report it for the device
	NotFollowed   series.ReasonCode = "gpu_not_followed"   // there are more devices than are followed
	Restarted     series.ReasonCode = "gpu_restarted"      // nvidia-smi was started again
	NotUnderstood series.ReasonCode = "gpu_not_understood" // nvidia-smi says something else than was asked
	Unsure        series.ReasonCode = "gpu_unsure"         // the environment does not say which devices are the job's
)

// A Device is what does not change of a GPU during a run.
type Device struct {
	// Index is nvidia-smi's own; AMD's are counted after these.
	Index int `json:"index"`
	// UUID is "GPU-" and what the driver says; "" is unknown.
	UUID string `json:"uuid,omitempty"`
	// Name is the product's. AMD's without one are "AMD GPU" and the PCI device ID.
	Name            string          `json:"name,omitempty"`
	Vendor          string          `json:"-"` // "nvidia", "amd"
	MemoryMB        series.Optional `json:"memory_mb"`
	PowerLimitWatts series.Optional `json:"power_limit_watts"` // the limit that is enforced
	MIG             bool            `json:"mig,omitempty"`     // NVIDIA's multi-instance mode is on
}

// State is what a GPU did at its newest reading. NaN is absent.
type State struct {
	// UtilizationPct is the share of the driver's last 1/6 s to 1 s in which something ran. It does
	// not say how full the GPU was.
	UtilizationPct     float64
	MemoryUsedMB       float64 // MiB
	PowerWatts         float64 // of the board
	TemperatureCelsius float64 // of the chip
	ClockMHz           float64 // of the compute units (NVIDIA: SM, AMD: sclk)
	// EnergyJoules is a counter, absent where there is none: nvidia-smi has no field for NVML's.
	EnergyJoules float64
	// Throttle lists what holds the clocks down, by NVML's names; nil is nothing, or unknown.
	Throttle []string
}

// A Reading is the newest that is known of all devices.
type Reading struct {
	Devices []Device         // never shrinks
	States  []State          // in the order of Devices
	Missing []series.Missing // what is absent from them now
	Err     error            // why there is nothing, or nothing more, of a vendor; nil = all is well
}

// Options say where to look and how to start nvidia-smi.
type Options struct {
	Sys      string        // "" = /sys
	Interval time.Duration // between readings; less than a second is taken as one second
	Env      []string      // of nvidia-smi, and its PATH is the one that is searched; nil = os.Environ()

	// Start, if not nil, is called to start nvidia-smi. It calls fork at once, sees to it that
	// nothing reaps the child before it knows it. On Linux the child is then for its caller to wait for. Elsewhere,
	// and if Start is nil, the Monitor waits for the child, and for no other process.
	Start func(fork func() (pid int, err error)) error
}

// A Monitor follows the GPUs of a node.
type Monitor struct {
	o      Options
	smi    string      // the program; "" = none, or not found yet; written under mu
	cards  []card      // AMD's
	found  chan string // delivers the program, once
	timing timing
	pid    atomic.Int64
	child  atomic.Pointer[child] // the newest that was started

	mu     sync.Mutex
	sought time.Time // when the search for the program began; zero = it is over
	nvidia vendorState
	amd    vendorState
}

// A timing is how patient a Monitor is.
type timing struct {
	interval time.Duration // between readings, at least a second
	stale    time.Duration // when a reading is too old to be the present
	hang     time.Duration // when a silent process is ended
	backoff  time.Duration // before the first restart; doubled for each further one
	grace    time.Duration // between TERM and KILL, and after KILL
}

// Open finds AMD's cards in sysfs, and starts no process. It begins to look for nvidia-smi, for
// which only Run waits: a directory of the PATH may hang.
func Open(o Options) *Monitor {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	m := &Monitor{o: o, sought: time.Now(), found: make(chan string, 1)}
	go func() { m.found <- findProgram(o.Env) }()
	m.cards = findCards(cmp.Or(o.Sys, "/sys"))
	// The driver computes utilization over up to a second: asking more often gives the same numbers
	// again.
	interval := max(o.Interval, time.Second)
	stale := max(5*time.Second, 3*interval)
	m.timing = timing{interval: interval, stale: stale, hang: 6 * stale, backoff: time.Second, grace: time.Second}
	return m
}

// Run follows the GPUs until ctx ends, then ends what it started, which takes a few milliseconds,
// or up to two seconds if nvidia-smi hangs. It returns earlier if there is nothing left to follow.
// It may be called once.
func (m *Monitor) Run(ctx context.Context) {
	cards := make(chan struct{})
	go func() {
		defer close(cards)
		if len(m.cards) > 0 {
			m.followCards(ctx)
		}
	}()

	if m.find(ctx) {
		m.followNVIDIA(ctx)
	}

	select {
	case <-cards:
		return
	case <-ctx.Done():
	}

	timeout.Receive(cards, m.timing.grace/4) // a read that hangs in the driver cannot be ended
}

// find waits for the search for nvidia-smi, and reports whether it was found. It returns early when
// ctx ends.
func (m *Monitor) find(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case smi := <-m.found:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.smi, m.sought, m.nvidia.complete = smi, time.Time{}, smi == ""
		return smi != ""
	}
}

// Kill kills the query that runs now, with everything that it has started, and does
// not wait for its end. It is for a program that cannot wait for Run after it has
// ended the context: a script around nvidia-smi may end at once and leave a process
// behind that does not. It may be called beside Run.
func (m *Monitor) Kill() {
	if c := m.child.Load(); c != nil {
		c.send(true)
		c.abandon() // from here on another process may have its ID
	}
}

// PID returns the process of the current query; 0 if there is none.
func (m *Monitor) PID() int { return int(m.pid.Load()) }

// Read returns the newest reading. It never waits for a GPU and may be called beside Run.
func (m *Monitor) Read() Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	var r Reading
	now := time.Now()
	switch {
	case m.smi == "" && !m.sought.IsZero() && now.Sub(m.sought) > searchTimeout:
		r.Err = fmt.Errorf("find nvidia-smi on the PATH: a directory of it has not answered for %.0f s",
			now.Sub(m.sought).Seconds())
	case m.smi != "":
		m.nvidia.add(&r, now, m.timing.stale, 0)
		r.Err = m.nvidia.trouble(now, m.timing.stale)
	}

	if len(m.cards) > 0 && m.nvidia.complete { // only now is it known where their numbers begin
		m.amd.add(&r, now, m.timing.stale, m.nvidia.next)
		if old := now.Sub(m.amd.seen); old > m.timing.stale && !m.amd.seen.IsZero() {
			r.Err = errors.Join(r.Err, fmt.Errorf("read GPUs: no answer of AMD's cards for %.0f s", old.Seconds()))
		}
	}
	return r
}

// unknownState returns a State with nothing known.
func unknownState() State {
	nan := math.NaN()
	return State{nan, nan, nan, nan, nan, nan, nil}
}

// searchTimeout is more than searching a PATH takes on any disk that answers.
const searchTimeout = time.Second

// findProgram looks for nvidia-smi as a shell would, but not in the working directory, which is the
// job's.
func findProgram(env []string) string {
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

// probe reads the beginning of a program, and of the interpreter of a script: if a file server is
// dead, no process is made that would hang there.
func probe(file string, script bool) {
	f, err := os.Open(file)
	if err != nil { // it need not be readable to be executed
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

// lookup returns a variable of an environment. The last one counts.
func lookup(env []string, key string) (value string, ok bool) {
	for i := len(env) - 1; i >= 0; i-- {
		name, value, found := strings.Cut(env[i], "=")
		if found && (name == key || runtime.GOOS == "windows" && strings.EqualFold(name, key)) {
			return value, true
		}
	}
	return "", false
}
