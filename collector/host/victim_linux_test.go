package host

import (
	"testing"
	"time"
)

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
		if v != want || ok != (want.PID > 0) || ok && at != 34361325065*time.Microsecond {
			t.Errorf("%q: victim = %+v at %v, ok = %v; want %+v", line, v, at, ok, want)
		}
	}

	for _, record := range []string{"12,568,34361325065,-;Killed process 42 (python) total-vm:77996kB, anon-rss:0kB", "", ";", "1,2,3", "1,2,x,-;oom-kill:", "1,2,-3,-;oom-kill:task=x,pid=3,", "oom-kill:task=x,pid=3,"} {
		if v, _, ok := parseVictim([]byte(record)); ok {
			t.Errorf("%q: victim = %+v, want the record to be rejected", record, v)
		}
	}
}
