package diagnosis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// death returns the death of a child of process 10 at the given number of seconds after the start.
func death(pid int, signal string, seconds float64) process.Death {
	return process.Death{PID: pid, PPID: 10, Command: "/usr/bin/python3 w.py", Signal: signal, How: process.DeathConnector,
		End: time.Duration(seconds * float64(time.Second))}
}

// deaths adds the deaths of a job of 20 s.
func deaths(list ...process.Death) fact {
	return func(c *verdictCase) { c.in.Recording.Deaths = &process.Deaths{List: list} }
}

// A death explains the job's end only if the exit code shows it, or if it was a crash that led to the end.
func TestNewVerdict_ChildDied(t *testing.T) {
	core := func(d process.Death) process.Death { d.CoreDumped = true; return d }
	of := func(ppid int, d process.Death) process.Death { d.PPID = ppid; return d }
	struck := func(seconds float64, d process.Death) process.Death {
		d.Struck = time.Duration(seconds * float64(time.Second))
		return d
	}
	full := roomLeft(room("/scratch", 0, 100))
	const python = "python3 (process "
	for _, test := range []struct {
		name   string
		code   int
		signal string
		change fact
		cause  string
		pid    float64
		text   string
	}{
		{"crash", 1, "", deaths(core(death(7, "SIGSEGV", 19.5))), CauseChildDied, 7, "exited with code 1 after " + python + "7) was killed by SIGSEGV: it accessed"},
		{"the first crash", 1, "", deaths(death(7, "SIGBUS", 16), death(8, "SIGSEGV", 19.5)), CauseChildDied, 7, "; that was 4.0 s before the end"},
		{"the first that began", 1, "", deaths(death(8, "SIGTERM", 19), struck(18.9, death(7, "SIGABRT", 19.5)), death(9, "SIGTERM", 19.4)), CauseChildDied, 7, ""},
		{"crash long ago", 1, "", deaths(death(7, "SIGSEGV", 14.9)), CauseExited, 0, "exited with code 1"},
		{"mercy", 1, "", deaths(death(7, "SIGSEGV", 1), death(8, "SIGTERM", 15.5)), CauseChildDied, 7, "; that was 19.0 s before the end"},
		{"mercy, then KILL", 143, "", deaths(death(7, "SIGSEGV", 1), death(8, "SIGKILL", 19.5)), CauseChildDied, 7, ""},
		{"siblings ended long ago", 1, "", deaths(death(7, "SIGSEGV", 1), death(8, "SIGTERM", 5)), CauseExited, 0, ""},
		{"not its siblings", 1, "", deaths(death(7, "SIGSEGV", 1), of(11, death(8, "SIGTERM", 19))), CauseExited, 0, ""},
		{"siblings before it", 1, "", deaths(death(8, "SIGTERM", 0.5), death(7, "SIGSEGV", 1)), CauseExited, 0, ""},
		{"pool", 1, "", deaths(death(7, "SIGTERM", 19.9), death(8, "SIGKILL", 19.9)), CauseExited, 0, "exited with code 1"},
		{"code of KILL", 137, "", deaths(death(6, "SIGKILL", 2), death(7, "SIGKILL", 3), death(8, "SIGSEGV", 19)), CauseChildDied, 7, "; the kernel does not say who sent it; that was 17.0 s before"},
		{"code of TERM", 143, "", deaths(death(7, "SIGTERM", 19.9)), CauseChildDied, 7, "was killed by SIGTERM; the kernel does not say"},
		{"code of SEGV, other crash", 139, "", deaths(death(7, "SIGABRT", 19.9)), CauseChildDied, 7, ""},
		{"code of SEGV, no death", 139, "", deaths(), CauseExited, 0, "exited with code 139, as a shell does when SIGSEGV ended its command"},
		{"code of PIPE", 141, "", deaths(), CauseExited, 0, "as a shell does when SIGPIPE ended its command"},
		{"code of no signal", 129, "", deaths(), CauseExited, 0, "exited with code 129"},
		{"not found", 127, "", deaths(death(7, "SIGSEGV", 19.9)), CauseExited, 0, ""},
		{"killed itself", 139, "SIGSEGV", deaths(death(7, "SIGBUS", 19.9)), CauseSignal, 0, "killed by SIGSEGV"},
		{"success", 0, "", deaths(death(7, "SIGSEGV", 19.9)), CauseExited, 0, "exited with code 0"},
		{"TERM to perfagent", 143, "", all(sentTo(term(19, 77, "bash")), deaths(death(7, "SIGTERM", 19.9))), CauseSignal, 0, "as programs do after SIGTERM from bash"},
		{"out of memory", 137, "", all(oomInGroup(ours(victim("python", 7, "/slurm/job_1", false))), deaths(death(7, "SIGKILL", 19.9))), CauseOOMCgroup, 7, ""},
		{"full disk, bus error", 1, "", all(full, deaths(death(7, "SIGBUS", 19.9))), CauseDiskFull, 0, ""},
		{"full disk, segmentation fault", 1, "", all(full, deaths(death(7, "SIGSEGV", 19.9))), CauseChildDied, 7, ""},
		{"full disk, child's core", 1, "", all(full, deaths(core(death(7, "SIGABRT", 19.9))), func(c *verdictCase) { c.in.Exit.CoresWritten = true }), CauseChildDied, 7, ""},
		{"vanished", 1, "", deaths(process.Death{PID: 7, How: process.DeathUnknown, End: 19 * time.Second}), CauseExited, 0, ""},
		{"main process", 1, "", deaths(death(4242, "SIGSEGV", 19.9)), CauseExited, 0, ""},
		{"hostile command", 1, "", func(c *verdictCase) {
			d := death(7, "SIGSEGV", 19.9)
			d.Command = reportertest.Hostile
			deaths(d)(c)
		}, CauseChildDied, 7, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verdictOf(t, test.code, test.signal, test.change)
			if pid := v.Number("pid"); v.Cause != test.cause || !strings.Contains(v.Text, test.text) || test.pid > 0 && pid != test.pid {
				t.Errorf("verdict %s of process %v: %q\nwant %s of process %v with %q", v.Cause, pid, v.Text, test.cause, test.pid, test.text)
			}
			if v.Cause == CauseChildDied && (v.Evidence["core_dumped"] == true) != strings.Contains(test.name, "core") && test.name != "crash" {
				t.Errorf("evidence %v", v.Evidence)
			}
		})
	}
}

