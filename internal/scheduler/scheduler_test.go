package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// environment returns the lookup function of a list in the format of os.Environ.
func environment(env ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok && name != "" {
				return value, true
			}
		}
		return "", false
	}
}

// detect returns the identity of a process on host "node2" with an environment.
func detect(env ...string) Identity {
	return Detect(Environment{Lookup: environment(env...), Hostname: "node2"})
}

func TestDetect_FindsSchedulerInCharge(t *testing.T) {
	for _, test := range []struct {
		env              []string
		name, jobID, run string
		end              int64 // seconds since 1970; 0 = none
	}{
		{env: nil},
		{env: []string{"JOB_ID=build-17"}}, // a common name: Grid Engine also sets SGE_TASK_ID
		{env: []string{"JOB_ID=99", "SGE_TASK_ID=undefined"}, name: "Grid Engine", jobID: "99", run: "99"},
		{env: []string{"JOB_ID=99", "SGE_TASK_ID=1"}, name: "Grid Engine", jobID: "99", run: "99_1"},
		{env: []string{"JOB_ID=99", "SGE_TASK_ID=1", "SLURM_JOB_ID=5"}, name: "Slurm", jobID: "5", run: "5"},
		{env: []string{"SLURM_JOB_ID=5", "SLURM_JOB_END_TIME=1767225600"}, name: "Slurm", jobID: "5", run: "5", end: 1767225600},
		{env: []string{"SLURM_JOB_ID=5", "SLURM_JOB_END_TIME=soon"}, name: "Slurm", jobID: "5", run: "5"},
		{env: []string{"SLURM_JOB_ID=5", "SLURM_JOB_END_TIME=-1"}, name: "Slurm", jobID: "5", run: "5"},
		{env: []string{"SLURM_JOB_ID=5", "SLURM_JOB_END_TIME=9223372036854775807"}, name: "Slurm", jobID: "5", run: "5"},
		{env: []string{"SLURM_JOB_ID=7", "SLURM_ARRAY_JOB_ID=5", "SLURM_ARRAY_TASK_ID=2"}, name: "Slurm", jobID: "7", run: "5_2"},
		{env: []string{"PBS_JOBID=6", "SLURM_JOB_ID=", "SLURM_JOB_END_TIME=1767225600"}, name: "PBS", jobID: "6", run: "6"},
		{env: []string{"LSB_JOBID=6", "LSB_JOBINDEX=0"}, name: "LSF", jobID: "6", run: "6"},
		{env: []string{"LSB_JOBID=6", "LSB_JOBINDEX=4"}, name: "LSF", jobID: "6", run: "6_4"},
		{env: []string{"SLURM_JOB_END_TIME=1767225600"}},
	} {
		id := detect(test.env...)

		if id.Scheduler != test.name || id.JobID != test.jobID || id.RunID != test.run {
			t.Errorf("%q: scheduler %q, job %q, run %q; want %q, %q, %q",
				test.env, id.Scheduler, id.JobID, id.RunID, test.name, test.jobID, test.run)
		}
		if id.EndTime.IsZero() != (test.end == 0) || test.end > 0 && !id.EndTime.Equal(time.Unix(test.end, 0)) {
			t.Errorf("%q: EndTime %v, want Unix time %d (0 = none)", test.env, id.EndTime, test.end)
		}
	}
}

// The nearer of two launchers determines the rank, and its variables are not listed as ignored.
func TestDetect_UsesNearestLauncher(t *testing.T) {
	azure := []string{"AZUREML_RUN_ID=a", "RANK=1", "LOCAL_RANK=1", "NODE_RANK=0", "WORLD_SIZE=2"}
	elastic := []string{"GROUP_RANK=0", "LOCAL_WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=e"}
	mpirun := []string{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4"}
	for _, test := range []struct {
		env     []string
		rank    string
		ignored []string
	}{
		{azure, "RANK", nil},
		{slices.Concat(azure, elastic), "RANK", nil},
		{slices.Concat(azure, mpirun), "OMPI_COMM_WORLD_RANK", []string{"RANK"}},
		{slices.Concat(azure, mpirun, elastic), "RANK", []string{"OMPI_COMM_WORLD_RANK"}},
	} {
		id := detect(test.env...)

		var ignored []string
		for _, i := range id.Ignored {
			ignored = append(ignored, i.Name)
		}
		if id.From["rank"] != test.rank || !slices.Equal(ignored, test.ignored) {
			t.Errorf("%q: rank from %s, ignored %v; want %s, %v",
				test.env, id.From["rank"], id.Ignored, test.rank, test.ignored)
		}
	}
}

func TestGPUs_PrefersStepToJob(t *testing.T) {
	for _, test := range []struct {
		env  []string
		list string
		ok   bool
	}{
		{nil, "", false}, {[]string{"SLURM_JOB_GPUS=0,1"}, "0,1", true},
		{[]string{"SLURM_JOB_GPUS=0,1", "SLURM_STEP_GPUS=1"}, "1", true}, {[]string{"SLURM_JOB_GPUS=0,1", "SLURM_STEP_GPUS="}, "", true},
	} {
		if list, ok := GPUs(environment(test.env...)); list != test.list || ok != test.ok {
			t.Errorf("GPUs of %q = %q, %v; want %q, %v", test.env, list, ok, test.list, test.ok)
		}
	}
}

func TestIsDaemon_MatchesOnlyDaemons(t *testing.T) {
	for name, want := range map[string]bool{
		"slurmstepd": true, "slurmd": true, "pbs_mom": true, "sge_shepherd": true, "sge_execd": true, "sbatchd": true,
		"res": true, "flux-broker": true, "flux-": true,
		"": false, "flux": false, "restic": false, "bash": false, "slurmctld": false,
	} {
		if IsDaemon(name) != want {
			t.Errorf("IsDaemon(%q) = %v, want %v", name, !want, want)
		}
	}
}

func TestSafeRunID_MakesValidID(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "4711": "4711", "123[4].server.site": "123_4_.server.site", "../../etc": ".._.._etc", "..": "__",
		"\x1b[31m\n": "__31m_", "日本": "__", strings.Repeat("x", 1000): strings.Repeat("x", maxRunID),
		strings.Repeat(".", 1<<10): strings.Repeat("_", maxRunID),
	} {
		got := SafeRunID(text)
		if got != want {
			t.Errorf("SafeRunID(%.40q) = %q, want %q", text, got, want)
		}
		if got != "" && CheckRunID(got) != nil {
			t.Errorf("CheckRunID(%q) = %v for a result of SafeRunID, want nil", got, CheckRunID(got))
		}
	}
}

