package terminal

import (
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// ofPorts returns the lines about RDMA ports in the screen, the sparklines, the log and the summary.
func ofPorts(t *testing.T, r *reporter.Report) []string {
	t.Helper()
	o := Options{Width: 80, Height: 60, ASCII: true, Node: "0", Live: map[string]LiveNode{"0": {State: "running", Ended: true}}}
	lines := append(Screen(r, o), drawn(Sparklines(r.Nodes["0"], 80, true))...)
	lines = append(lines, strings.Split(Line(r, o), ", ")...)
	var out strings.Builder
	if err := summary.Write(&out, r, summary.Options{Long: true}); err != nil {
		t.Fatal(err)
	}
	for _, h := range summary.Highlights(r.Nodes["0"], 4) {
		lines = append(lines, h.Label+": "+h.Value+" "+h.Note)
	}
	lines = append(lines, strings.Split(out.String(), "\n")...)

	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return slices.DeleteFunc(lines, func(line string) bool {
		return !strings.Contains(line, "IB ") && !strings.Contains(line, "InfiniBand")
	})
}

func TestScreen_ShowsRDMAPorts(t *testing.T) {
	in := reportertest.JobInput(0, 0, 0, "")
	in.Recording = reportertest.Recording(0)
	in.Recording.EnsureColumn(collector.NetIBSent)
	for i := range 4 {
		s := reportertest.Sample(i, 4)
		s.Values[collector.NetIBRecv], s.Values[collector.NetIBRecvRate] = float64(i+1)*100, 100
		s.Values[collector.NetIBSent], s.Values[collector.NetIBSentRate] = 0, 0
		in.Recording.Add(&s)
	}
	want := []string{
		"IB recv 100.0 MiB/s 100.0MiB/s @@@@",
		"InfiniBand @@@@ 0 to 100.0 MiB/s received", // the second sparkline has no label
		"node IB recv 100.0 MiB/s",
		"InfiniBand: 400 MiB received, 0 B sent",
		"InfiniBand 400 MiB received",
	}
	if got := ofPorts(t, reporter.New(in)); !slices.Equal(got, want) {
		t.Errorf("lines of RDMA ports:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestScreen_OmitsMissingRDMAPorts(t *testing.T) {
	if got := ofPorts(t, reporter.New(reportertest.JobInput(0, 20, 0, ""))); len(got) > 0 {
		t.Errorf("lines of RDMA ports of a node without them, want none:\n%s", strings.Join(got, "\n"))
	}
}