// Deaths that do not explain the end are listed with their time, and with the memory that was left.
func TestNewVerdict_Beside(t *testing.T) {
	memory := func(pct float64) fact {
		return func(c *verdictCase) {
			c.a.LimitReachedPct = series.Optional(pct)
			c.a.Limits.MemoryMB, c.a.OOMKills, c.a.HostOOMKills = 1000, 0, 0
		}
	}
	exit := death(5, "", 19.99)
	exit.ExitCode = 3
	var many []process.Death
	for i := range 9 {
		d := death(100+i, "SIGUSR1", float64(i))
		d.PPID = i + 1
		many = append(many, d)
	}
	for _, test := range []struct {
		name   string
		code   int
		change fact
		want   []string
	}{
		{"killed worker", 1, all(memory(18), deaths(death(7, "SIGKILL", 19.8))),
			[]string{"0.2 s before, python3 (process 7) was killed by SIGKILL; memory was at most 18 % of its limit: not the out-of-memory killer"}},
		{"little room", 1, all(memory(95), deaths(death(7, "SIGKILL", 19.8))), []string{"0.2 s before, python3 (process 7) was killed by SIGKILL"}},
		{"siblings", 1, deaths(death(6, "SIGSEGV", 19), death(7, "SIGTERM", 19.1), death(8, "SIGTERM", 19.2), death(9, "SIGTERM", 19.3), exit),
			[]string{"0.9 s before, 3 processes were killed by SIGTERM, the first python3 (process 7)", "0.0 s before, python3 (process 5) exited with code 3"}},
		{"at most five", 1, deaths(many...), []string{
			"16.0 s before, python3 (process 104) was killed by SIGUSR1", "15.0 s before, python3 (process 105) was killed by SIGUSR1",
			"14.0 s before, python3 (process 106) was killed by SIGUSR1", "13.0 s before, python3 (process 107) was killed by SIGUSR1",
			"12.0 s before, python3 (process 108) was killed by SIGUSR1"}},
		{"same signal", 130, all(sentTo(collector.Signal{Signal: "SIGINT", Number: 2, At: at(19), Kernel: true}), deaths(death(7, "SIGINT", 19.5))), nil},
		{"success", 0, deaths(death(7, "SIGKILL", 19.8)), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verdictOf(t, test.code, "", test.change)
			check.True(t, slices.Equal(v.Beside, test.want), "beside %q, want %q", v.Beside, test.want)
		})
	}

	v := verdictOf(t, 137, "", all(memory(18), deaths(death(7, "SIGKILL", 19.8))))
	check.Equal(t, v.Number("headroom_pct"), 82, "headroom of a SIGKILL that nothing explains")
}

// deathsOf sets the deaths of a node with a job that succeeded.
func deathsOf(signals ...string) func(*reporter.Node) {
	return func(n *reporter.Node) {
		n.Job = &reporter.Job{ExitCode: new(0)}
		for i, signal := range signals {
			n.Deaths = append(n.Deaths, reporter.Death{PID: i + 1, Signal: signal, How: "connector"})
		}
	}
}