func TestCheckRunID_RefusesUnsafeNames(t *testing.T) {
	for _, id := range []string{"", ".", "..", "a/b", "a b", "a\n", "ü", strings.Repeat("x", maxRunID+1)} {
		if CheckRunID(id) == nil {
			t.Errorf("CheckRunID(%q) = nil, want an error", id)
		}
	}

	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	if id := NewRunID(now); CheckRunID(id) != nil || !strings.HasPrefix(id, "20260131-120000-") || id == NewRunID(now) {
		t.Errorf("NewRunID(%v) = %q, want a valid ID with that time and different digits in each call", now, id)
	}
}

func TestNodeNames_ExpandsLists(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "login": "login", "node[1-3]": "node1 node2 node3", "n[008-011]": "n008 n009 n010 n011",
		"gpu[1-2,07],login,a[9]b": "gpu1 gpu2 gpu07 login a9b", "r[1-2]n[1-2]": "r1n1 r1n2 r2n1 r2n2",
		"n[1-": "", "n1,n[3-2],n4": "n1", "n[a]": "", "n1,,n2": "n1",
	} {
		if got := strings.Join(slices.Collect(nodeNames(list)), " "); got != want {
			t.Errorf("names of %q: %q, want %q", list, got, want)
		}
	}

	for _, huge := range []string{"n[0-4294967295]", "a[0-99999]b[0-99999]", strings.Repeat("n[0-9999],", 1000)} {
		if n := len(slices.Collect(nodeNames(huge))); n != maxNodes {
			t.Errorf("%.30q: %d names, want %d", huge, n, maxNodes)
		}
	}
}

func TestTasksAt_FindsTasksOfNode(t *testing.T) {
	for _, test := range []struct {
		list string
		node int
		want int // -1 = unknown
	}{
		{"3,1", 0, 3}, {"3,1", 1, 1}, {"3,1", 2, -1}, {"2(x2),1", 1, 2}, {"2(x2),1", 2, 1}, {"2(x0),1", 0, 1},
		{"", 0, -1}, {"x", 0, -1}, {"2(xx)", 0, -1}, {"-1", 0, -1}, {"2(x4294967296)", 0, -1},
	} {
		got, ok := tasksAt(test.list, test.node)
		if ok != (test.want >= 0) || ok && got != test.want {
			t.Errorf("tasksAt(%q, %d) = %d, %v; want %d (-1 = unknown)", test.list, test.node, got, ok, test.want)
		}
	}
}

func TestSameHost_ToleratesMissingDomain(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"node1", "node1", true}, {"node1.site", "node1", true}, {"node1", "node1.site", true},
		{"node1.site", "node1.site", true}, {"node1.site", "node1.other", false}, {"node1", "node10", false}, {"", "", false},
	} {
		if sameHost(test.a, test.b) != test.want {
			t.Errorf("sameHost(%q, %q) is %v, want %v", test.a, test.b, !test.want, test.want)
		}
	}
}

// Any list is expanded to at most maxNodes names, without a panic.
func FuzzNodeList(f *testing.F) {
	for _, list := range []string{"gpu[1-2,07],login", "2(x2),1", "n[", "]]", "n[1-2]m[3]", "[", ",", "-"} {
		f.Add(list, 3)
	}
	f.Fuzz(func(t *testing.T, list string, node int) {
		if n := len(slices.Collect(nodeNames(list))); n > maxNodes {
			t.Errorf("%q: %d names, want at most %d", list, n, maxNodes)
		}
		if tasks, ok := tasksAt(list, max(0, node)); ok && tasks < 0 {
			t.Errorf("%q: %d tasks, want 0 or more", list, tasks)
		}
	})
}
