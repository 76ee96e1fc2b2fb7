package reporter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// streamAll collects the nodes of Scan into a report.
func streamAll(t *testing.T, data []byte, wanted reporter.ColumnFilter) (r *reporter.Report, order []string, err error) {
	t.Helper()
	nodes := make(map[string]*reporter.Node)
	var first reporter.Run
	run, err := reporter.Scan(bytes.NewReader(data), int64(len(data)), wanted, func(run *reporter.Run, name string, n *reporter.Node) error {
		if len(order) == 0 {
			first = *run
		}
		nodes[name] = n
		order = append(order, name)
		return nil
	})
	if err != nil {
		return nil, order, err
	}
	if d := cmp.Diff(first, *run); d != "" {
		t.Errorf("run passed with the first node (-) differs from the returned run (+):\n%s", d)
	}
	return &reporter.Report{Schema: reporter.Schema, Run: *run, Nodes: nodes}, order, nil
}

// streamReports returns encoded perfagent reports, by name.
func streamReports(t *testing.T) map[string][]byte {
	out := make(map[string][]byte)
	for name, r := range reportertest.Golden() {
		r.Schema = reporter.Schema
		out[name] = encodedReport(t, r)
	}
	for _, name := range []string{"hostile-nodes", "no-nodes", "nil-nodes"} {
		delete(out, name)
	}
	out["merged"] = streamMerged(t)
	return out
}

// streamMerged returns the file of a report of three nodes.
func streamMerged(t *testing.T) []byte {
	t.Helper()
	return encodedReport(t, mustMerge(t, sources(reportertest.NodeReport(0, 9, 0, nil), reportertest.NodeReport(2, 9, 7, nil),
		reportertest.NodeReport(10, 5, -1, nil))...))
}

// sameNumbers compares lists of numbers, with NaN equal to NaN, without reflection on each number.
func sameNumbers() cmp.Option {
	return cmp.Comparer(func(a, b []float64) bool {
		return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y float64) bool {
			return x == y || math.IsNaN(x) && math.IsNaN(y)
		})
	})
}

func streamSame(t *testing.T, what string, want, got *reporter.Report) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), sameNumbers()); d != "" {
		t.Errorf("%s: (-want +got)\n%.3000s", what, d)
	}
}

func TestScan_MatchesDecode(t *testing.T) {
	for name, data := range streamReports(t) {
		want, err := streamSlowly(data)
		check.Must(t, err)
		scanned, order, err := streamAll(t, data, reporter.ColumnFilter{All: true})
		check.Must(t, err)
		streamSame(t, name+", Scan", want, scanned)
		streamSame(t, name+", Decode", want, readBack(t, data))
		check.Equal(t, order, slices.Sorted(maps.Keys(want.Nodes)), "%s: order of the nodes, as written by encoding/json",
			name)
	}
}

func TestScan_ParsesOnlyWantedColumns(t *testing.T) {
	data := streamMerged(t)
	// A number that cannot be parsed shows that unwanted columns are not parsed.
	words := regexp.MustCompile(`"disk_io_read_mb":(\d)`).ReplaceAllString(string(data), `"disk_io_read_mb":1e999, "x":$1`)
	words = strings.ReplaceAll(words, `"disk_io_read_mb": {"min":[`, `"disk_io_read_mb": {"min":["]}{",{"min":[[]]},1e999,`)
	if _, _, err := streamAll(t, []byte(words), reporter.ColumnFilter{All: true}); err == nil {
		t.Fatal("1e999 was accepted as a number, want an error")
	}
	wanted := reporter.ColumnFilter{Samples: []string{"timestamp", "none"}, Envelope: []string{"net_io_ext_recv_mb_per_second", "cpu_pct_per_cpu_avg"}}
	got, _, err := streamAll(t, []byte(words), wanted)
	check.Must(t, err)
	want, err := streamSlowly(data)
	check.Must(t, err)
	for _, n := range want.Nodes {
		n.Samples = reporter.Samples{Keys: []string{"timestamp"}, Columns: [][]float64{n.Samples.Column("timestamp")}}
		n.Envelope = reporter.Envelope{wanted.Envelope[0]: n.Envelope[wanted.Envelope[0]], wanted.Envelope[1]: n.Envelope[wanted.Envelope[1]]}
	}
	streamSame(t, "some columns", want, got)
	got, _, err = streamAll(t, []byte(words), reporter.ColumnFilter{})
	check.Must(t, err)
	for _, n := range want.Nodes {
		n.Samples, n.Envelope = reporter.Samples{}, reporter.Envelope{}
	}
	streamSame(t, "no column", want, got)
}

