package plotter

import (
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// rowsOf returns the process IDs in the table, in the order of its rows.
func rowsOf(page string) []string {
	var pids []string
	for _, m := range regexp.MustCompile(`<tr data-pid="(\d+)">`).FindAllStringSubmatch(page, -1) {
		pids = append(pids, m[1])
	}
	return pids
}

func TestPage_HasTableOfProcesses(t *testing.T) {
	r := reportertest.AddProcesses(reportertest.NodeReport(0, 60, 0, nil))
	page := pageOf(t, r)
	check.Equal(t, rowsOf(page), []string{"1201", "99", "1200", "41234"}, "rows of processes")
	wantParts(t, "page", page,
		`data-processes>`, `<th class="n" aria-sort="descending">CPU time</th>`, "python3 train.py --token ***",
		"&lt;img src=x onerror=alert(1)&gt;\\x1b[31m", `data-value="1500.5">1.5 GiB</td>`)
	check.Equal(t, strings.Count(page, "data-processes>"), 1, "number of tables of processes")
	wantNone(t, "page", page, "<img src=x")
	bare := pageOf(t, reportertest.NodeReport(0, 60, 0, nil))
	wantNone(t, "page without processes", bare, "<summary>Processes", "<summary>Deaths")
	check.Equal(t, rowsOf(bare), nil, "rows of a page without processes")
}

// The page lists the deaths, and counts those that the report does not list.
func TestPage_HasTableOfDeaths(t *testing.T) {
	page := pageOf(t, reportertest.AddDeaths(reportertest.NodeReport(0, 60, 0, nil)))
	wantParts(t, "page", page, "<summary>Deaths", "<code>python3 worker.py</code>", "killed by SIGBUS (core dumped)</td>", ">exited with code 3</td>", ">vanished</td>",
		"&lt;b&gt;\\x1b[31m", "40.2 s</td>", "1200 more deaths; 1 other failure")
	wantNone(t, "page", page, "<b>\\x1b")
}

// A page of many nodes has the processes with the most CPU time and memory across all nodes.
func TestPage_HasHeaviestProcessesOfAllNodes(t *testing.T) {
	r := reportertest.NodeReport(0, 60, 0, nil)
	one := r.Nodes["0"]
	for i, name := range []string{"0", "1", "2"} {
		n := *one
		for k := range 30 {
			n.Processes = append(n.Processes, reporter.Process{PID: 1000*(i+1) + k, CPUSeconds: float64(100*i + k), PeakMemoryMB: float64(1000*(3-i) - k)})
		}
		r.Nodes[name] = &n
	}
	rows := rowsOf(pageOf(t, r))
	if len(rows) != 2*pageProcesses || rows[0] != "3029" || rows[19] != "3010" || rows[20] != "1019" || rows[39] != "1000" {
		t.Errorf("%d rows: %v; want %d, from 3029 to 3010 and from 1019 to 1000", len(rows), rows, 2*pageProcesses)
	}
}
