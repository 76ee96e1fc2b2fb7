package agent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// A job that a program runs through this package has PERFAGENT_MARKS, like a job of the perfagent command.
func TestRun_ReadsMarksOfJob(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the job is a shell script")
	}
	var out strings.Builder
	r, err := Run(context.Background(), Options{
		Args: []string{"sh", "-c", `echo '{"phase":"load"}' >> "$PERFAGENT_MARKS"; echo half >> "$PERFAGENT_MARKS"
			echo "$PERFAGENT_MARKS"; sleep 0.2`},
		Out: t.TempDir(), RunID: "m", Interval: 20 * time.Millisecond, Stdout: &out,
	})
	if err != nil {
		t.Fatal(err)
	}

	n := r.Report.Nodes["0"]
	if len(n.Phases) != 1 || n.Phases[0].Name != "load" || len(n.Marks) != 1 || n.Marks[0].Text != "half" {
		t.Errorf("phases %v, marks %v; want one phase load and one mark half", n.Phases, n.Marks)
	}
	path := strings.TrimSpace(out.String())
	if !filepath.IsAbs(path) {
		t.Errorf("PERFAGENT_MARKS is %q in the job, want an absolute path", path)
	}
	if _, err := os.Stat(path); err == nil {
		t.Errorf("%s exists after the run, want it removed", path)
	}
	if _, set := os.LookupEnv(marks.Variable); set {
		t.Errorf("%s is set in the program itself, want it only in the job", marks.Variable)
	}
}

// A command that cannot be started leaves no file and no directory.
func TestRun_FailedStartLeavesNoMarks(t *testing.T) {
	out := t.TempDir()
	bad := filepath.Join(out, "bad")
	if err := os.WriteFile(bad, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), Options{Args: []string{bad}, Out: filepath.Join(out, "r")}); err == nil {
		t.Fatal("Run of a script without interpreter returned nil, want an error")
	}
	if _, err := os.Stat(filepath.Join(out, "r")); err == nil {
		t.Errorf("%s exists, want no directory for a job that did not start", filepath.Join(out, "r"))
	}
}

// A program that watches itself has a marks file, and its environment stays unchanged.
func TestMonitor_ReadsMarksAndKeepsTheEnvironment(t *testing.T) {
	m, err := Start(context.Background(), Options{Out: t.TempDir(), RunID: "m", Interval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, set := os.LookupEnv(marks.Variable); set {
		t.Errorf("%s is set in the program, want its environment unchanged", marks.Variable)
	}

	for _, l := range []marks.Line{
		{IsPhase: true, Text: "load", At: marks.UnixSeconds(time.Now())}, {Text: "half", At: marks.UnixSeconds(time.Now())},
	} {
		if err := marks.Append(m.MarksPath(), l); err != nil {
			t.Fatal(err)
		}
	}
	burn(0.2)
	r, err := m.Stop()
	if err != nil {
		t.Fatal(err)
	}

	n := r.Report.Nodes["0"]
	if len(n.Phases) != 1 || len(n.Marks) != 1 || !(n.Phases[0].Metrics[reporter.MetricJobCPU] > 0.05) {
		t.Errorf("phases %+v, marks %v; want one phase with more than 0.05 s of CPU, and one mark", n.Phases, n.Marks)
	}
	data, err := reporter.Encode(r.Report)
	if err != nil {
		t.Fatal(err)
	}
	reportertest.Validate(t, data)
}

// A sidecar keeps the marks file while other recordings of the node are active. The last recording removes it.
func TestSidecar_KeepsMarksFileForOtherRecordings(t *testing.T) {
	dir := t.TempDir()
	o := Options{Out: dir, RunID: "r", MLflow: Off, HTML: Never, Interval: 20 * time.Millisecond}
	monitor, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	path := monitor.MarksPath()
	mark := func(l marks.Line) {
		if err := marks.Append(path, l); err != nil {
			t.Fatal(err)
		}
	}
	mark(marks.Line{Text: "before"})
	mark(marks.Line{IsPhase: true, Text: "load", At: marks.UnixSeconds(time.Now())})

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	side, err := Sidecar(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	mark(marks.Line{Text: "after"})
	r, err := monitor.Stop()
	if err != nil {
		t.Fatal(err)
	}

	n := side.Report.Nodes["0"]
	if len(n.Marks) != 0 || len(n.Phases) != 1 || n.Phases[0].Name != "load" || n.Phases[0].Seconds == 0 {
		t.Errorf("sidecar: marks %v, phases %v; want no marks, and the phase load with its time", n.Marks, n.Phases)
	}
	n = r.Report.Nodes["0"]
	if len(n.Marks) != 2 || len(n.Phases) != 1 || whyMissing(n, "marks") != "" {
		t.Errorf("Monitor: marks %v, phases %v, reason in missing %q; want 2 marks, 1 phase, no reason",
			n.Marks, n.Phases, whyMissing(n, "marks"))
	}
	if _, err := os.Stat(path); err == nil {
		t.Errorf("%s exists after the last recording, want it removed", path)
	}
}