// With any order of the keys, the run is known at the first node, and an unknown schema is rejected before the first
// node.
func TestScan_AcceptsAnyOrderOfKeys(t *testing.T) {
	data := streamMerged(t)
	want, err := streamSlowly(data)
	check.Must(t, err)
	var members map[string]json.RawMessage
	check.Must(t, json.Unmarshal(data, &members))
	members["future"] = json.RawMessage(`{"nodes": {"0": [1]}, "schema": 7}`)
	words := func(keys ...string) string {
		var parts []string
		for _, key := range keys {
			parts = append(parts, fmt.Sprintf("%q: %s", key, members[key]))
		}
		return "\n{" + strings.Join(parts, ",\n") + "}\n"
	}
	for _, keys := range [][]string{{"nodes", "run", "schema"}, {"run", "nodes", "future", "schema"}, {"schema", "nodes", "run"}, {"future", "schema", "run", "nodes"}} {
		got, _, err := streamAll(t, []byte(words(keys...)), reporter.ColumnFilter{All: true})
		check.Must(t, err)
		streamSame(t, fmt.Sprint(keys), want, got)
		other := strings.Replace(words(keys...), reporter.Schema, "perfagent.report/2", 1)
		_, order, err := streamAll(t, []byte(other), reporter.ColumnFilter{All: true})
		check.Error(t, err, "use a newer perfagent")
		check.Equal(t, order, nil, "%v: nodes passed before an unknown schema", keys)
	}
	got, _, err := streamAll(t, []byte(words("schema", "nodes")), reporter.ColumnFilter{All: true})
	check.Must(t, err)
	wantValues(t, "number of nodes and ID without a run", fmt.Sprint(len(want.Nodes), " "), len(got.Nodes), got.Run.ID)
}

// Wherever a file is cut off, the error contains the line.
func TestScan_ReportsLineWhereFileIsCutOff(t *testing.T) {
	r := mustMerge(t, sources(reportertest.NodeReport(0, 2, 0, nil), reportertest.NodeReport(1, 1, 7, nil))...)
	for _, n := range r.Nodes { // more keys would only repeat the same checks
		cutKeys(n.Metrics, 3)
		cutKeys(n.Summaries, 3)
		cutKeys(n.Envelope, 3)
		n.Samples.Keys, n.Samples.Columns = n.Samples.Keys[:3], n.Samples.Columns[:3]
	}
	data := bytes.TrimSpace(encodedReport(t, r))
	step := testenv.Rounds(3, 11)
	for cut := 2; cut < len(data); cut += step {
		want := fmt.Sprintf("line %d: the file ends in the middle (cut off?)", 1+bytes.Count(data[:cut], []byte{'\n'}))
		if _, err := reporter.Decode(data[:cut]); err == nil || err.Error() != want {
			t.Fatalf("cut off at %d: Decode: error %v, want %s", cut, err, want)
		}
	}
}

// cutKeys deletes all keys of a map except the first n.
func cutKeys[V any](m map[string]V, n int) {
	for _, key := range slices.Sorted(maps.Keys(m))[n:] {
		delete(m, key)
	}
}

