package reporter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// accountReport returns the node of a job of 10 s, after change has modified its Account and Job.
func accountReport(t *testing.T, change func(a *collector.Account, j *reporter.Job)) *reporter.Node {
	t.Helper()
	in := reportertest.JobInput(10, 0, 0, "")
	in.Run.WallSeconds = 10
	in.Recording.End.Mono = in.Recording.Start.Mono + 10*time.Second
	in.Recording.Account = collector.NoAccount()
	a := &in.Recording.Account
	a.Source, a.Limits.CPUs = host.JobFromTree, 2
	change(a, in.Job)
	r := reporter.New(in)
	return r.Nodes[r.NodeNames()[0]]
}

// The kernel's own peak of the limiting group is used if it is above the samples.
func TestNew_MemoryLimitShareIncludesKernelPeak(t *testing.T) {
	for _, c := range []struct {
		reached     series.Optional
		read, wrote float64 // MiB
		killed      bool
		want        float64 // 0 = unknown
	}{
		{100, 0, 0, false, 100}, {70, 0, 0, false, 70}, {series.Unknown(), 0, 0, false, 0},
		{70, 10, 30, false, 50}, {70, 100, 100, false, 0}, // all of it may have been page cache
		{70, 10, 30, true, 100},
	} {
		n := accountReport(t, func(a *collector.Account, j *reporter.Job) {
			a.Limits.MemoryMB, a.LimitReachedPct = 200, c.reached
			j.BlockReadMB, j.BlockWriteMB = c.read, c.wrote
			if c.killed {
				a.OOMKills, a.FullAtKillMB, a.LastOOMKill = 1, 200, &collector.OOMKill{AtLimit: true}
			}
		})
		got, ok := n.Metrics[reporter.MetricLimitMemory]
		if ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%+v: share of the memory limit = %v %% (present: %v), want %v (0 = absent)", c, got, ok, c.want)
		}
	}
}

func TestNew_JobCPUIncludesEndedAndRunningProcesses(t *testing.T) {
	for _, c := range []struct {
		name, source     string
		account, living  series.Optional
		user, want, late float64
		said             bool
	}{
		{"all processes ended", host.JobFromTree, 5, 0, 5, 5, 0, false},
		{"daemon still running", host.JobFromTree, 5.9, 1, 5, 6, 0, false},
		{"children that no process waited for", host.JobFromTree, 5, 0, 0.2, 5, 0, false},
		{"never sampled", host.JobFromTree, series.Unknown(), series.Unknown(), 5, 5, 0, false},
		{"group with short-lived children", host.JobFromCreated, 7, series.Unknown(), 5, 7, 0, false},
		{"left the group, but was followed", host.JobFromGroup, 5, series.Unknown(), 5, 5, 0.5, false},
		{"left the group unnoticed", host.JobFromGroup, 5, series.Unknown(), 5, 5, 4, true},
	} {
		n := accountReport(t, func(a *collector.Account, j *reporter.Job) {
			a.LateCPUSeconds = c.late
			a.Source, a.CPUSeconds, a.LivingCPUSeconds, j.UserSeconds, j.SystemSeconds = c.source, c.account, c.living, c.user, 0
		})
		check.Equal(t, n.Job.CPUSeconds, c.want, "%s: the job used", c.name)
		said := slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool {
			return m.Code == reporter.JobOutside && strings.Contains(m.Why, "used 4.0 s of CPU that its control group did not count")
		})
		check.Equal(t, said, c.said, "%s: reported that processes left the group", c.name)
	}
}

// A CPU limit that was lowered during the run was not exceeded before the change.
func TestNew_UsesMeanOfChangingCPULimit(t *testing.T) {
	n := accountReport(t, func(a *collector.Account, j *reporter.Job) {
		j.UserSeconds, j.SystemSeconds, a.CPUSeconds, a.Limits.CPUs = 5, 0, 5, 0.2
		a.LimitCPUSeconds = 1e9
	})
	if v := n.Metrics[reporter.MetricLimitCPU]; !(v > 0 && v < 1) {
		t.Errorf("used %v %% of the CPU limit, want more than 0 and less than 1, because the limit was high most of the time", v)
	}
	n = accountReport(t, func(a *collector.Account, j *reporter.Job) {
		j.UserSeconds, a.CPUSeconds, a.Limits.CPUs = 500, 500, 0.2
	})
	check.Equal(t, n.Metrics[reporter.MetricLimitCPU], 100, "share of the CPU limit, whose maximum is 100 %%")
}

func TestNew_PeakMemoryIsAtMostGroupPeak(t *testing.T) {
	for outside, want := range map[bool]float64{false: 97, true: 103} { // the peaks of the group and of a process outside it
		n := accountReport(t, func(a *collector.Account, j *reporter.Job) {
			a.Source, a.OutsideGroup, a.PeakMB, a.CacheMB, a.NonJobMB, j.MaxRSSMB = host.JobFromCreated, outside, 97, 5, 0, 103
		})
		check.Equal(t, n.Job.PeakMemoryMB, want, "peak memory in MiB with a process outside the group (%v)", outside)
	}
}

// Page cache that came and went between two samples is not the job's memory.
func TestNew_PeakMemoryExcludesUnsampledPageCache(t *testing.T) {
	for _, c := range []struct {
		read, wrote float64
		kills       series.Optional
		proved      bool // the limit is known to be the reason
		want        float64
	}{{0, 0, 0, false, 150}, {20, 30, 0, false, 100}, {100, 200, 0, false, 7}, {100, 200, 1, true, 150}, {100, 200, 1, false, 7}} {
		n := accountReport(t, func(a *collector.Account, j *reporter.Job) {
			a.Source, a.PeakMB, a.CacheMB, a.NonJobMB, j.MaxRSSMB = host.JobFromCreated, 160, 6, 4, 7
			j.BlockReadMB, j.BlockWriteMB, a.OOMKills = c.read, c.wrote, c.kills
			if c.kills > 0 {
				a.FullAtKillMB, a.LastOOMKill = 160, &collector.OOMKill{AtLimit: c.proved}
			}
		})
		check.Equal(t, n.Job.PeakMemoryMB, c.want, "%+v: peak memory", c)
	}
}
