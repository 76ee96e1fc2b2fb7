package reporter_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// headReport returns a report with everything that a head has, and its bytes.
func headReport(t testing.TB) (*reporter.Report, []byte) {
	t.Helper()
	r := reporter.New(reportertest.JobInput(3, 200, 0, ""))
	r.Nodes["3"].Identity = &reporter.Identity{Node: new(3), NodeFrom: "SLURM_NODEID", Launch: "step-0", Restart: 2, Rank: new(7)}
	r.Nodes["3"].Ranks = map[string]*reporter.Rank{"7": {Rank: 7, Missing: []reporter.Missing{}}, "12": {Rank: 12, Missing: []reporter.Missing{}}}
	data, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, data
}

// A head says what the whole report says.
func TestReadHead_IsTheBeginning(t *testing.T) {
	t.Parallel()
	_, data := headReport(t)
	whole, err := reporter.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	in := &counting{Reader: bytes.NewReader(data)}
	head, err := reporter.ReadHead(in)
	if err != nil {
		t.Fatal(err)
	}

	n := whole.Nodes["3"]
	want := &reporter.Head{Run: whole.Run, Node: "3", Identity: n.Identity, Host: n.Host, Sampling: n.Sampling, Ranked: true}
	if d := cmp.Diff(want, head); d != "" {
		t.Errorf("(-report +head)\n%s", d)
	}
	if in.n > len(data)/2 {
		t.Errorf("%d of %d bytes were read", in.n, len(data))
	}
	ranks, err := reporter.ReadRanks(bytes.NewReader(data))
	if err != nil || len(ranks) != 2 ||
		!ranks["7"].Equal(n.Ranks["7"].Start.Time) || !ranks["12"].Equal(n.Ranks["12"].Start.Time) {
		t.Errorf("ranks %q, %v", ranks, err)
	}
}

// counting counts what is read.
type counting struct {
	io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// Another program may write the members in another order.
func TestReadHead_InAnotherOrder(t *testing.T) {
	t.Parallel()
	const report = `{"more":[1],"nodes":{"4":{"metrics":{},"ranks":{"1":{"rank":1}},"host":{"hostname":"h"},` +
		`"identity":{"node_from":"none"}},"5":{}},"run":{"id":"r"},"schema":"perfagent.report/1"}`
	head, err := reporter.ReadHead(strings.NewReader(report))
	if err != nil {
		t.Fatal(err)
	}
	if head.Node != "4" || !head.Ranked || head.Host.Hostname != "h" || head.Identity.NodeFrom != "none" || head.Run.ID != "r" {
		t.Errorf("%+v", head)
	}
	ranks, err := reporter.ReadRanks(strings.NewReader(report))
	if start, ok := ranks["1"]; err != nil || len(ranks) != 1 || !ok || !start.IsZero() {
		t.Errorf("%v, %v", ranks, err)
	}
}

func TestReadHead_Errors(t *testing.T) {
	t.Parallel()
	for data, foreign := range map[string]bool{
		"": true, "[1]": true, `{"cpu":[1]}`: true, `"x"`: true, `{"schema":"other/1"}`: false, `{"schema":`: false, `{"nodes":[]}`: false,
		`{"schema":"perfagent.report/9","run":{}}`: false, `{"schema":"perfagent.report/1","run":7}`: false,
		`{"schema":"perfagent.report/1","run":{},"nodes":{"0":{"host":[]`: false,
	} {
		if _, err := reporter.ReadHead(strings.NewReader(data)); err == nil || errors.Is(err, reporter.ErrForeign) != foreign {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func FuzzReadHead(f *testing.F) {
	_, data := headReport(f)
	f.Add(data[:min(len(data), 4000)])
	f.Add([]byte(`{"schema":"perfagent.report/1","run":{"id":"r"},"nodes":{"0":{"ranks":{"1":null},"metrics":{}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		head, err := reporter.ReadHead(bytes.NewReader(data))
		if (head == nil) == (err == nil) {
			t.Fatalf("%v, %v", head, err)
		}
		_, _ = reporter.ReadRanks(bytes.NewReader(data))

		// What reads as a whole has the head that was read.
		whole, errWhole := reporter.Decode(data)
		if errWhole != nil || err != nil {
			return
		}
		if n := whole.Nodes[head.Node]; n == nil || !head.Run.Start.Equal(whole.Run.Start.Time) || head.Run.ID != whole.Run.ID {
			t.Errorf("node %q, run %+v; in the report %+v", head.Node, head.Run, whole.Run)
		}
	})
}
