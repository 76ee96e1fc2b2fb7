package host

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
)

// emptyGroup is a group of a copied host that holds no process.
func emptyGroup(t *testing.T) *cgroup.Group {
	t.Helper()
	return emptyGroupIn(t, t.TempDir())
}

// emptyGroupIn is emptyGroup with the root of the copied host.
func emptyGroupIn(t *testing.T, root string) *cgroup.Group {
	t.Helper()
	for name, text := range map[string]string{
		"proc/42/cgroup":                  "0::/job\n",
		"proc/42/mountinfo":               "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/cgroup.procs":      "1\n",
		"sys/fs/cgroup/job/cgroup.procs":  "",
		"sys/fs/cgroup/job/cgroup.events": "populated 0\n",
		"sys/fs/cgroup/job/cpu.stat":      "usage_usec 7000000\n",
	} {
		write(t, root, name, []byte(text))
	}

	g, err := cgroup.Find(cgroup.Options{Proc: root + "/proc", Sys: root + "/sys", PID: 42})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Limits are new in each reading at the usual interval; a rank that leaves the host to another reads them every fifth
// second until the host is its own.
func TestReader_LimitsOfARank(t *testing.T) {
	root := t.TempDir()
	group := emptyGroupIn(t, root)
	setLimit := func(mib string) { write(t, root, "sys/fs/cgroup/job/memory.max", []byte(mib+"\n")) }
	now := time.Second
	r := NewReader(Options{
		Job: JobOptions{Source: JobFromCreated, Group: group}, JobOnly: true,
		Now: func() Instant { return Instant{Mono: now} },
	})
	t.Cleanup(r.Close)

	setLimit("1073741824")
	r.Baseline()
	setLimit("2147483648")
	for _, step := range []struct{ after, want float64 }{{1, 1024}, {3, 1024}, {1, 2048}, {1, 2048}} {
		now += time.Duration(step.after * float64(time.Second))
		if got := float64(r.Read().Job.Limits.MemoryMB); got != step.want {
			t.Errorf("after %v: %v MiB, want %v", now, got, step.want)
		}
	}

	r.MeasureHost()
	setLimit("536870912")
	now += time.Second
	if got := r.Read().Job.Limits.MemoryMB; got != 512 {
		t.Errorf("with the host: %v MiB, want 512", got)
	}
}

// A reader that panics costs the job's numbers, at the baseline as later, and never the run.
func TestReader_PanicCostsOnlyTheJob(t *testing.T) {
	damaged := true
	reader := openFixture(t, "healthy")
	reader.job = jobReader{JobOptions: JobOptions{Source: JobFromCreated, Group: emptyGroup(t), Reaped: func() Reaped {
		if damaged {
			panic("index out of range")
		}
		return Reaped{}
	}}, tree: newJobTree(nil)}

	for what, read := range map[string]func() *Reading{"baseline": reader.Baseline, "reading": reader.Read} {
		damaged = true
		if r := read(); r.Failed[SourceJob] == nil || !strings.Contains(r.Failed[SourceJob].Error(), "index out of range") || r.CPU == nil {
			t.Errorf("%s: failed %v", what, r.Failed)
		}
		damaged = false
		if r := read(); r.Failed[SourceJob] != nil || r.Job == nil || r.Job.CPUSeconds != 7 || r.Job.Processes != 0 {
			t.Errorf("%s, mended: %+v, failed %v", what, r.Job, r.Failed)
		}
	}
}

// Each reason for which something of the job's processes could not be read is told.
func TestTreeError_NamesEachReason(t *testing.T) {
	if err := treeError(process.Use{}); err != nil {
		t.Error(err)
	}
	stat, io := errors.New("no stat"), errors.New("no io")
	err := treeError(process.Use{Failed: map[string]error{"stat": stat, "io": io}})
	var why []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		why = append(why, e.Error())
	}
	if got := strings.Join(why, "|"); got != "io: no io|stat: no stat" || !errors.Is(err, stat) || !errors.Is(err, io) {
		t.Errorf("told: %s", got)
	}
}
