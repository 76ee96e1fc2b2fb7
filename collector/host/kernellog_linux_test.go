package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
)

// logOf opens the kernel's log at its end.
func logOf(t testing.TB) *kernelLog {
	t.Helper()
	l := openKernelLog()
	if l == nil {
		t.Skip("needs to read the kernel's log (/dev/kmsg); run the tests as root")
	}
	t.Cleanup(l.close)
	return l
}

// hogForMemory prepares a process in a separate v1 group that the kernel kills because the process exceeds the group's
// memory limit.
func hogForMemory(t *testing.T) (group string, hog *exec.Cmd) {
	t.Helper()
	const root = "/sys/fs/cgroup/memory"
	group = fmt.Sprintf("/perfagent-log-%d", time.Now().UnixNano())
	if err := os.Mkdir(root+group, 0o755); err != nil {
		t.Skipf("cannot create a v1 control group (%v); run the tests as root with systemd.unified_cgroup_hierarchy=0", err)
	}

	t.Cleanup(func() {
		for range 6000 { // a killed process may still be ending
			if unix.Rmdir(root+group) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("cannot remove the test's group %s", root+group)
	})

	for _, file := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"} {
		path := filepath.Join(root+group, file)
		if err := os.WriteFile(path, []byte("16777216"), 0); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return group, exec.Command("/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" && exec tail /dev/zero`, root+group)
}

// killForMemory makes the kernel kill a process that exceeds the memory limit of its group.
func killForMemory(t *testing.T) (group string, pid int) {
	t.Helper()
	group, hog := hogForMemory(t)
	if err := hog.Run(); err == nil {
		t.Fatal("a process beyond the limit of its group was not killed")
	}
	return group, hog.Process.Pid
}

// The relation of a killed process is found immediately from its parents, without a scan.
func TestKernelLog_LooksUpRelationOfVictims(t *testing.T) {
	for name, c := range map[string]struct {
		root int
		want [2]bool // in the job, foreign
	}{
		"in the job":      {os.Getpid(), [2]bool{true, false}},
		"outside the job": {os.Getppid(), [2]bool{false, true}},
	} {
		l := logOf(t)
		tree := process.NewTree(process.Options{Root: c.root, Ignore: func(int) bool { return c.want[1] }})
		l.watch(Now(), tree)
		_, hog := hogForMemory(t)
		must(t, hog.Start())
		victim := func() *Victim {
			for _, v := range l.victims() {
				if v.PID == hog.Process.Pid {
					return &v
				}
			}
			return nil
		}
		for begin := time.Now(); time.Since(begin) < 5*time.Minute && (victim() == nil || !victim().InJob && !victim().Foreign); {
			time.Sleep(time.Millisecond)
		}
		if v := victim(); v == nil || [2]bool{v.InJob, v.Foreign} != c.want {
			t.Errorf("%s: victim = %+v, want InJob and Foreign %v", name, v, c.want)
		}
		if err := hog.Wait(); err == nil { // until Wait, the process exists
			t.Error("a process beyond the limit of its group was not killed")
		}
	}
}

// A known relation of a killed process is kept. A scan that found the process in the job remains right, even if another
// process has adopted it since.
func TestKernelLog_KeepsKnownRelations(t *testing.T) {
	l := &kernelLog{pids: true, tracked: []trackedVictim{{Victim: Victim{PID: 1, Foreign: true}}, {Victim: Victim{PID: 2, InJob: true}}, {Victim: Victim{PID: 3}}}}
	l.resolveRelations(func(pid int) process.Relation {
		return map[int]process.Relation{1: process.InJob, 2: process.Foreign, 3: process.Foreign}[pid]
	})
	l.resolveRelations(func(int) process.Relation { return process.UnknownRelation })
	for i, want := range [][2]bool{{true, false}, {true, false}, {false, true}} {
		v := l.victims()[i]
		check.True(t, [2]bool{v.InJob, v.Foreign} == want, "victim = %+v, want InJob and Foreign %v", v, want)
	}
}

// A record logged after the start belongs to this run, even if its time is earlier: the log's clock drifts from the
// other clocks.
func TestKernelLog_FindsVictimsSinceItWasOpened(t *testing.T) {
	l := logOf(t)
	start := Now()
	start.Mono += time.Hour // the log's clock is behind
	group, pid := killForMemory(t)
	now := start
	now.Mono += time.Second
	of := func(victims []Victim) *Victim {
		i := slices.IndexFunc(victims, func(v Victim) bool { return v.PID == pid })
		if i < 0 {
			return nil
		}
		return &victims[i]
	}

	l.read(start, now)
	v := of(l.victims())
	if v == nil || v.Process != "tail" || v.Host || v.Foreign {
		t.Fatalf("victim = %+v, want process %d", v, pid)
	}

	if v.Group == "" && v.LimitGroup == "" {
		t.Log("the kernel did not log the group, as after ten kills within 5 s")
	} else if v.Group != group || v.LimitGroup != group {
		t.Errorf("victim = %+v, want the group %s", v, group)
	}

	check.True(t, v.At.Equal(start.Wall),
		"time of the kill = %v, want the start, %v: it cannot have been earlier", v.At, start.Wall)
	if l.read(start, now); of(l.victims()) == nil {
		t.Errorf("process %d is no longer a victim after another read", pid)
	}
	later := logOf(t)
	later.read(Instant{}, now)
	old := of(later.victims())
	check.True(t, old == nil, "a log opened after the kill reports victim %+v, want none", old)
}

func TestKernelLog_KeepsNewestVictims(t *testing.T) {
	l := logOf(t)
	for pid := range maxVictims {
		l.tracked = append(l.tracked, trackedVictim{Victim: Victim{PID: -1 - pid}})
	}
	_, pid := killForMemory(t)
	l.read(Now(), Now())
	victims := l.victims()
	// A victim of another test may follow process pid, but no older victim may.
	at := slices.IndexFunc(victims, func(v Victim) bool { return v.PID == pid })
	if len(victims) != maxVictims || at < 0 || slices.ContainsFunc(victims[at:], func(v Victim) bool { return v.PID < 0 }) {
		t.Errorf("victims = %+v, want %d, with process %d after all older ones", victims, maxVictims, pid)
	}
}

func TestReader_UnreadableLogHasNoVictims(t *testing.T) {
	r := NewReader(Options{})
	r.WatchDeaths()
	r.resolveVictims()
	v, whole := r.Victims(Now())
	check.True(t, v == nil && !whole, "victims = %+v, whole = %v; want nil, false", v, whole)
	r.Close()
}

// The lines are from Linux 6.18, 5.10, 5.0 and 4.19, except the malicious ones.
func TestParseVictim_UnderstandsAllKernels(t *testing.T) {
	const head = "6,568,34361325065,-;"
	for line, want := range map[string]Victim{
		"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=python3,pid=27157,uid=0":    {Process: "python3", PID: 27157, Group: "/a/b", LimitGroup: "/a", Constraint: OOMOfGroup},
		"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/u,task=x,pid=1,uid=0,pid=7,uid=0":       {Process: "x,pid=1,uid=0", PID: 7, Group: "/u", Host: true, Constraint: OOMOfHost},
		"oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=(null),cpuset=/a,mems_allowed=9,mems_allowed=1,global_oom,task_memcg=/u,task=x,pid=7,uid=0": {Process: "x", PID: 7, Group: "/u", Host: true, Constraint: OOMOfCPUSet, Nodes: "1"},
		"oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0,cpuset=/,mems_allowed=0-1,3,global_oom,task_memcg=/u,task=x,pid=7,uid=0":                  {Process: "x", PID: 7, Group: "/u", Host: true, Constraint: OOMOfCPUSet, Nodes: "0-1,3"},
		"oom-kill:constraint=CONSTRAINT_MEMORY_POLICY,nodemask=0,2,cpuset=/,mems_allowed=0-3,global_oom,task_memcg=/u,task=x,pid=7,uid=0":           {Process: "x", PID: 7, Group: "/u", Host: true, Constraint: OOMOfPolicy, Nodes: "0,2"},
		"oom-kill:constraint=CONSTRAINT_NEW,nodemask=0,2,cpuset=/,mems_allowed=0-3,global_oom,task_memcg=/u,task=x,pid=7,uid=0":                     {Process: "x", PID: 7, Group: "/u", Host: true},
		"oom-kill:task=x,pid=7,uid=0": {},
		"Memory cgroup out of memory: Killed process 27157 (python3) total-vm:77996kB, anon-rss:20224kB, file-rss:6224kB, shmem-rss:0kB, UID:0 pgtables:100kB oom_score_adj:0": {Process: "python3", PID: 27157, Constraint: OOMOfGroup},
		"Out of memory: Killed process 7 (a) (b) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB":                                                                      {Process: "a) (b", PID: 7, Host: true},
		"Out of memory: Killed process 7 (x), UID 0, total-vm:1kB, anon-rss:1kB":                                                                                               {Process: "x", PID: 7, Host: true},
		"Killed process 42 (python) total-vm:77996kB, anon-rss:20224kB, file-rss:6224kB, shmem-rss:0kB":                                                                        {Process: "python", PID: 42},
		"oom-kill:":                    {},
		"oom-kill:task=x,pid=-3,uid=0": {},
		"somebody says: Killed process 42 (x) total-vm:": {},
		"Out of memory: Killed process x (y) total-vm:":  {},
		"Out of memory: Killed process 42":               {},
		"":                                               {},
	} {
		v, at, ok := parseVictim([]byte(head + line + "\n SUBSYSTEM=x\n"))
		check.True(t, v == want && ok == (want.PID > 0) && (!ok || at == 34361325065*time.Microsecond),
			"%q: victim = %+v at %v, ok = %v; want %+v", line, v, at, ok, want)
	}

	for _, record := range []string{"12,568,34361325065,-;Killed process 42 (python) total-vm:77996kB, anon-rss:0kB", "", ";", "1,2,3", "1,2,x,-;oom-kill:", "1,2,-3,-;oom-kill:task=x,pid=3,", "oom-kill:task=x,pid=3,"} {
		v, _, ok := parseVictim([]byte(record))
		check.True(t, !ok, "%q: victim = %+v, want the record to be rejected", record, v)
	}
}
