package summary_test

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/summary"
)

func TestWriteProcesses(t *testing.T) {
	r := reportertest.AddProcesses(reportertest.NodeReport(0, 60, 0, nil))
	command := "python3 " + strings.Repeat("--option value ", 20) + "é"
	r.Nodes["0"].Processes[0].Command = command
	var whole strings.Builder
	if err := summary.WriteProcesses(&whole, r, 0); err != nil || !strings.Contains(whole.String(), "  "+command+"\n") {
		t.Errorf("error %v, want the whole command %q in\n%s", err, command, whole.String())
	}
	for _, width := range []int{40, 80, 200} {
		var out strings.Builder
		if err := summary.WriteProcesses(&out, r, width); err != nil {
			t.Fatal(err)
		}
		if line := strings.Split(out.String(), "\n")[1]; text.Width(line) != width {
			t.Errorf("line of %d cells, want %d: %q", text.Width(line), width, line)
		}
	}

	r = reportertest.AddProcesses(reportertest.NodeReport(0, 60, 0, nil))
	var out strings.Builder
	if err := summary.WriteProcesses(&out, r, summary.Width); err != nil {
		t.Fatal(err)
	}
	const want = `PID      CPU  CHILDREN   MEMORY  THREADS  COMMAND
1201   2m00s     500ms  1.5 GiB       12  python3 train.py --token ***
`
	if got := out.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 5 {
		t.Errorf("processes\n%swant 5 lines that begin with\n%s", got, want)
	}
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSuffix(line, "\n"); text.Width(line) > summary.Width || line != text.Printable(line) {
			t.Errorf("line of %d cells, want printable text of at most %d: %q", text.Width(line), summary.Width, line)
		}
	}
}
