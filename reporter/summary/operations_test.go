package summary

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// workReports returns reports of one node and of three with operations and transfers.
func workReports() map[string]*reporter.Report {
	return map[string]*reporter.Report{
		"work": reportertest.AddOperations(reportertest.ShortJob()), "work-nodes": reportertest.AddOperations(reportertest.ThreeNodes()),
	}
}

func TestWrite_OperationsGolden(t *testing.T) {
	for name, r := range workReports() {
		got := summaryOf(t, r, whole)
		reportertest.CompareGolden(t, filepath.Join("testdata", name+".txt"), []byte(got), *update)
		for _, width := range []int{1, 20, 60, 200} {
			summaryOf(t, r, Options{Color: true, Width: width})
		}

		markdown := showMarkdown(t, r)
		showMarkdownForm(t, name, markdown)
		reportertest.CompareGolden(t, filepath.Join("testdata", name+".md"), []byte(markdown), *update)
	}
}

// workOf returns a report of one node with only these operations and transfers.
func workOf(o *aggregate.Operations, transfers map[string]aggregate.Transfer) *reporter.Report {
	return &reporter.Report{Nodes: map[string]*reporter.Node{"0": {Operations: o, Transfers: transfers}}}
}

// A name shares a line with its numbers if both fit.
func TestWrite_NameSharesLineWithNumbersIfBothFit(t *testing.T) {
	r := workOf(&aggregate.Operations{Times: map[string]aggregate.Timing{
		"store.get": {Count: 1234, Avg: new(0.62), P90: new(1.1), Max: new(12.0), Total: 1900},
	}}, map[string]aggregate.Transfer{"kv": {FailedTransfers: 2}})
	r.Nodes["0"].Transfers["nixl"] = reportertest.AddOperations(reportertest.ShortJob()).Nodes["0"].Transfers["nixl"]
	const want = `operations  store.get  1,234 ×  avg 620 µs  p90 1.1 ms  max 12 ms  1.9 s in all
transfers   kv    0 transfers, 2 failed
            nixl  120 transfers, 8.2 GiB, avg 9.9 ms, p90 15 ms, 850 MB/s, 2
                  failed
`
	if got := summaryOf(t, r, whole); !strings.HasSuffix(got, want) {
		t.Errorf("summary\n%s\nwant it to end in\n%s", got, want)
	}
}

// The operations with the most time are shown, and the first series of each other kind.
func TestWrite_ShowsFirstSeriesOfEachKind(t *testing.T) {
	o := &aggregate.Operations{Times: map[string]aggregate.Timing{}, Counters: map[string]float64{}, Gauges: map[string]aggregate.Gauge{}}
	for i := range 30 {
		name := fmt.Sprintf("s%02d", i)
		o.Times[name], o.Counters[name], o.Gauges[name] = aggregate.Timing{Count: 1, Avg: new(1.0), Total: float64(i)}, 1, aggregate.Gauge{}
	}
	r := workOf(o, nil)
	for form, words := range map[string]string{"text": summaryOf(t, r, whole), "Markdown": showMarkdown(t, r)} {
		check.Contains(t, form+": summary", words,
			"s29", "s22", "22 more operations, see perfagent show --ops", "26 more counters, see", "26 more gauges, see")
		if strings.Contains(words, "s21") || strings.Count(words, "s03") != 2 || strings.Contains(words, "s04") {
			t.Errorf("%s: want s03 twice, and neither s04 nor s21:\n%s", form, words)
		}
	}
	showMarkdownForm(t, "many", showMarkdown(t, r))
}

// Counts are lower bounds only if whole datagrams were lost.
func TestDroppedWords(t *testing.T) {
	for want, d := range map[string]aggregate.Dropped{
		"":                                {},
		"3 malformed, 1 ignored":          {Malformed: 3, Ignored: 1},
		"1,000 beyond the number of keys": {Keys: 1000},
		"2 too long, 5 not finite":        {TooLong: 2, NotFinite: 5},
		"1 beyond the number of series":   {Series: 1, RateLimited: -1},
		"4 datagrams beyond the share of CPU: counts and sums are lower bounds":    {RateLimited: 4},
		"9 datagrams by the kernel, 1 malformed: counts and sums are lower bounds": {Kernel: 9, Malformed: 1},
	} {
		check.Equal(t, droppedWords(d), want, "droppedWords(%+v)", d)
	}
}

