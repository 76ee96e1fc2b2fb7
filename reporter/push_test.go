package reporter_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// somePush returns a state with characters that JSON escapes.
func somePush() reporter.PushState {
	return reporter.PushState{State: reporter.PushPending, RunID: "0123", URI: "http://h:5000/a?b&c", Error: "<no> \"answer\"\n\x1b \u2028 é", ExperimentName: "e", Invocation: "i"}
}

// states returns a push state for each of the given nodes.
func states(nodes ...string) map[string]reporter.PushState {
	out := make(map[string]reporter.PushState)
	for _, n := range nodes {
		out[n] = somePush()
	}
	return out
}

// pushed returns the report data with a new push state for each of the given nodes.
func pushed(t testing.TB, data []byte, nodes ...string) []byte {
	t.Helper()
	out, err := reporter.WithPush(data, states(nodes...))
	if err != nil {
		t.Fatalf("WithPush of %.200s: %v", data, err)
	}
	return out
}

// decoded decodes JSON and keeps the text of its numbers.
func decoded(t testing.TB, data []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("invalid JSON: %v in %s", err, data)
	}
	return v
}

// wanted returns the expected content of a file with new push parts.
func wanted(t testing.TB, data []byte, to map[string]reporter.PushState) any {
	t.Helper()
	v := decoded(t, data)
	nodes, _ := v.(map[string]any)["nodes"].(map[string]any)
	for name, n := range nodes {
		if s, ok := to[name]; ok {
			text, err := json.Marshal(reporter.Push{MLflow: s})
			check.Must(t, err)
			push := decoded(t, text).(map[string]any)
			if had, _ := n.(map[string]any)["push"].(map[string]any); len(had) > 0 {
				had["mlflow"] = push["mlflow"]
				push = had
			}
			n.(map[string]any)["push"] = push
		}
	}
	return v
}

// WithPush changes only the bytes of the push part, no matter what else is in the file.
func TestWithPush(t *testing.T) {
	t.Parallel()
	const old = `{"mlflow":{"state":"off"}}`
	for name, c := range map[string]struct{ before, after string }{
		"perfagent's own format":      {`{"nodes":{"0":{"a":1,"push":§,"b":1.50}}}`, ""},
		"extra white space":           {"{ \"x\" : [ 1 , 2 ] ,\n\t\"nodes\" : { \"0\" : { \"a\" : 1e2 , \"push\" : § } } }\n", ""},
		"push is the first member":    {`{"nodes":{"0":{"push":§,"a":1}}}`, ""},
		"push is the only member":     {`{"nodes":{"0":{"push":§}}}`, ""},
		"several nodes":               {`{"nodes":{"0":{"push":§},"1":{"push":§},"2":{"push":{"mlflow":{"state":"off"}}}}}`, ""},
		"no push part":                {`{"nodes":{"0":{"a":1}}}`, `{"nodes":{"0":{"push":§,"a":1}}}`},
		"empty node":                  {`{"nodes":{"0":{}}}`, `{"nodes":{"0":{"push":§}}}`},
		"empty node with white space": {`{"nodes":{"0":{ } }}`, `{"nodes":{"0":{"push":§ } }}`},
		"other members named push": {`{"push":{"0":{"push":1}},"run":{"push":{"mlflow":{}},"nodes":{"0":{"push":2}}},"nodes":{"0":{"job":{"push":3},"x":[{"push":4}],"push":§}}}`,
			""},
		"other nodes":   {`{"nodes":{"00":{"push":5},"10":{"push":6},"0":{"push":§}}}`, ""},
		"later version": {`{"schema":"perfagent.report/1.7","nodes":{"0":{"push":§,"gpu":{"é\u00e9\ud83d\ude00":[1,null,true]}}},"new":12345678901234567890}`, ""},
		"push to another sink": {`{"nodes":{"0":{"push":{"mlflow":{"state":"done"},"s3":{"state":"done"}}}}}`,
			`{"nodes":{"0":{"push":{"mlflow":¶,"s3":{"state":"done"}}}}}`},
		"no MLflow state": {`{"nodes":{"0":{"push":{"s3":{"state":"done"} }}}}`,
			`{"nodes":{"0":{"push":{"mlflow":¶,"s3":{"state":"done"}}}}}`},
		"empty push part":          {`{"nodes":{"0":{"push":{ }}}}`, `{"nodes":{"0":{"push":§}}}`},
		"push is null":             {`{"nodes":{"0":{"push":null}}}`, `{"nodes":{"0":{"push":§}}}`},
		"push is a list":           {`{"nodes":{"0":{"push":[1,{"push":2}]}}}`, `{"nodes":{"0":{"push":§}}}`},
		"escaped keys":             {`{"nod\u0065s":{"\u0030":{"pu\u0073h":§}}}`, ""},
		"deep nesting before push": {`{"nodes":{"0":{"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `,"push":§}}}`, ""},
		"no node in nodes":         {`{"nodes":{}}`, `{"nodes":{}}`},
		"no member named nodes":    {`{"x":{"0":{"push":1}}}`, `{"x":{"0":{"push":1}}}`},
		"umlaut before nodes":      {`{"ü":"ö","nodes":{"0":{"push":§}}}`, ""},
	} {
		push, err := text.JSON(reporter.Push{MLflow: somePush()})
		check.Must(t, err)
		state, err := text.JSON(somePush())
		check.Must(t, err)
		before := []byte(strings.ReplaceAll(c.before, "§", old))
		want := strings.NewReplacer("§", string(push), "¶", string(state)).Replace(cmp.Or(c.after, c.before))
		got := pushed(t, before, "0", "1", "77")
		check.Equal(t, string(got), want, "%s", name)
		check.Equal(t, string(pushed(t, got, "0", "1", "77")), want, "%s: repeated", name)
	}
}

// The push states of MLflow and of a store are independent, and SameRecording ignores both.
func TestWithStore_KeepsMLflowState(t *testing.T) {
	t.Parallel()
	report := reportertest.NodeReport(3, 20, 0, nil)
	report.Nodes["3"].Push = &reporter.Push{MLflow: somePush()}
	data := encodedReport(t, report)
	done := &reporter.StoreState{State: reporter.PushDone, URI: "file:///s", Reference: "file:///s#job/node-3"}
	stored, err := reporter.WithStore(data, map[string]*reporter.StoreState{"3": done, "4": done})
	check.Must(t, err)
	other := somePush()
	other.State = reporter.PushDone
	both, err := reporter.WithPush(stored, map[string]reporter.PushState{"3": other})
	check.Must(t, err)
	check.Equal(t, readBack(t, both).Nodes["3"].Push, &reporter.Push{MLflow: other, Store: done}, "push of the node")

	report.Nodes["3"].Metrics["wall_seconds"]++
	wantValues(t, "SameRecording after two pushes, for a run of another length, for half of the file",
		"true false false", reporter.SameRecording(data, both), reporter.SameRecording(data, encodedReport(t, report)),
		reporter.SameRecording(data, data[:len(data)/2]))
}

// WithStore adds a push part to reports without one, such as reports from perf.py's numbers.
func TestWithStore_AddsPushPart(t *testing.T) {
	t.Parallel()
	pending := &reporter.StoreState{State: reporter.PushPending, URI: "u", Error: "e"}
	got, err := reporter.WithStore([]byte(`{"nodes":{"0":{"a":1},"1":{}}}`), map[string]*reporter.StoreState{"0": pending, "1": pending})
	check.Must(t, err)
	const push = `"push":{"mlflow":{"state":"off"},"store":{"state":"pending","uri":"u","error":"e"}}`
	check.Equal(t, string(got), `{"nodes":{"0":{`+push+`,"a":1},"1":{`+push+`}}}`, "report")
}

// If a key appears twice, the last value counts, as it does for readers.
func TestWithPush_UsesLastOfDuplicateKeys(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"nodes":{"0":{"push":{"mlflow":{"state":"off"}},"push":{"mlflow":{"state":"off"}}}}}`,
		`{"nodes":{"0":{"metrics":{}},"0":{"metrics":{},"push":{}}}}`,
		`{"nodes":{"0":{"metrics":{}}},"nodes":{"0":{"metrics":{}}}}`,
	} {
		var r reporter.Report
		check.Must(t, json.Unmarshal(pushed(t, []byte(text), "0"), &r))
		if push := r.Nodes["0"].Push; push == nil || push.MLflow != somePush() {
			t.Errorf("%s: push %+v, want the new state", text, push)
		}
	}
}

