//go:build e2e

package campaign

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// faultsFlag makes the test fail every system call of a run, and write the table.
var faultsFlag = flag.Bool("faults", false, "have each system call of a run fail, and write the table")

// Maximum numbers of failing calls for each system call and thread. They are evenly spread over the calls in a trace.
const (
	mostOfAKind  = 40
	shortOfAKind = 2
)

// faultErrors lists the injected errors.
var faultErrors = []string{"EPERM", "ENOSYS", "EIO", "ENOSPC", "EMFILE", "EINTR"}

// spared lists calls that are not made to fail, because they cannot fail. In particular, close(2) always closes the
// descriptor, but an injected failure would leave a pipe open.
var spared = []string{"close", "exit", "exit_group", "rt_sigreturn",
	"getpid", "gettid", "getppid", "geteuid", "getuid", "getegid"}

// fatal lists calls that every Go program needs. If one of them fails, the Go runtime aborts, which is allowed only
// before the job begins. Afterwards, the job must end with its exit code.
var fatal = []string{"fcntl", "mmap", "arch_prctl", "rt_sigprocmask", "sigaltstack", "rt_sigaction", "clone",
	"sched_getaffinity", "futex", "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "pipe2", "munmap"}

// tracer prepares perfagent around a job, under strace. strace detaches from the job's process when the job is
// executed.
func tracer(t testing.TB, j job, args ...string) *process {
	t.Helper()
	strace := testenv.NeedsTool(t, "strace", "apt-get install strace")
	args = slices.Concat([]string{"-f", "-qq", "-b", "execve", "-o", "trace"}, args,
		[]string{clitest.Binary(t), "run", "--interval", "10ms", "--summary", "line", "--"}, j.words(t))
	return launch(t, clitest.Command(t, strace, args...))
}

// faultJob returns the wrapped job, with exit code 7.
func faultJob(t testing.TB) job { return job{t.TempDir(), 3, 64, 25, 7} }

// callsOfARun returns the maximum number of times that a thread of perfagent makes each call in a run, from traces.
func callsOfARun(t *testing.T) map[string]int {
	t.Helper()
	line := regexp.MustCompile(`^(\d+) +([a-z0-9_]+)\(`)
	most := make(map[string]int)
	for range 5 {
		p := tracer(t, faultJob(t))
		if code := p.wait(t); code != 7 {
			t.Fatalf("exit code under strace = %d, want 7: %s", code, p.stderr.String())
		}
		made := make(map[string]int) // number of calls by thread and call
		for text := range strings.Lines(clitest.Read(t, filepath.Join(p.Dir, "trace"))) {
			if m := line.FindStringSubmatch(text); m != nil {
				made[m[1]+" "+m[2]]++
				most[m[2]] = max(most[m[2]], made[m[1]+" "+m[2]])
			}
		}
	}
	for _, name := range spared {
		delete(most, name)
	}
	return most
}

// evenly returns at most limit evenly spread numbers from 1 to n, including the first and the last.
func evenly(n, limit int) (out []int) {
	if n <= limit {
		limit = n
	}
	for i := range limit {
		out = append(out, 1+int(math.Round(float64(i*(n-1))/float64(max(limit-1, 1)))))
	}
	return slices.Compact(out)
}

// Whichever call of a run fails, and with whichever error, the job runs once, unharmed, with its exit code and output.
// There is a report, or one line with the reason why there is none.
func TestFaults(t *testing.T) {
	testenv.SkipIfShort(t, "a minute, to have system calls fail")
	limit, kinds := mostOfAKind, faultErrors
	if !*faultsFlag {
		limit = shortOfAKind
	}

	calls := callsOfARun(t)
	names := make([]string, 0, len(calls))
	for name := range calls {
		names = append(names, name)
	}
	slices.Sort(names)

	all := newFaultTable()
	t.Run("calls", func(t *testing.T) {
		for i, name := range names {
			for _, n := range evenly(calls[name], limit) {
				for k, kind := range kinds {
					if !*faultsFlag && (i+n+k)%len(kinds) != 0 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d/%s", name, n, kind), func(t *testing.T) {
						t.Parallel()
						all.add(name, kind, fail(t, name, n, kind))
					})
				}
			}
		}
	})
	if *faultsFlag {
		writeTable(t, "faults", all.String())
	}
	t.Log("\n" + all.String())
}

// madeAndFailed is a part of perfagent's message about a failure in the child process before it became the job.
const madeAndFailed = "its new process failed"

// gaveUp matches the messages of the Go runtime when it aborts.
var gaveUp = regexp.MustCompile(`(?m)^(fatal error:|SIGSEGV:|SIGABRT:|futexwakeup addr|runtime:)`)

// Faults that harmed a job in an earlier version no longer do so.
func TestFaults_EarlierFaultsAreHarmless(t *testing.T) {
	testenv.SkipIfShort(t, "some seconds, to have system calls fail")
	for _, fault := range []struct {
		call, kind string
		until      int // each of the first until calls of a thread is made to fail
	}{
		{"write", "EMFILE", 2}, {"newfstatat", "ENOSPC", 1}, {"faccessat2", "EINTR", 1}, {"pipe2", "ENOSYS", 1},
		{"read", "EMFILE", 6}, {"fcntl", "EPERM", 12},
	} {
		for n := 1; n <= fault.until; n++ {
			t.Run(fmt.Sprintf("%s/%d", fault.call, n), func(t *testing.T) {
				t.Parallel()
				if fail(t, fault.call, n, fault.kind) == missed {
					t.Logf("no thread made %d calls", n)
				}
			})
		}
	}
}