// streamHostile returns faulty reports with the expected errors.
func streamHostile() map[string]string {
	var columns []string
	for i := range reporter.MaxSampleKeys {
		columns = append(columns, fmt.Sprintf(`"k%d":1`, i))
	}
	node := func(inner string) string {
		return "{\"schema\":\"perfagent.report/1\",\"run\":{},\n\"nodes\":{\"0\":{},\n\"7\":{" + inner + "}\n}}"
	}
	nodes := func(inner string) string { return `{"schema":"perfagent.report/1","run":{},"nodes":` + inner + `}` }
	return map[string]string{
		nodes(`{}`):                                "has no nodes",
		nodes(`null`):                              "has no nodes",
		nodes(`[]`):                                "line 1: nodes are not an object",
		nodes(`{"0":null}`):                        "line 1: node 0: null is not a node",
		nodes(`{"0":[]}`):                          "line 1: node 0: json: cannot unmarshal JSON array",
		nodes(`{"01":{}}`):                         `line 1: has a node "01", which is not a node index`,
		nodes(`{"-1":{}}`):                         `has a node "-1"`,
		nodes(`{"\u001b[2J":{}}`):                  `has a node "\\x1b[2J"`,
		nodes(`{"4294967296":{}}`):                 `has a node "4294967296"`,
		nodes(`{"3":{},"\u0033":{}}`):              "node 3 appears twice",
		nodes(`{"0":{}},"nodes":{}`):               `"nodes" appears twice`,
		nodes(`{"0":{}},"run":{}`):                 `"run" appears twice`,
		nodes(`{"0":{}}`) + `{}`:                   "line 1: there is more text after the end",
		nodes(`{"0":{}}`) + "\n\x00":               `line 2: `,
		nodes(`{"0":{}}`)[:50] + "\x00":            `line 1: invalid character '\x00'`,
		`{"schema":1}`:                             "line 1: json: cannot unmarshal JSON number",
		`{"schema":null,"nodes":{}}`:               `has the schema ""`,
		`{"schema":"perfagent.report/1","run":[]}`: "cannot unmarshal JSON array",
		`{"run":{},"nodes":{"0":{}}}`:              "not a perfagent report",

		node(`"samples":{}`):                                                         "line 3: node 7: samples are not a list",
		node(`"samples":null`):                                                       "samples are not a list",
		node("\"samples\":[{},\n[]]"):                                                "line 4: node 7: sample 2: not an object",
		node("\"samples\":[{},\n{\"a\":\"1\"}]"):                                     `line 4: node 7: sample 2: "a" is not a number`,
		node(`"samples":[{"a":true}]`):                                               `sample 1: "a" is not a number`,
		node(`"samples":[{"a":[1]}]`):                                                `sample 1: "a" is not a number`,
		node(`"samples":[{"a":1e999}]`):                                              `"1e999" is out of range`,
		node(`"samples":[{"\u001b]0;":"x"}]`):                                        `\\x1b]0;`,
		node(`"envelope":[]`):                                                        "node 7: the envelope is not an object",
		node("\"envelope\":{\"a\":\n1}"):                                             `line 4: node 7: envelope of "a": json: cannot unmarshal JSON number`,
		node(`"envelope":{"a":{"min":1}}`):                                           `envelope of "a": not a list of numbers`,
		node(`"envelope":{"a":{"min":[1,"2"]}}`):                                     `envelope of "a": value 2 is not a number`,
		node(`"envelope":{"a":{"min":[[1]]}}`):                                       "value 1 is not a number",
		node(`"envelope":{"a":{"min":[-1e999]}}`):                                    `"-1e999" is out of range`,
		node(`"samples":[{"a":1}],"envelope":{"a":{"min":[1],"mean":[1],"max":[]}}`): `line 3: node 7: the envelope of "a" does not match the 1 samples`,
		node(`"envelope":{"a":{"min":[1]},"b":null}`):                                `the envelope of "a" does not match the 0 samples`,
		node("\"host\":{\"cpus\":1,\n\"memory_mb\":\"much\"}"):                       "line 4: node 7: json: cannot unmarshal JSON string",
		node("\n\"job\":{\"start\":\"noon\"}"):                                       `line 4: node 7: time "noon" is not RFC 3339`,
		node(`"metrics":{"a":"x"}`):                                                  "line 3: node 7: json: cannot unmarshal",

		node("\"samples\":[\n{\"a\":NaN}]"):         "line 4: invalid character 'N'",
		node("\"samples\":[\n{\"a\":Infinity}]"):    "line 4: invalid character 'I'",
		node("\"envelope\":{\"a\":[\n-Infinity]}}"): "line 3: node 7: envelope of \"a\": json: cannot unmarshal JSON array",
		node(`"samples":[{"a":01}]`):                "line 3: invalid character '1'",
		node(`"samples":[{"a":1,}]`):                "line 3: ",
		node(`'a':1`):                               "line 3: invalid character '\\''",

		node(`"samples":[{` + strings.Join(columns, ",") + `}` + strings.Repeat(",{}", 5000) + `]`): "line 3: node 7: most of the samples are empty",
		node(`"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000)):                      "depth",
		node(`"x":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat("}", 20000)):            "depth",
	}
}

func TestScan_ReturnsSameErrorsAsDecode(t *testing.T) {
	for words, want := range streamHostile() {
		_, _, scanErr := streamAll(t, []byte(words), reporter.ColumnFilter{All: true})
		_, readErr := reporter.Decode([]byte(words))
		if scanErr == nil || readErr == nil || scanErr.Error() != readErr.Error() {
			t.Errorf("%.100q: Scan: error %v, Decode: error %v, want the same error", words, scanErr, readErr)
			continue
		}
		said := scanErr.Error()
		if !strings.Contains(said, want) || said != text.Printable(said) || len(said) > 300 {
			t.Errorf("%.100q: error %q, want one printable line of at most 300 bytes with %q", words, said, want)
		}
	}
}