// WithPush returns an error for anything except a report.
func TestWithPush_RejectsInputOtherThanReports(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "  ", "null", "[]", "3", `"nodes"`, `{`, `{"nodes":`, `{"nodes":{"0":{"push":{}`, `{"nodes":[]}`, `{"nodes":null}`, `{"nodes":{"0":[]}}`,
		`{"nodes":{"0":null}}`, `{"nodes":{"0":{"push":{}},}}`, `{"nodes":{"0":{"push"}}}`, `{"nodes":{"0":{"push":NaN}}}`,
		`{"nodes":{"0":{"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}}`} {
		if got, err := reporter.WithPush([]byte(text), states("0")); err == nil {
			t.Errorf("%.60q becomes %.100q, want an error", text, got)
		}
	}
}

func FuzzWithPush(f *testing.F) {
	for _, text := range []string{`{"nodes":{"0":{"a":1,"push":{"mlflow":{"state":"off"}},"b":1}}}`, `{"nodes":{"0":{},"1":{"push":null}},"push":1}`, `{"nodes":{"0":{ }}}`,
		`{"x":[{"nodes":{"0":{"push":1}}}], "nodes" : {"0" : {"é" : "\ud83d\ude00" } } }`, `{"nodes":{"0":{"a":{"push":2}}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !jsontext.Value(data).IsValid(jsontext.AllowInvalidUTF8(true)) { // or a key appears twice, which readers treat differently
			return
		}
		got, err := reporter.WithPush(data, states("0", "1"))
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q becomes %q, want JSON", data, got)
		}
		if d := gocmp.Diff(wanted(t, data, states("0", "1")), decoded(t, got)); d != "" {
			t.Fatalf("%q becomes %q (-want +got):\n%s", data, got, d)
		}
	})
}

// A real report stays unchanged, byte for byte, except for its push part.
func TestWithPush_ChangesOnlyPushOfRealReport(t *testing.T) {
	t.Parallel()
	s := reportertest.NewStream(5)
	rec := s.Recording(50)
	for range 200 {
		s.Next(rec)
	}
	before := reporter.New(reporter.Input{Run: reporter.Run{ID: "r"}, Node: 3, Recording: rec})
	data := encodedReport(t, before)
	changed := pushed(t, data, "3")
	var after reporter.Report
	check.Must(t, json.Unmarshal(changed, &after))
	check.Equal(t, after.Nodes["3"].Push.MLflow, somePush(), "push")
	back, err := reporter.WithPush(changed, map[string]reporter.PushState{"3": before.Nodes["3"].Push.MLflow})
	check.Must(t, err)
	i, j := bytes.Index(data, []byte(`"push":`)), bytes.Index(back, []byte(`"push":`))
	if i < 0 || i != j || !bytes.Equal(data[:i], back[:j]) || !reflect.DeepEqual(decoded(t, data), decoded(t, back)) {
		t.Error("writing the old push state does not restore the report")
	}
}
