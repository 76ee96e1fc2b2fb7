package host

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/series"
)

// emptyGroup returns a group without processes in a copied tree.
func emptyGroup(t *testing.T) *cgroup.Group {
	t.Helper()
	return emptyGroupIn(t, t.TempDir())
}

// emptyGroupIn is like emptyGroup, but root is the root of the copied tree.
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
	must(t, err)
	return g
}

// At the usual interval, the limits of a limited job are read in each sample. Without limits, or if another perfagent
// measures the host, they are read every five seconds.
func TestReader_ReadsLimitsOfLimitedJobMoreOften(t *testing.T) {
	root := t.TempDir()
	group := emptyGroupIn(t, root)
	now := time.Second
	r := openJob(t, JobOptions{Source: JobFromCreated, Group: group}, &now)
	r.Baseline()
	for _, step := range []struct {
		limit string
		after float64 // seconds
		want  series.Optional
		host  bool
	}{
		{"1073741824", 1, series.Unknown(), false}, {"1073741824", 3, series.Unknown(), false}, {"1073741824", 1, 1024, false},
		{"2147483648", 1, 1024, false}, {"2147483648", 4, 2048, false},
		{"536870912", 1, 512, true}, {"268435456", 1, 256, true}, {"max", 1, series.Unknown(), true},
		{"536870912", 1, series.Unknown(), true}, {"536870912", 4, 512, true},
	} {
		if step.host {
			r.MeasureHost()
		}
		write(t, root, "sys/fs/cgroup/job/memory.max", []byte(step.limit+"\n"))
		now += time.Duration(step.after * float64(time.Second))
		if got := r.Read().Job.Limits.MemoryMB; got != step.want && (got.Known() || step.want.Known()) {
			t.Errorf("%+v: MemoryMB = %v, want %v", step, got, step.want)
		}
	}
}

// If a reader of the job panics, at the baseline or later, the job's numbers are missing but the run goes on.
func TestReader_PanicAffectsOnlyJobUsage(t *testing.T) {
	damaged := true
	reader := openFixture(t, "healthy")
	reader.job = jobReader{JobOptions: JobOptions{Source: JobFromCreated, Group: emptyGroup(t), Reaped: func() ReapedUsage {
		if damaged {
			panic("index out of range")
		}
		return ReapedUsage{}
	}}, tree: newJobTree(JobOptions{})}

	for what, read := range map[string]func() *Reading{"baseline": reader.Baseline, "reading": reader.Read} {
		damaged = true
		if r := read(); r.Failed[SourceJob] == nil || !strings.Contains(r.Failed[SourceJob].Error(), "index out of range") || r.CPU == nil {
			t.Errorf("%s: failures = %v, CPUs = %v; want the panic as the job's failure, and CPUs", what, r.Failed, r.CPU)
		}
		damaged = false
		if r := read(); r.Failed[SourceJob] != nil || r.Job == nil || r.Job.CPUSeconds != 7 || !math.IsNaN(r.Job.Processes) && what == "reading" {
			t.Errorf("%s after the panic: usage = %+v, failures = %v; want 7 s of CPU time and no failure",
				what, r.Job, r.Failed)
		}
	}
}

// The error contains every reason why processes of the job could not be read.
func TestFileErrors_ContainsEveryReason(t *testing.T) {
	if err := fileErrors(nil); err != nil {
		t.Errorf("fileErrors(nil) = %v, want nil", err)
	}
	stat, io := errors.New("no stat"), errors.New("no io")
	err := fileErrors(map[string]error{"stat": stat, "io": io})
	var why []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		why = append(why, e.Error())
	}
	if got := strings.Join(why, "|"); got != "io: no io|stat: no stat" || !errors.Is(err, stat) || !errors.Is(err, io) {
		t.Errorf("reasons = %q, want io before stat, both of them wrapped", got)
	}
}