// The size of a node, and of any other value, is limited.
func TestScan_LimitsSizeOfValues(t *testing.T) {
	long := strings.Repeat("x", 1<<13)
	for words, want := range map[string]string{
		"{\"schema\":\n\"" + long + long: "line 1: the value that begins here has more than",
		"{\"schema\":\"perfagent.report/1\",\"run\":{},\n\"nodes\":{\"0\":{},\n\"1\":\n{\"a\":\"" + long + long: "line 3: the value that begins here",
		"{\"" + long + long: "line 1: the value that begins here",
		"{\"nodes\":{\"1\":{\"a\":[" + strings.Repeat("0,", 1<<14): "line 1: the value that begins here",
	} {
		check.Error(t, reporter.ScanWithin(strings.NewReader(words), int64(len(words)), 1<<12), want)
	}
}

// manyNodes returns the file of a report of 30 nodes.
func manyNodes(t *testing.T) []byte {
	t.Helper()
	var reports []*reporter.Report
	for i := range 30 {
		reports = append(reports, reportertest.NodeReport(i, 3, 0, nil))
	}
	return encodedReport(t, mustMerge(t, sources(reports...)...))
}

// An error from the caller's function ends the scan at any node, and is returned unchanged.
func TestScan_StopsAtErrorOfCaller(t *testing.T) {
	data, full := manyNodes(t), errors.New("no more room")
	for _, stop := range []int{1, 2, 30} {
		calls := 0
		_, err := reporter.Scan(bytes.NewReader(data), int64(len(data)), reporter.ColumnFilter{All: true}, func(*reporter.Run, string, *reporter.Node) error {
			if calls++; calls == stop {
				return full
			}
			return nil
		})
		if err != full || calls != stop {
			t.Errorf("error %v, want %v; %d nodes, want %d", err, full, calls, stop)
		}
	}
}

// Scan keeps no reference to a node, so nodes that the caller does not keep can be collected.
func TestScan_KeepsNoReferenceToNodes(t *testing.T) {
	data := manyNodes(t)
	var had []weak.Pointer[reporter.Node]
	_, err := reporter.Scan(bytes.NewReader(data), int64(len(data)), reporter.ColumnFilter{All: true}, func(_ *reporter.Run, name string, n *reporter.Node) error {
		runtime.GC()
		if i := slices.IndexFunc(had, func(p weak.Pointer[reporter.Node]) bool { return p.Value() != nil }); i >= 0 {
			t.Errorf("node %d is still in memory when node %s is passed", i, name)
		}
		had = append(had, weak.Make(n))
		return nil
	})
	check.Must(t, err)
}

// streamSeeds adds the seeds of the fuzz tests.
func streamSeeds(f *testing.F) {
	for words := range streamHostile() {
		if len(words) < 4000 {
			f.Add([]byte(words))
		}
	}
	f.Add(encodedReport(f, reportertest.NodeReport(0, 2, 0, map[string]string{"a": "b"})))
	for _, words := range []string{
		`{"Schema":"perfagent.report/1.5","RUN":{"ID":"x"},"noDes":{"0":{"SAMPLES":[{"a":1}],"enveloPe":{"b":{"MIN":[1],"mEan":[null],"max":[2e3]}}}}}`,
		`{"schema":"perfagent.report/1","nodes":{"5":{"samples":[{"a":1},{"b":2,"a":null},{"c":null,"\u0061":3,"\ud800":1}],"samples":[{"z":-0.5e-3}]}}}`,
		`{"schema":"perfagent.report/1","nodes":{"5":{"envelope":{"a":null,"b":{}},"envelope":null,"host":{"cpus":1},"host":{"hostname":"h"},"missing":[{"what":"a"}]}}}`,
		"{\"schema\":\"perfagent.report/1\",\"nodes\":{\"5\":{\"samples\":[{\"\xff\":1,\"\\\"}\":2},{}],\"envelope\":{\"\xfe\":{\"min\":[0,1],\"mean\":[0,1],\"max\":[0,1]}}}}}",
	} {
		f.Add([]byte(words))
	}
}

