package deploy

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"
)

// An action is the content of action.yml.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Using string
		Steps []actionStep
	}
}

// An actionStep is a step of an action.
type actionStep struct {
	ID, If, Shell, Run string
	Env                map[string]string
}

func readAction(t *testing.T) action {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(checkout, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}

	return a
}

// input matches an expression that consists of a single input.
var input = regexp.MustCompile(`^\$\{\{ inputs\.(\w+) \}\}$`)

// The inputs of a workflow are passed to the scripts in variables. The text of a script contains no expression.
func TestAction_PassesInputsInVariables(t *testing.T) {
	a := readAction(t)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Fatalf("runs %+v, want a composite action with steps", a.Runs)
	}
	for _, s := range a.Runs.Steps {
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			t.Errorf("step %s: shell %q, want bash, and no expression in the script:\n%s", s.ID, s.Shell, s.Run)
		}
		for name, value := range s.Env {
			m := input.FindStringSubmatch(value)
			if m == nil {
				t.Errorf("step %s: variable %s = %q, want a single input", s.ID, name, value)
				continue
			}
			if _, known := a.Inputs[m[1]]; !known {
				t.Errorf("step %s: input %s does not exist", s.ID, m[1])
			}
		}
	}
}

// goCaches returns the variables with the locations of Go's caches. Without them, a runner would look for the caches in
// its empty home directory.
var goCaches = sync.OnceValue(func() []string {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		panic(err)
	}
	mod, build, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{"GOMODCACHE=" + mod, "GOCACHE=" + build}
})

// A runner runs steps like a runner of GitHub: it runs each script with bash, with files for the outputs.
type runner struct {
	t      *testing.T
	action action
	dir    string // directory of the workspace
}

// newRunner returns a runner without perfagent on PATH.
func newRunner(t *testing.T) *runner {
	t.Helper()
	r := &runner{t: t, action: readAction(t), dir: t.TempDir()}
	for _, name := range []string{"path", "output", "summary"} {
		r.write(name, "")
	}
	if err := os.Mkdir(filepath.Join(r.dir, "temp"), 0o755); err != nil {
		t.Fatal(err)
	}

	return r
}

func (r *runner) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *runner) read(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}

	return string(data)
}

// step runs a step with inputs and returns its exit code and output.
func (r *runner) step(id string, inputs map[string]string) (int, string) {
	r.t.Helper()
	i := slices.IndexFunc(r.action.Runs.Steps, func(s actionStep) bool { return s.ID == id })
	if i < 0 {
		r.t.Fatalf("step %s does not exist", id)
	}
	s := r.action.Runs.Steps[i]
	r.write("script", s.Run)
	root, err := filepath.Abs(checkout)
	if err != nil {
		r.t.Fatal(err)
	}

	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", filepath.Join(r.dir, "script"))
	cmd.Dir = r.dir
	cmd.Env = append(goCaches(),
		"PATH="+strings.ReplaceAll(r.read("path"), "\n", ":")+os.Getenv("PATH"), "HOME="+r.dir, "RUNNER_TEMP="+r.dir+"/temp",
		"GITHUB_RUN_ID=4711", "GITHUB_ACTION_PATH="+root, "GITHUB_PATH="+r.dir+"/path", "GITHUB_OUTPUT="+r.dir+"/output", "GITHUB_STEP_SUMMARY="+r.dir+"/summary",
	)
	for name, value := range s.Env {
		key := input.FindStringSubmatch(value)[1]
		given, found := inputs[key]
		if !found {
			given = r.action.Inputs[key].Default
		}
		cmd.Env = append(cmd.Env, name+"="+given)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}

	return cmd.ProcessState.ExitCode(), out.String()
}

// install builds the program with make build, and installs it with the action.
func (r *runner) install() {
	r.t.Helper()
	binary := filepath.Join(r.t.TempDir(), "a 'quoted' name")
	build := exec.Command("sh", filepath.Join(checkout, "scripts", "build.sh"), binary)
	build.Env = append(os.Environ(), "VCS=false")
	if out, err := build.CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	if code, out := r.step("install", map[string]string{"install": binary}); code != 0 || !strings.HasPrefix(out, "perfagent ") {
		r.t.Fatalf("install: exit code %d, want 0 and the version:\n%s", code, out)
	}
}

// output returns the output dir from the last step that set it.
func (r *runner) output() string {
	r.t.Helper()
	head, rest, _ := strings.Cut(r.read("output"), "\n")
	end, found := strings.CutPrefix(head, "dir<<")
	value, after, closed := strings.Cut(rest, "\n"+end+"\n")
	if !found || !closed || after != "" {
		r.t.Errorf("output = %q, want only dir", r.read("output"))
	}

	return value
}

