package reporter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// headReport returns a report with everything that a head contains, and its encoding.
func headReport(t testing.TB) (*reporter.Report, []byte) {
	t.Helper()
	r := reporter.New(reportertest.JobInput(3, 200, 0, ""))
	r.Nodes["3"].Identity = &reporter.Identity{Node: new(3), NodeFrom: "SLURM_NODEID", Launch: "step-0", Restart: 2, Rank: new(7)}
	r.Nodes["3"].Ranks = map[string]*reporter.Rank{"7": {Rank: 7, Missing: []reporter.Missing{}}, "12": {Rank: 12, Missing: []reporter.Missing{}}}
	return r, encodedReport(t, r)
}

// headOf returns the head of a report of node 3 with ranks.
func headOf(whole *reporter.Report) *reporter.Head {
	n := whole.Nodes["3"]
	return &reporter.Head{Run: whole.Run, Node: "3", Identity: n.Identity, Host: n.Host, Sampling: n.Sampling, Job: n.Job, Ranked: true}
}

// A head has the same values as the whole report, but only the beginning of the file is read.
func TestReadHead_ReadsOnlyBeginning(t *testing.T) {
	t.Parallel()
	_, data := headReport(t)
	whole := readBack(t, data)
	in := &countingReader{Reader: bytes.NewReader(data)}
	head, err := reporter.ReadHead(in, int64(len(data)))
	check.Must(t, err)

	check.Equal(t, head, headOf(whole), "head")
	if in.bytes > len(data)/2 {
		t.Errorf("%d of %d bytes were read, want at most half", in.bytes, len(data))
	}
}

// Another program may write the members in another order.
func TestReadHead_AcceptsAnyOrderOfMembers(t *testing.T) {
	t.Parallel()
	const report = `{"more":[1],"nodes":{"4":{"metrics":{},"ranks":{"1":{"rank":1}},"host":{"hostname":"h"},` +
		`"identity":{"node_from":"none"}},"5":{}},"run":{"id":"r"},"schema":"perfagent.report/1"}`
	head, err := reporter.ReadHead(strings.NewReader(report), int64(len(report)))
	check.Must(t, err)
	wantValues(t, "node, whether it has ranks, host, identity and run", "4 true h none r", head.Node, head.Ranked,
		head.Host.Hostname, head.Identity.NodeFrom, head.Run.ID)
}

// Another program may write members after the numbers or the series, and may break lines differently. ReadHead finds
// these members.
func TestReadHead_ReadsReportsOfOtherPrograms(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU")
	t.Parallel()
	r := concluded(t, 200)
	r.Nodes["3"].Identity = &reporter.Identity{Node: new(3), NodeFrom: "SLURM_NODEID", Nodes: 4}
	written := encodedReport(t, r)
	whole := readBack(t, written)
	for _, moved := range []string{"identity", "host", "sampling", "ranks", "missing", "verdict", "job", "findings", "phases"} {
		for layout, data := range map[string][]byte{
			"one line": movedToEnd(t, written, moved, ""), "two spaces": append(movedToEnd(t, written, moved, "  "), '\n'),
			"tabs": movedToEnd(t, written, moved, "\t"),
		} {
			head, err := reporter.ReadHead(bytes.NewReader(data), int64(len(data)))
			check.Must(t, err)
			check.Equal(t, head, headOf(whole), "%s at the end, %s: head", moved, layout)
			if numbers, ok := reporter.ScanWithoutSeries(bytes.NewReader(data), int64(len(data))); ok {
				t.Errorf("%s at the end, %s: ScanWithoutSeries returned %+v, want false", moved,
					layout, numbers.Nodes["3"])
			}
		}
	}
}

// movedToEnd returns a report in the format of other programs, with a member of its only node moved to the end of the
// node.
func movedToEnd(t *testing.T, report []byte, member, indent string) []byte {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(report))
	var nodes json.RawMessage
	var head struct{ Schema, Run, Nodes json.RawMessage }
	check.Must(t, in.Decode(&head))
	var node map[string]json.RawMessage
	byName := make(map[string]json.RawMessage)
	check.Must(t, json.Unmarshal(head.Nodes, &byName))
	for name, data := range byName { // exactly one
		check.Must(t, json.Unmarshal(data, &node))
		place := func(key string) int { return bytes.Index(data, []byte("\n      \""+key+"\":")) }
		order := slices.SortedFunc(maps.Keys(node), func(a, b string) int { return place(a) - place(b) })
		if i := slices.Index(order, member); i >= 0 {
			order = append(slices.Delete(order, i, i+1), member)
		}
		var members []string
		for _, key := range order {
			members = append(members, fmt.Sprintf("%q:%s", key, node[key]))
		}
		nodes = fmt.Appendf(nil, "{%q:{%s}}", name, strings.Join(members, ","))
	}

	var out bytes.Buffer
	data := fmt.Appendf(nil, `{"schema":%s,"run":%s,"nodes":%s}`, head.Schema, head.Run, nodes)
	err := json.Compact(&out, data)
	if indent != "" {
		out.Reset()
		err = json.Indent(&out, data, "", indent)
	}
	check.Must(t, err)
	return out.Bytes()
}

func TestReadHead_Errors(t *testing.T) {
	t.Parallel()
	for data, foreign := range map[string]bool{
		"": true, "[1]": true, `{"cpu":[1]}`: true, `"x"`: true, `{"schema":"other/1"}`: false, `{"schema":`: false, `{"nodes":[]}`: false,
		`{"schema":"perfagent.report/9","run":{}}`: false, `{"schema":"perfagent.report/1","run":7}`: false,
		`{"schema":"perfagent.report/1","run":{},"nodes":{"0":{"host":[]`: false,
	} {
		if _, err := reporter.ReadHead(strings.NewReader(data), int64(len(data))); err == nil || errors.Is(err, reporter.ErrForeign) != foreign {
			t.Errorf("%s: error %v, want an error; ErrForeign: %v", data, err, foreign)
		}
	}
}

func FuzzReadHead(f *testing.F) {
	_, data := headReport(f)
	f.Add(data[:min(len(data), 4000)])
	f.Add([]byte(`{"schema":"perfagent.report/1","run":{"id":"r"},"nodes":{"0":{"ranks":{"1":null},"metrics":{}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		head, err := reporter.ReadHead(bytes.NewReader(data), int64(len(data)))
		if (head == nil) == (err == nil) {
			t.Fatalf("ReadHead returned %v, %v, want either a head or an error", head, err)
		}

		// If Decode accepts the data, ReadHead returns the same head.
		whole, errWhole := reporter.Decode(data)
		if errWhole != nil || err != nil {
			return
		}
		if n := whole.Nodes[head.Node]; n == nil || !head.Run.Start.Equal(whole.Run.Start.Time) || head.Run.ID != whole.Run.ID {
			t.Errorf("head with node %q and run %+v, want a node of the report and run %+v", head.Node, head.Run, whole.Run)
		}
	})
}
