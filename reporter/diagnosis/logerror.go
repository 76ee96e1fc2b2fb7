package diagnosis

import (
	"regexp"
	"strings"
	"sync"

	"github.com/perfagent/perfagent/reporter"
)

// LogErrorLines is the number of lines at the end of a job's log in which an error is looked for.
const LogErrorLines = 20

// kindTraceback is the kind of a traceback with an exception that the table does not know.
const kindTraceback = "traceback"

// logErrors is the table of errors in logs, the most specific first: an error often causes those below it.
var logErrors = []struct{ kind, words, pattern string }{
	{"cuda_oom", "a CUDA out-of-memory error",
		`CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY`},
	{"too_many_open_files", "the error 'too many open files'", `(?i)too many open files|\bEMFILE\b`},
	{"no_space", "the error 'no space left on device'", `(?i)no space left on device|\bENOSPC\b`},
	{"bus_error", "a bus error", `(?i)\bbus error\b|\bSIGBUS\b`},
	{"memory_error", "a failed allocation of memory",
		`\b\w*MemoryError\b|std::bad_alloc|OutOfMemoryError|(?i:cannot allocate (memory|vector)|\bout of memory\b)`},
	{"nccl_timeout", "an NCCL timeout", `(?i)watchdog caught collective operation timeout|timeout at NCCL work|` +
		`\bNCCL\b.*\b(timed out|timing out|timeout (error|after)|timeout$)`},
	{"killed", "a message about a killed process",
		`(^|[\]:\d] *)Killed($|\.|: 9|\s{2}|\s*\()|\bSIGKILL\b|\bsignal: killed\b`},
	{kindTraceback, "a Python traceback", `Traceback \(most recent call last\)|File "[^"]*", line \d+`},
}

// logErrorPatterns returns the compiled patterns of logErrors. They are compiled when they are first needed.
var logErrorPatterns = sync.OnceValue(func() (out []*regexp.Regexp) {
	for _, e := range logErrors {
		out = append(out, regexp.MustCompile(e.pattern))
	}
	return out
})

// LogErrorWords describes a kind of reporter.LogError: "a CUDA out-of-memory error". It returns "" for an unknown kind.
func LogErrorWords(kind string) string {
	for _, e := range logErrors {
		if e.kind == kind {
			return e.words
		}
	}
	return ""
}

// findLogError returns the first error of the table that is in lines, with the last line that has it; nil if there is
// none.
func findLogError(lines []string) *reporter.LogError {
	for i, pattern := range logErrorPatterns() {
		for at := len(lines) - 1; at >= 0; at-- {
			if !pattern.MatchString(lines[at]) {
				continue
			}
			if logErrors[i].kind == kindTraceback {
				at = exceptionLine(lines, at)
			}
			return &reporter.LogError{Kind: logErrors[i].kind, Line: lines[at]}
		}
	}
	return nil
}

// exceptionLine returns the index of the first line after a traceback's last frame that is not indented: the exception.
// Without such a line, it returns frame, the index of the frame.
func exceptionLine(lines []string, frame int) int {
	for i := frame + 1; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(line, "[") { // the prefix of a launcher: "[rank3]: "
			_, line, _ = strings.Cut(line, "]: ")
		}
		if line != "" && line[0] != ' ' {
			return i
		}
	}
	return frame
}
