package summary

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

func TestWriteProcesses(t *testing.T) {
	written := func(r *reporter.Report, width int) string {
		var out strings.Builder
		check.Must(t, WriteProcesses(&out, r, width))
		return out.String()
	}
	r := reportertest.AddProcesses(reportertest.NodeReport(0, 60, 0, nil))
	command := "python3 " + strings.Repeat("--option value ", 20) + "é"
	r.Nodes["0"].Processes[0].Command = command
	check.Contains(t, "table of any width", written(r, 0), "  "+command+"\n")
	for _, width := range []int{40, 80, 200} {
		check.Equal(t, text.Width(strings.Split(written(r, width), "\n")[1]), width, "width of a line in cells")
	}

	out := written(reportertest.AddProcesses(reportertest.NodeReport(0, 60, 0, nil)), Width)
	const want = `PID      CPU  CHILDREN   MEMORY  THREADS  COMMAND
1201   2m00s     500ms  1.5 GiB       12  python3 train.py --token ***
`
	if !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 5 {
		t.Errorf("processes\n%swant 5 lines that begin with\n%s", out, want)
	}
	died := written(reportertest.AddDeaths(reportertest.NodeReport(0, 60, 0, nil)), Width)
	check.Contains(t, "deaths", died, "PID   END ", "1301  killed by SIGBUS (core dumped)", "40.0s  12.5s  150 MiB  python3 worker.py\n",
		"1303  exited with code 3 ", "1304  vanished ", "\n1200 more deaths; 1 other failure, such as grep without a match.\n")
	out += died
	for line := range strings.Lines(out) {
		if line = strings.TrimSuffix(line, "\n"); text.Width(line) > Width || line != text.Printable(line) {
			t.Errorf("line of %d cells, want printable text of at most %d: %q", text.Width(line), Width, line)
		}
	}
}