// If there is no perfagent on PATH, the action builds and installs its own version. Otherwise it uses the one on PATH.
func TestAction_InstallsItself(t *testing.T) {
	r := newRunner(t)
	if code, out := r.step("install", nil); code != 0 || !strings.HasPrefix(out, "perfagent ") {
		t.Fatalf("install: exit code %d, want 0 and the version:\n%s", code, out)
	}
	if code, out := r.step("install", nil); code != 0 || out != "" {
		t.Errorf("second install: exit code %d, output %q; want 0 and no output", code, out)
	}
	if code, out := r.step("wrap", map[string]string{"run": "exit 3"}); code != 3 {
		t.Errorf("wrap: exit code = %d, want 3; output:\n%s", code, out)
	}
}

// The commands run unchanged and keep their exit code. Whatever the code, there is a summary, and the output is the
// folder of the run.
func TestAction_WrapsCommands(t *testing.T) {
	r := newRunner(t)
	r.install()

	code, out := r.step("wrap", map[string]string{"run": "echo \"it's $((40+2))\"\nexit 3", "options": "--interval\n100ms\n--tag\na=b c"})
	if code != 3 || !strings.Contains(out, "it's 42\n") {
		t.Errorf("exit code %d, output %q; want 3, and output with \"it's 42\\n\"", code, out)
	}
	if text := r.read("summary"); !strings.Contains(text, "exit") || !strings.Contains(text, "|") {
		t.Errorf("summary = %q, want a table and the exit code", text)
	}
	if report := r.read(filepath.Join(r.output(), "node-0.json")); !strings.Contains(report, `"a": "b c"`) {
		t.Errorf("report lacks the tag a: %.600s", report)
	}
}

// Inputs cannot inject code into a shell, a command line or a file of the runner.
func TestAction_DoesNotExecuteHostileInputs(t *testing.T) {
	r := newRunner(t)
	r.install()
	for _, hostile := range []string{`"; touch pwned; "`, `$(touch pwned)`, "`touch pwned`", "a\ntouch pwned\n", "x\nEOF\ndir=pwned", `'; touch pwned #`, "-h", "--out=/nowhere"} {
		r.write("output", "")
		code, out := r.step("wrap", map[string]string{"run": "exit 5", "out": hostile, "options": "--tag\nx=" + strings.ReplaceAll(hostile, "\n", " ")})
		if code != 5 {
			t.Errorf("out %q: exit code = %d, want 5; output:\n%s", hostile, code, out)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "pwned")); err == nil {
			t.Fatalf("out %q was executed", hostile)
		}
		if dir := r.output(); !strings.HasPrefix(dir, hostile+"/4711-") {
			t.Errorf("out %q: output dir = %q, want a folder below out", hostile, dir)
		}
		for _, step := range []string{"install"} {
			if code, _ := r.step(step, map[string]string{"install": hostile}); code == 0 {
				t.Errorf("step %s accepted the input %q, want an error", step, hostile)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "pwned")); err == nil {
		t.Error("an input was executed")
	}
}

// The action records in parallel with other steps, until it is stopped.
func TestAction_RecordsInParallelWithOtherSteps(t *testing.T) {
	r := newRunner(t)
	r.install()

	if code, out := r.step("start", map[string]string{"out": "it's here", "options": "--interval\n100ms"}); code != 0 {
		t.Fatalf("start: exit code = %d, want 0; output:\n%s", code, out)
	}
	if code, out := r.step("stop", nil); code != 0 {
		t.Fatalf("stop: exit code = %d, want 0; output:\n%s", code, out)
	}
	if report := r.read(filepath.Join(r.output(), "node-0.json")); strings.Contains(report, `"incomplete": true`) {
		t.Errorf("report is incomplete: %.400s", report)
	}
	if text := r.read("summary"); !strings.Contains(text, "|") {
		t.Errorf("summary = %q, want a table", text)
	}

	if code, out := r.step("start", map[string]string{"options": "--nonsense"}); code == 0 || !strings.Contains(out, "nonsense") {
		t.Errorf("start with an unknown option: exit code %d, output %q; want an error that names the option", code, out)
	}
}

// Invalid inputs are an error, instead of a step that does nothing.
func TestAction_RejectsInvalidInputs(t *testing.T) {
	r := newRunner(t)
	if code, out := r.step("wrap", nil); code == 0 || !strings.Contains(out, "::error::") {
		t.Errorf("no command: exit code %d, output %q; want an error", code, out)
	}
	if code, out := r.step("mode", nil); code == 0 || !strings.Contains(out, "::error::") {
		t.Errorf("unknown mode: exit code %d, output %q; want an error", code, out)
	}
}
