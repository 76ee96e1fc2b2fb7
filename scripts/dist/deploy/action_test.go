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

// An action is action.yml.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Using string
		Steps []actionStep
	}
}

// An actionStep is one of its steps.
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

// input matches an expression that is only one input.
var input = regexp.MustCompile(`^\$\{\{ inputs\.(\w+) \}\}$`)

// The inputs of a workflow reach the scripts as variables. No expression is put into the text of a script.
func TestAction_InputsAreVariables(t *testing.T) {
	a := readAction(t)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Fatalf("runs %+v", a.Runs)
	}
	for _, s := range a.Runs.Steps {
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			t.Errorf("step %s: shell %q, or an expression in its script:\n%s", s.ID, s.Shell, s.Run)
		}
		for name, value := range s.Env {
			m := input.FindStringSubmatch(value)
			if m == nil {
				t.Errorf("step %s: %s is %q", s.ID, name, value)
				continue
			}
			if _, known := a.Inputs[m[1]]; !known {
				t.Errorf("step %s: there is no input %s", s.ID, m[1])
			}
		}
	}
}

// goCaches returns the variables with the caches of Go, which a runner would otherwise look for in its empty home.
var goCaches = sync.OnceValue(func() []string {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		panic(err)
	}
	mod, build, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{"GOMODCACHE=" + mod, "GOCACHE=" + build}
})

// A runner runs the steps as GitHub's does: each script by bash, with files for its outputs.
type runner struct {
	t      *testing.T
	action action
	dir    string // the workspace
}

// newRunner makes a runner without perfagent on PATH.
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

// step runs one step with inputs and returns its exit code and output.
func (r *runner) step(id string, inputs map[string]string) (int, string) {
	r.t.Helper()
	i := slices.IndexFunc(r.action.Runs.Steps, func(s actionStep) bool { return s.ID == id })
	if i < 0 {
		r.t.Fatalf("there is no step %s", id)
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

// install installs the program built by make build.
func (r *runner) install() {
	r.t.Helper()
	binary := filepath.Join(r.t.TempDir(), "a 'quoted' name")
	build := exec.Command("sh", filepath.Join(checkout, "scripts", "build.sh"), binary)
	build.Env = append(os.Environ(), "VCS=false")
	if out, err := build.CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	if code, out := r.step("install", map[string]string{"install": binary}); code != 0 || !strings.HasPrefix(out, "perfagent ") {
		r.t.Fatalf("install: exit code %d\n%s", code, out)
	}
}

// output returns the output dir of the last step that set it.
func (r *runner) output() string {
	r.t.Helper()
	head, rest, _ := strings.Cut(r.read("output"), "\n")
	end, found := strings.CutPrefix(head, "dir<<")
	value, after, closed := strings.Cut(rest, "\n"+end+"\n")
	if !found || !closed || after != "" {
		r.t.Errorf("the output is %q", r.read("output"))
	}

	return value
}

// Where no perfagent is on PATH, the action builds and installs its own version; where one is, it takes that.
func TestAction_InstallsItself(t *testing.T) {
	r := newRunner(t)
	if code, out := r.step("install", nil); code != 0 || !strings.HasPrefix(out, "perfagent ") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if code, out := r.step("install", nil); code != 0 || out != "" {
		t.Errorf("again: exit code %d, %q, want nothing to do", code, out)
	}
	if code, out := r.step("wrap", map[string]string{"run": "exit 3"}); code != 3 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// The commands run unchanged with their exit code, and for any code there are the summary and the folder of the run.
func TestAction_Wraps(t *testing.T) {
	r := newRunner(t)
	r.install()

	code, out := r.step("wrap", map[string]string{"run": "echo \"it's $((40+2))\"\nexit 3", "options": "--interval\n100ms\n--tag\na=b c"})
	if code != 3 || !strings.Contains(out, "it's 42\n") {
		t.Errorf("exit code %d, %q", code, out)
	}
	if text := r.read("summary"); !strings.Contains(text, "exit") || !strings.Contains(text, "|") {
		t.Errorf("the summary is %q", text)
	}
	if report := r.read(filepath.Join(r.output(), "node-0.json")); !strings.Contains(report, `"a": "b c"`) {
		t.Errorf("the report has no tag: %.600s", report)
	}
}

// Inputs cannot break out of a shell, a command line or a runner's file.
func TestAction_HostileInputs(t *testing.T) {
	r := newRunner(t)
	r.install()
	for _, hostile := range []string{`"; touch pwned; "`, `$(touch pwned)`, "`touch pwned`", "a\ntouch pwned\n", "x\nEOF\ndir=pwned", `'; touch pwned #`, "-h", "--out=/nowhere"} {
		r.write("output", "")
		code, out := r.step("wrap", map[string]string{"run": "exit 5", "out": hostile, "options": "--tag\nx=" + strings.ReplaceAll(hostile, "\n", " ")})
		if code != 5 {
			t.Errorf("out %q: exit code %d\n%s", hostile, code, out)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "pwned")); err == nil {
			t.Fatalf("out %q was run", hostile)
		}
		if dir := r.output(); !strings.HasPrefix(dir, hostile+"/4711-") {
			t.Errorf("out %q: the output is %q", hostile, dir)
		}
		for _, step := range []string{"install"} {
			if code, _ := r.step(step, map[string]string{"install": hostile}); code == 0 {
				t.Errorf("%s takes %q", step, hostile)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "pwned")); err == nil {
		t.Error("an input was run")
	}
}

// In parallel with other steps the action records until it is stopped.
func TestAction_Beside(t *testing.T) {
	r := newRunner(t)
	r.install()

	if code, out := r.step("start", map[string]string{"out": "it's here", "options": "--interval\n100ms"}); code != 0 {
		t.Fatalf("start: exit code %d\n%s", code, out)
	}
	if code, out := r.step("stop", nil); code != 0 {
		t.Fatalf("stop: exit code %d\n%s", code, out)
	}
	if report := r.read(filepath.Join(r.output(), "node-0.json")); strings.Contains(report, `"incomplete": true`) {
		t.Errorf("the report is incomplete: %.400s", report)
	}
	if text := r.read("summary"); !strings.Contains(text, "|") {
		t.Errorf("the summary is %q", text)
	}

	if code, out := r.step("start", map[string]string{"options": "--nonsense"}); code == 0 || !strings.Contains(out, "nonsense") {
		t.Errorf("a bad option: exit code %d, %q", code, out)
	}
}

// Contradictory inputs are an error, not a step that does nothing.
func TestAction_Mistakes(t *testing.T) {
	r := newRunner(t)
	if code, out := r.step("wrap", nil); code == 0 || !strings.Contains(out, "::error::") {
		t.Errorf("nothing to run: exit code %d, %q", code, out)
	}
	if code, out := r.step("mode", nil); code == 0 || !strings.Contains(out, "::error::") {
		t.Errorf("an unknown mode: exit code %d, %q", code, out)
	}
}
