package clitest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/testenv"
)

// Longest is the maximum time that a test waits for an event, and the maximum lifetime of a process that a test starts.
const Longest = 5 * time.Minute

// Patiently gives pushes more time than users would wait, because a server is slow on a busy machine. It is in the
// environment of the tests and of all processes that they start.
const Patiently = "PERFAGENT_PUSH_TIMEOUT=10m"

// partVariable is an environment variable that makes the test binary run the named helper: a job that the tests wrap.
const partVariable = "CLITEST_PART"

// Main runs the tests of a package and returns the exit code for its TestMain. parts holds the helpers by name; see
// [AsHelper]. After the tests, Main calls the functions in atEnd.
func Main(m *testing.M, parts map[string]func(), atEnd ...func()) (code int) {
	if name := os.Getenv(partVariable); name != "" {
		play, ok := parts[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no part %q\n", name)
			return 98
		}
		play()
		return 0
	}

	// Under nohup, or in the background of a script, these signals are ignored, and every job would inherit this. If
	// this process catches a signal, the signal has its default action in the job.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	if os.Getenv("CI") == "true" { // keep it for package testenv, but hide CI from perfagent
		os.Setenv(testenv.InCI, "true")
	}
	for _, entry := range os.Environ() {
		if foreign(entry) {
			name, _, _ := strings.Cut(entry, "=")
			os.Unsetenv(name)
		}
	}
	name, value, _ := strings.Cut(Patiently, "=")
	os.Setenv(name, value)

	code = m.Run()
	for _, end := range append(atEnd, removeBuilds) {
		end()
	}

	return code
}

// variables matches the variables that affect perfagent, except the variables of tools that the tests use.
var variables = regexp.MustCompile(
	`^(PERFAGENT_\w+|CUDA_VISIBLE_DEVICES|SLURM_\w+|PBS_\w+|MLFLOW_\w+|HOST_(PROC|SYS)|` +
		`NO_COLOR|TERM|LSB_JOBID|FLUX_JOB_ID|COBALT_JOBID|AWS_BATCH_\w+|SGE_TASK_ID|JOB_ID|GROUP_RANK|` +
		`JOB_COMPLETION_INDEX|VC_TASK_INDEX|CI|GITHUB_ACTIONS|KUBERNETES_SERVICE_HOST)=`,
)

// foreign reports whether an entry of the environment would affect perfagent. Processes of tests start without these
// entries.
func foreign(entry string) bool {
	return variables.MatchString(entry) && !strings.HasPrefix(entry, "PERFAGENT_TEST_") && entry != Patiently
}

// Env returns the environment for processes that a test starts: the environment of the test without foreign entries,
// followed by more.
func Env(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), foreign)
	return append(append(env, "TERM=xterm"), more...)
}

// AsHelper makes cmd wrap the named helper: it appends the test binary to the arguments, and sets the environment.
func AsHelper(cmd *exec.Cmd, name string) *exec.Cmd {
	cmd.Args = append(cmd.Args, os.Args[0])
	cmd.Env = append(cmd.Env, HelperEnv(name))
	return cmd
}

// HelperEnv returns the environment entry that makes the test binary run the named helper.
func HelperEnv(name string) string { return partVariable + "=" + name }

// LimitLifetime makes a helper exit after twice Longest, even if its test hangs.
func LimitLifetime() { time.AfterFunc(2*Longest, func() { os.Exit(99) }) }

// Println prints a line from a helper without buffering.
func Println(out io.Writer, words ...any) { fmt.Fprintln(out, words...) }
