package reporter

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/plainjson"
)

// nodeReport is the report of one node of a run; code < 0: a sidecar's.
func nodeReport(node, seconds, code int, tags map[string]string) *Report {
	in := inputOf(node, seconds, code, "")
	if code > 128 {
		in.Run.Signal, in.Job.Signal = "SIGKILL", "SIGKILL"
	}
	if code < 0 {
		in.Job, in.Run.ExitCode, in.Run.Command = nil, nil, nil
	}
	shift := time.Duration(node) * 3 * time.Second
	in.Run.Start.Time, in.Run.End.Time = in.Run.Start.Add(shift), in.Run.End.Add(shift)
	in.Run.Tags = tags
	return New(in)
}

func mustMerge(t *testing.T, inputs ...Source) *Report {
	t.Helper()
	r, err := Merge(inputs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encodedReport(t *testing.T, r *Report) []byte {
	t.Helper()
	data, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMerge_SpansTheNodes(t *testing.T) {
	a, b, c := nodeReport(0, 10, 0, map[string]string{"k": "a", "x": "1"}), nodeReport(2, 10, 7, map[string]string{"k": "b"}), nodeReport(10, 5, 137, nil)
	r := mustMerge(t, Source{"c", c}, Source{"b", b}, Source{"a", a})
	if got := r.NodeNames(); !slices.Equal(got, []string{"0", "2", "10"}) {
		t.Errorf("nodes %v", got)
	}
	run := r.Run
	if *run.ExitCode != 7 || run.Signal != "" {
		t.Errorf("exit %d %q, want that of node 2", *run.ExitCode, run.Signal)
	}
	if !run.Start.Equal(testStart) || !run.End.Equal(testStart.Add(35*time.Second)) || run.WallSeconds != 35 {
		t.Errorf("from %v to %v, %v s", run.Start, run.End, run.WallSeconds)
	}
	if run.Tags["k"] != "a" || run.Tags["x"] != "1" || run.ID != a.Run.ID || run.Command[0] != "python" || r.Schema != Schema {
		t.Errorf("%+v", run)
	}
	if !bytes.Equal(encodedReport(t, a), encodedReport(t, nodeReport(0, 10, 0, map[string]string{"k": "a", "x": "1"}))) {
		t.Error("an input was changed")
	}
}

func TestMerge_ExitCodes(t *testing.T) {
	seven := 7
	lone := NewPerfPyReport(goldenSamples(), 1, 8, Run{ExitCode: &seven, Signal: "SIGHUP"})
	for _, c := range []struct {
		name   string
		in     []*Report
		code   int // -1: none
		signal string
	}{
		{"all well", []*Report{nodeReport(0, 1, 0, nil), nodeReport(1, 1, 0, nil)}, 0, ""},
		{"sidecars", []*Report{nodeReport(0, 1, -1, nil), nodeReport(1, 1, -1, nil)}, -1, ""},
		{"sidecar and job", []*Report{nodeReport(0, 1, -1, nil), nodeReport(1, 1, 0, nil)}, 0, ""},
		{"killed", []*Report{nodeReport(0, 1, 0, nil), nodeReport(1, 1, 137, nil), nodeReport(2, 1, 3, nil)}, 137, "SIGKILL"},
		{"run without job", []*Report{nodeReport(0, 1, 0, nil), lone, nodeReport(2, 1, 3, nil)}, 7, "SIGHUP"},
		{"run after job", []*Report{nodeReport(0, 1, 4, nil), lone}, 4, ""},
	} {
		var inputs []Source
		for i, r := range c.in {
			inputs = append(inputs, Source{fmt.Sprint(i), r})
		}
		r := mustMerge(t, inputs...)
		got := -1
		if r.Run.ExitCode != nil {
			got = *r.Run.ExitCode
		}
		if got != c.code || r.Run.Signal != c.signal {
			t.Errorf("%s: exit %d %q, want %d %q", c.name, got, r.Run.Signal, c.code, c.signal)
		}
	}
}

// bareReport is the report of a node of which there is no more to say than how it exited.
func bareReport(node, code int) *Report {
	r := nodeReport(node, 1, code, nil)
	for _, n := range r.Nodes {
		n.Verdict.Conditions = nil
	}
	return r
}

// The run's own verdict is said first, with its node, also where it is a bare exit code.
func TestMerge_SaysTheRunsVerdictFirst(t *testing.T) {
	for _, c := range []struct {
		name  string
		codes []int
		want  []string
	}{
		{"killed by the launcher", []int{0, 4, 137}, []string{"node 1: exited with code 4", "node 2: killed by SIGKILL"}},
		{"only an exit code", []int{1, 0, 0, 0}, []string{"node 0: exited with code 1"}},
		{"the same code twice", []int{0, 3, 0, 3}, []string{"node 1, 3: exited with code 3"}},
		{"other codes", []int{0, 3, 4}, []string{"node 1: exited with code 3"}},
		{"one node", []int{4}, nil},
		{"all well", []int{0, 0}, nil},
	} {
		var inputs []Source
		for i, code := range c.codes {
			inputs = append(inputs, Source{fmt.Sprint(i), bareReport(i, code)})
		}
		r := mustMerge(t, inputs...)
		said := Verdicts(r)
		ok := len(said) == len(c.want)
		for i := 0; ok && i < len(said); i++ {
			ok = strings.HasPrefix(said[i].Text, c.want[i]) && said[i].Bad
		}
		if !ok {
			t.Errorf("%s: said %+v, want %q", c.name, said, c.want)
		}
	}
}

// A bare exit code takes nothing from a node that says more of the same code.
func TestMerge_SaysMoreThanTheCode(t *testing.T) {
	a, b := bareReport(0, 3), bareReport(1, 3)
	b.Nodes["1"].Verdict.Text = "exited with code 3 after SIGTERM from bash (process 7)"
	said := Verdicts(mustMerge(t, Source{"a", a}, Source{"b", b}))
	if len(said) != 2 || said[0].Text != "node 0: exited with code 3" || said[1].Text != "node 1: "+b.Nodes["1"].Verdict.Text {
		t.Errorf("said %+v", said)
	}
}

func TestMerge_TheSameNodeTwice(t *testing.T) {
	a, b := nodeReport(4, 10, 0, nil), nodeReport(4, 10, 0, nil)
	b.Nodes["4"].Push = &Push{MLflow: PushState{State: "done", RunID: "r"}}
	for _, order := range [][]Source{{{"a", a}, {"b", b}}, {{"b", b}, {"a", a}}} {
		r := mustMerge(t, order...)
		if len(r.Nodes) != 1 || r.Nodes["4"].Push.MLflow.RunID != "r" {
			t.Errorf("%+v", r.Nodes["4"].Push)
		}
	}
	if a.Nodes["4"].Push.MLflow.State != "off" {
		t.Error("an input was changed")
	}
	other := nodeReport(4, 11, 0, nil)
	_, err := Merge([]Source{{"x/node-4.json", a}, {"y/node-4.json", other}})
	if err == nil || !strings.Contains(err.Error(), "x/node-4.json") || !strings.Contains(err.Error(), "y/node-4.json") || !strings.Contains(err.Error(), "node 4 ") {
		t.Errorf("%v", err)
	}
}

func TestMerge_RefusesNothing(t *testing.T) {
	if _, err := Merge(nil); err == nil {
		t.Error("no inputs: no error")
	}
	if _, err := Merge([]Source{{"a.json", nil}}); err == nil || !strings.Contains(err.Error(), "a.json") {
		t.Errorf("%v", err)
	}
}

func TestMerge_KeepsWhatIsIncomplete(t *testing.T) {
	broken := incompleteRun()
	r := mustMerge(t, Source{"a", nodeReport(5, 10, 0, nil)}, Source{"b", broken})
	if r.Run.Incomplete != broken.Run.Incomplete {
		t.Errorf("%q", r.Run.Incomplete)
	}
}

// One input, or one merged again, stays as it is.
func TestMerge_Identity(t *testing.T) {
	r := nodeReport(3, 10, 7, map[string]string{"a": "b"})
	once := mustMerge(t, Source{"a", r})
	if a, b := encodedReport(t, r), encodedReport(t, once); !bytes.Equal(a, b) {
		t.Errorf("%s\nwant\n%s", b, a)
	}
	if !bytes.Equal(encodedReport(t, once), encodedReport(t, mustMerge(t, Source{"a", once}, Source{"b", r}))) {
		t.Error("merged again it differs")
	}
}

// In any order and in any steps, where no two inputs disagree.
func TestMerge_Laws(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		var parts []Source
		for node := range 4 {
			code := []int{0, 0, 3, 137, -1}[rng.IntN(5)]
			r := nodeReport(node*7, 1+rng.IntN(20), code, map[string]string{fmt.Sprint(node): "v"})
			if code < 0 && rng.IntN(2) == 0 {
				r.Run.Incomplete = "cut off"
			}
			parts = append(parts, Source{fmt.Sprint(node), r})
		}
		want := encodedReport(t, mustMerge(t, parts...))
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		left := Source{"left", mustMerge(t, parts[0], parts[1])}
		right := Source{"right", mustMerge(t, parts[2], parts[3], parts[1])} // one of them twice
		for name, got := range map[string]*Report{
			"order": mustMerge(t, parts...), "steps": mustMerge(t, left, right), "steps back": mustMerge(t, right, left),
			"one by one": mustMerge(t, Source{"l", mustMerge(t, left, parts[2])}, parts[3]),
		} {
			if data := encodedReport(t, got); !bytes.Equal(data, want) {
				t.Fatalf("%s: %.600s\nwant\n%.600s", name, data, want)
			}
		}
	}
}

func TestMerge_ThinsToTheLimit(t *testing.T) {
	inputs := []Source{{"a", nodeReport(0, 600, 0, nil)}, {"b", nodeReport(1, 333, 0, nil)}}
	old, err := ParsePerfPy([]byte(goldenPerfPy(t)), 8)
	if err != nil {
		t.Fatal(err)
	}
	inputs = append(inputs, Source{"c", old})
	before := encodedReport(t, inputs[0].Report)
	full := encodedReport(t, mustMerge(t, inputs...))
	for _, limit := range []int{len(full) + 2000, len(full) - 1, len(full) / 3, len(full) / 20, 50000} {
		r, err := merge(inputs, limit)
		if err != nil {
			t.Fatal(err)
		}
		data := encodedReport(t, r)
		if len(data) > limit {
			t.Errorf("%d bytes, limit %d", len(data), limit)
		}
		if _, err := Decode(data); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
		n := r.Nodes["0"]
		if band := n.Envelope["cpu_pct_per_cpu_avg"]; slices.Max(band.Max) != 100 || slices.Min(band.Min) != 0.2 {
			t.Errorf("limit %d: the peak is gone: %v", limit, band)
		}
		want := (600 + int(n.Sampling.Stride) - 1) / int(n.Sampling.Stride)
		if n.Samples.Len() != want || n.Metrics[MetricCPUPeak] != 100 {
			t.Errorf("limit %d: %d samples at stride %d", limit, n.Samples.Len(), n.Sampling.Stride)
		}
		if limit > len(full) != (n.Sampling.Stride == 1) {
			t.Errorf("limit %d of %d: stride %d", limit, len(full), n.Sampling.Stride)
		}
	}
	if !bytes.Equal(before, encodedReport(t, inputs[0].Report)) {
		t.Error("an input was changed")
	}
	if _, err := merge(inputs, 1000); err == nil || !strings.Contains(err.Error(), "1000") {
		t.Errorf("%v", err)
	}
}

func TestNode_HalveMergesNeighbours(t *testing.T) {
	nan := math.NaN()
	n := &Node{
		Samples:  Samples{Keys: []string{"k", "bare"}, Columns: [][]float64{{1, 2, 3, nan, nan}, {5, 4, nan, 7, 9}}},
		Envelope: Envelope{"k": Band{Min: Numbers{0, 1, nan, 4, nan}, Mean: Numbers{1, 2, nan, 5, nan}, Max: Numbers{2, 9, nan, 6, nan}}},
		Sampling: &Sampling{Stride: 4},
	}
	n.halve()
	got, err := plainjson.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"samples":[{"k":1,"bare":5},{"k":3},{"bare":9}]`, `"stride":8`,
		`"k":{"min":[0,4,null],"mean":[1.5,5,null],"max":[9,6,null]}`,
		`"bare":{"min":[4,7,9],"mean":[4.5,7,9],"max":[5,7,9]}`,
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}