func TestSourceProblems(t *testing.T) {
	socket := func(kind string, datagrams, events int64) aggregate.Source {
		return aggregate.Source{Kind: kind, Address: "127.0.0.1:1", Datagrams: &datagrams, Events: events}
	}
	scrape := func(scrapes, failures int64) aggregate.Source {
		return aggregate.Source{Kind: "scrape", Address: "http://x/metrics", Scrapes: &scrapes, Failures: failures, Why: "refused"}
	}
	broken := socket("unix", 1, 1)
	broken.Failures, broken.Why = 2, "bad \x1b file"
	for _, c := range []struct {
		sources []aggregate.Source
		want    []string
	}{
		{nil, nil},
		{[]aggregate.Source{socket("statsd", 2, 2), socket("dogstatsd", 0, 0)}, nil},
		{[]aggregate.Source{socket("statsd", 0, 0), socket("dogstatsd", 0, 0)}, []string{"statsd, dogstatsd: nothing came"}},
		{[]aggregate.Source{socket("statsd", 1, 0)}, []string{"statsd: 1 datagram, but none that could be used"}},
		{[]aggregate.Source{socket("statsd", 0, 0), scrape(2, 1)}, []string{"statsd: nothing came", "http://x/metrics: 1 of 2 scrapes failed: refused"}},
		{[]aggregate.Source{scrape(3, 3)}, []string{"http://x/metrics: none of 3 scrapes succeeded: refused"}},
		{[]aggregate.Source{scrape(1, 1)}, []string{"http://x/metrics: the only scrape failed: refused"}},
		{[]aggregate.Source{socket("statsd", 1, 1), socket("dogstatsd", 3, 0)}, []string{"dogstatsd: 3 datagrams, but none that could be used"}},
		{[]aggregate.Source{scrape(0, 0)}, []string{"http://x/metrics: was not scraped"}},
		{[]aggregate.Source{scrape(2, 0)}, []string{"http://x/metrics: nothing came"}},
		{[]aggregate.Source{broken}, []string{`unix: failed: bad \x1b file`}},
	} {
		var got []string
		for _, a := range sourceProblems(workOf(&aggregate.Operations{Sources: c.sources}, nil)) {
			got = append(got, a.text(1))
		}
		check.Equal(t, got, c.want, "problems")
	}
}

// For several nodes, the line of a problem names the nodes.
func TestSourceProblems_NameNodes(t *testing.T) {
	r := reportertest.ThreeNodes()
	for _, name := range []string{"0", "2"} {
		r.Nodes[name].Operations = &aggregate.Operations{Sources: []aggregate.Source{{Kind: "statsd", Address: "127.0.0.1:" + name}}}
	}
	if list := sourceProblems(r); len(list) != 1 || list[0].text(3) != "statsd on node 0, 2: nothing came" {
		t.Errorf("problems %+v, want one: statsd on node 0, 2: nothing came", list)
	}
}

// FuzzWork checks that no name from a job has an effect on a terminal or a page.
func FuzzWork(f *testing.F) {
	for _, words := range reportertest.HostileTexts {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		for name, r := range reportertest.HostileReports(words) {
			reportertest.AddHostileOperations(r, words)
			showMarkdownForm(t, name, showMarkdown(t, r))
			wantPrintable(t, r, words)
			got := summaryOf(t, r, whole)
			if shown := text.Clip(text.Printable(words), 30); !strings.Contains(got, strings.TrimSpace(strings.TrimSuffix(shown, "…"))) {
				t.Errorf("tables lack the name %q:\n%s", shown, got)
			}
		}
	})
}

func TestWriteOperations_Golden(t *testing.T) {
	for name, r := range workReports() {
		var out bytes.Buffer
		check.Must(t, WriteOperations(&out, r))
		reportertest.CompareGolden(t, filepath.Join("testdata", name+"-all.txt"), out.Bytes(), *update)
	}
}

// If a port was in use, or the journal ends before the first state, there is nothing to show. The output then consists
// of one sentence.
func TestWriteOperations_ReportsThatNothingWasReceived(t *testing.T) {
	r := reportertest.ShortJob()
	r.Nodes["0"].Operations = &aggregate.Operations{}
	var out bytes.Buffer
	check.Must(t, WriteOperations(&out, r))
	check.Equal(t, out.String(), "nothing was received\n", "output")
}

// The table for a key lists its operations, with the same columns for all reports. The table for an unknown key is
// empty.
func TestWriteOperationKey(t *testing.T) {
	for key, want := range map[string]string{
		"k1":      "operation  calls  avg ms  min ms  max ms  size B\nstore.get  1,000     0.6     0.1       3     219\n",
		"k2":      "operation  calls  avg ms  min ms  max ms  size B\nstore.get    234     0.7     0.2      12       –\n",
		"\x1b[2J": "operation  calls  avg ms  min ms  max ms  size B\n",
	} {
		var out bytes.Buffer
		check.Must(t, WriteOperationKey(&out, workReports()["work"], key))
		check.Equal(t, out.String(), want, "key %q", key)
	}
}

// wantPrintable checks that the tables of a report have only printable characters.
func wantPrintable(t *testing.T, r *reporter.Report, key string) {
	t.Helper()
	var out bytes.Buffer
	check.Must(t, errors.Join(WriteOperations(&out, r), WriteOperationKey(&out, r, key)))
	for line := range strings.SplitSeq(out.String(), "\n") {
		if line != text.Printable(line) {
			t.Errorf("line has unprintable characters: %q", line)
		}
	}
	if strings.Count(out.String(), text.Printable(key)) < 8 {
		t.Errorf("key %q occurs %d times in the tables, want at least 8:\n%s", key, strings.Count(out.String(),
			text.Printable(key)), out.String())
	}
}
