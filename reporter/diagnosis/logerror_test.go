package diagnosis

import (
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

const (
	traceback = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    step()\n"
	rankTrace = "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/a/train.py\", line 3, in <module>\n[rank1]:     step()\n"
)

func TestFindLogError(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]struct{ kind, line string }{
		traceback + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB":               {"cuda_oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"},
		"RuntimeError: CUDA error: out of memory":                                                       {"cuda_oom", ""},
		"CUDA out of memory.\n[rank0]: NCCL operation timed out\nKilled":                                {"cuda_oom", "CUDA out of memory."},
		traceback + "MemoryError":                                                                       {"memory_error", "MemoryError"},
		"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8. GiB":                           {"memory_error", ""},
		"terminate called after throwing an instance of 'std::bad_alloc'":                               {"memory_error", ""},
		"java.lang.OutOfMemoryError: Java heap space":                                                   {"memory_error", ""},
		"fork: Cannot allocate memory":                                                                  {"memory_error", ""},
		"fatal error: runtime: out of memory":                                                           {"memory_error", ""},
		"RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that …": {"bus_error", ""},
		"sh: line 1:  7 Bus error               (core dumped) ./solver":                                 {"bus_error", ""},
		traceback + "OSError: [Errno 28] No space left on device: 'x'":                                  {"no_space", ""},
		"Error: ENOSPC: no space left on device, write":                                                 {"no_space", ""},
		traceback + "OSError: [Errno 24] Too many open files: 'x'":                                      {"too_many_open_files", ""},
		"[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.": {"nccl_timeout", ""},
		"RuntimeError: NCCL timeout": {"nccl_timeout", ""},
		"Killed":                     {"killed", "Killed"},
		"sh: line 1:  4245 Killed                  python3 x.py":                     {"killed", ""},
		"srun: error: node1: task 0: Killed":                                         {"killed", ""},
		"make: *** [Makefile:2: all] Killed":                                         {"killed", ""},
		"subprocess.CalledProcessError: Command 'x' died with <Signals.SIGKILL: 9>.": {"killed", ""},
		"RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. ":      {"killed", ""},
		traceback + "ValueError: odd":                                                {"traceback", "ValueError: odd"},
		rankTrace + "[rank1]: ValueError: odd\ncleaning up":                          {"traceback", "[rank1]: ValueError: odd"},
		traceback + "    ^^^^\n\nValueError: odd\nbye":                               {"traceback", "ValueError: odd"},
		"    step()\n  File \"x.py\", line 7, in step":                               {"traceback", "  File \"x.py\", line 7, in step"},

		"": {}, "done": {}, "epoch 3: loss 0.1": {}, "Killed 3 stale locks": {}, "skilled": {}, "NCCL timeout set to 1800 s": {},
		"NCCL_TIMEOUT=1800": {}, "killed it": {}, "HIP error": {}, "buses": {},
	} {
		lines := strings.Split(log, "\n")
		got := findLogError(lines)
		if want.kind == "" {
			check.Equal(t, got, nil, "%q says", log)
			continue
		}
		if want.line == "" {
			want.line = lines[len(lines)-1]
		}
		check.Equal(t, got, &reporter.LogError{Kind: want.kind, Line: want.line}, "%q says", log)
	}
	check.Equal(t, findLogError(nil), nil, "no lines say")
	check.Equal(t, LogErrorWords("a later kind"), "", "words for an unknown kind")
}

func FuzzFindLogError(f *testing.F) {
	f.Add(traceback + "MemoryError")
	f.Add(rankTrace + "[")
	f.Fuzz(func(t *testing.T, log string) {
		lines := strings.Split(log, "\n")
		if s := findLogError(lines); s != nil && (LogErrorWords(s.Kind) == "" || !slices.Contains(lines, s.Line)) {
			t.Errorf("%q says %+v, want a known kind and one of the lines", log, s)
		}
	})
}