// A faultOutcome is the outcome of a run in which a call failed.
type faultOutcome int

const (
	missed    faultOutcome = iota // the run made no such call
	reported                      // there is a report
	explained                     // there is no report, but a line with the reason
	bare                          // the job ran unmeasured, and a line reports that
	refused                       // the job was not started, and a line has the reason
	aborted                       // the runtime aborted before the job
	lost                          // the runtime aborted during the job, which continued
	unknown                       // the exit code is unknown, and a line reports that
)

// fail makes the n-th call with the given name fail in each thread, and checks the outcome.
func fail(t *testing.T, name string, n int, kind string) faultOutcome {
	j := faultJob(t)
	p := tracer(t, j, "-e", "trace="+name, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", name, kind, n))
	code := p.wait(t)
	trace, _ := os.ReadFile(filepath.Join(p.Dir, "trace"))
	if !strings.Contains(string(trace), "(INJECTED)") {
		return missed
	}

	s, said := j.story(t), p.stderr.String()
	if strings.Contains(said, "without being measured") { // strace detached when perfagent became the job
		code = s.code
	}
	report, _ := filepath.Glob(filepath.Join(p.Dir, "perfagent-out/*/node-0.json"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("exit code %d; %+v; stdout %q; report %q; stderr:\n%.1500s\ntrace:\n%.3000s",
				code, s, p.stdout.String(), report, said, trace)
		}
	})

	if s.begun == 0 {
		return begunNever(t, name, code, said)
	}
	if s.begun != 1 || s.ended != 1 || s.signals > 0 || p.stdout.String() != "said\n" {
		t.Errorf("job %+v, stdout %q; want one beginning, one end, no signals, and stdout \"said\\n\"",
			s, p.stdout.String())
	}
	switch {
	case (slices.Contains(fatal, name) || strings.Contains(said, "netpollBreak write")) && gaveUp.MatchString(said):
		if status, orphan := p.statuses[s.pid]; orphan && status.ExitStatus() != j.end {
			t.Errorf("job ended with %v, want exit code %d", status, j.end)
		}
		return lost
	case name == "wait4" && code == 255 && strings.Contains(said, "; how is not known"),
		name == "read" && code == 126 && strings.Contains(said, madeAndFailed): // the read of the result of exec failed
		return unknown
	case code != j.end:
		t.Errorf("exit code = %d, want the job's exit code %d", code, j.end)
	}
	switch {
	case len(report) == 1:
		wantReport(t, report[0], s, j.end, false)
		return reported
	case strings.Contains(said, "without being measured"):
		return bare
	case !strings.Contains(said, "perfagent: "):
		t.Errorf("there is no report, and stderr %q has no line from perfagent", said)
	}
	for _, elsewhere := range reportsSaid(p.Dir, said) {
		wantReport(t, elsewhere, s, j.end, false)
	}
	return explained
}

// begunNever checks the outcome of a run that did not start its job.
func begunNever(t *testing.T, name string, code int, said string) faultOutcome {
	t.Helper()
	switch {
	case code == 126 && (name == "execve" || strings.Contains(said, madeAndFailed)):
		return refused
	case slices.Contains(fatal, name) && (code == -1 || gaveUp.MatchString(said)):
		return aborted
	}
	t.Errorf("job was not started, without an explanation: exit code %d, stderr %q", code, said)
	return refused
}

// A faultTable counts outcomes by call and error.
type faultTable struct {
	mu     sync.Mutex
	counts map[string]map[faultOutcome]int // counts by call
	errors map[string]int                  // number of faults by error
}

func newFaultTable() *faultTable {
	return &faultTable{counts: make(map[string]map[faultOutcome]int), errors: make(map[string]int)}
}

func (f *faultTable) add(name, kind string, o faultOutcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts[name] == nil {
		f.counts[name] = make(map[faultOutcome]int)
	}
	f.counts[name][o]++
	if o != missed {
		f.errors[kind]++
	}
}

// String returns the table as Markdown: the number of runs with each outcome and, for rare outcomes, the calls.
func (f *faultTable) String() string {
	var out strings.Builder
	out.WriteString("| outcome | runs | failed calls |\n|---|---:|---|\n")
	names := []string{"", "report", "no report, and why", "not measured", "not started",
		"runtime gave up before the job started", "runtime gave up later", "exit code unknown"}
	all := 0
	for o := reported; o <= unknown; o++ {
		var calls []string
		runs := 0
		for _, call := range slices.Sorted(maps.Keys(f.counts)) {
			if n := f.counts[call][o]; n > 0 {
				calls = append(calls, fmt.Sprintf("`%s` %d", call, n))
				runs += n
			}
		}
		if o == reported {
			calls = []string{fmt.Sprintf("%d different calls", len(calls))}
		}
		fmt.Fprintf(&out, "| %s | %d | %s |\n", names[o], runs, strings.Join(calls, ", "))
		all += runs
	}
	fmt.Fprintf(&out, "| all | %d | |\n\n", all)

	var kinds []string
	for _, kind := range faultErrors {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, f.errors[kind]))
	}
	fmt.Fprintf(&out, "Runs by error: %s.\n", strings.Join(kinds, ", "))
	return out.String()
}