// FuzzScan compares Scan with a reader that uses only encoding/json.
func FuzzScan(f *testing.F) {
	streamSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var order []string
		nodes := make(map[string]*reporter.Node)
		got, err := reporter.ScanReport(bytes.NewReader(data), int64(len(data)), reporter.ColumnFilter{All: true}, func(_ *reporter.Run, name string, n *reporter.Node) error {
			order, nodes[name] = append(order, name), n
			return nil
		})
		if err != nil && err.Error() != text.Printable(err.Error()) {
			t.Errorf("error %q is not printable", err)
		}
		want, slowErr := streamSlowly(data)
		if streamDoubtful(data) && err != nil {
			return
		}
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("error %v; with encoding/json alone: %v", err, slowErr)
		}
		if err != nil {
			return
		}
		got.Nodes = nodes
		streamSame(t, "fuzz", want, got)
		some := reporter.ColumnFilter{Samples: []string{"a"}, Envelope: []string{"b"}}
		_, err = reporter.ScanReport(bytes.NewReader(data), int64(len(data)), some, func(_ *reporter.Run, name string, n *reporter.Node) error {
			if name != order[0] || len(n.Samples.Keys) > 1 || len(n.Envelope) > 1 {
				t.Errorf("some columns: node %s, want %s; samples %v and envelope %v, want at most one column each",
					name, order[0], n.Samples.Keys, n.Envelope)
			}
			order = order[1:]
			return nil
		})
		if err != nil || len(order) > 0 {
			t.Errorf("some columns: error %v; nodes not passed: %q", err, order)
		}
	})
}

// FuzzSeries compares the readers of samples and of numbers with slow readers, and checks that invalid JSON does not
// make a reader panic or run forever.
func FuzzSeries(f *testing.F) {
	for _, words := range []string{`[]`, `null`, `[null,1,-2.5e-3,0.1]`, `[{"a":1,"b":null},{},{"b":2,"a":1e5}]`, `[{"a":"x"}]`, `[[1]]`, `{"min":[1]}`, `[1e999]`, `"`, `[{"a":`, `[,`, `[}`, `{"a"}`} {
		f.Add([]byte(words))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var samples reporter.Samples
		var numbers reporter.Numbers
		samplesErr, numbersErr := samples.UnmarshalJSON(data), numbers.UnmarshalJSON(data)
		if !json.Valid(data) {
			return
		}
		var slowSamples streamSlowSamples
		var slowNumbers streamSlowNumbers
		slowSamplesErr, slowNumbersErr := json.Unmarshal(data, &slowSamples), json.Unmarshal(data, &slowNumbers)
		if bytes.Equal(bytes.TrimSpace(data), []byte("null")) { // json.Unmarshal accepts null for non-pointers
			slowSamplesErr = errors.New("null")
		}
		if (samplesErr == nil) != (slowSamplesErr == nil) || (numbersErr == nil) != (slowNumbersErr == nil) {
			t.Fatalf("samples: error %v, with encoding/json alone %v; numbers: error %v, with encoding/json alone %v",
				samplesErr, slowSamplesErr, numbersErr, slowNumbersErr)
		}
		if samplesErr == nil {
			streamSame(t, "samples", &reporter.Report{Nodes: map[string]*reporter.Node{"": {Samples: slowSamples.Samples}}}, &reporter.Report{Nodes: map[string]*reporter.Node{"": {Samples: samples}}})
		}
		if numbersErr == nil && !slices.EqualFunc(numbers, slowNumbers, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("numbers %v, with encoding/json alone %v", numbers, slowNumbers)
		}
	})
}

// streamTorn is a text that returns an error at its end instead of io.EOF.
type streamTorn string

func (words streamTorn) ReadAt(p []byte, at int64) (int, error) {
	n := copy(p, words[min(int(at), len(words)):])
	if n == 0 {
		return 0, io.ErrClosedPipe
	}
	return n, nil
}

func TestScan_ReturnsReadErrorsUnchanged(t *testing.T) {
	for _, words := range []string{`{`, `{"schema":"perfag`, `{"schema":"perfagent.report/1","run":{},"nodes":{"0":{},"1":{"a":`} {
		_, err := reporter.ScanReport(streamTorn(words), 1<<10, reporter.ColumnFilter{}, func(*reporter.Run, string, *reporter.Node) error { return nil })
		if err != io.ErrClosedPipe {
			t.Errorf("%s: error %v, want %v", words, err, io.ErrClosedPipe)
		}
	}
}
