package pusher

import (
	"slices"
	"testing"
	"time"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// at returns a time on the day of the tests.
func at(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0) }

// own returns a run that perfagent created, and theirs one that a job created.
func own(id string, start int, tags ...string) mlflow.Run {
	r := theirs(id, start, append(tags, tagCreatedBy, createdBy)...)
	return r
}

func theirs(id string, start int, tags ...string) mlflow.Run {
	r := mlflow.Run{ID: id, StartTime: at(start), Tags: make(map[string]string)}
	for i := 0; i < len(tags); i += 2 {
		r.Tags[tags[i]] = tags[i+1]
	}
	return r
}

func TestPick_PrefersOurOwnRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs      []mlflow.Run
		run, link string
	}{
		"none":                  {nil, "", ""},
		"the job's":             {[]mlflow.Run{theirs("a", 5)}, "a", ""},
		"the job's earliest":    {[]mlflow.Run{theirs("a", 9), theirs("b", 5), theirs("c", 7)}, "b", ""},
		"ours before the job's": {[]mlflow.Run{theirs("a", 5), own("z", 9)}, "z", "a"},
		"linked already":        {[]mlflow.Run{theirs("a", 5), own("z", 9, tagJobRun, "a")}, "z", ""},
		"our earliest":          {[]mlflow.Run{own("y", 8), own("z", 6)}, "z", ""},
		"made twice at once":    {[]mlflow.Run{own("z", 6), own("y", 6)}, "y", ""},
		"nested, child first": {[]mlflow.Run{theirs("a", 5, "mlflow.parentRunId", "b"), theirs("b", 5)},
			"b", ""},
		"nested, parent first": {[]mlflow.Run{theirs("b", 5), theirs("a", 5, "mlflow.parentRunId", "b")},
			"b", ""},
		"link to the outermost": {[]mlflow.Run{own("z", 1), theirs("a", 5, "mlflow.parentRunId", "b"),
			theirs("b", 5)}, "z", "b"},
		"somebody else's tag":     {[]mlflow.Run{theirs("a", 5, tagCreatedBy, "me")}, "a", ""},
		"without a start, oddly ": {[]mlflow.Run{{ID: "a", Tags: map[string]string{}}, theirs("b", 5)}, "a", ""},
	} {
		f := pick(slices.Clone(c.runs))
		run, link := "", ""
		if f.run != nil {
			run = f.run.ID
		}
		if f.jobRun != nil {
			link = f.jobRun.ID
		}
		if run != c.run || link != c.link {
			t.Errorf("%s: run %q, linked job's run %q; want %q, %q", name, run, link, c.run, c.link)
		}
	}
}

// A run ID may be used twice, and by other nodes.
func TestRunIdentity_FitsItsOwnRuns(t *testing.T) {
	t.Parallel()
	id := runIdentity{runID: "r", start: at(100), end: at(200), nodes: []string{"1"},
		recordings: map[string]string{"1": "same"}}
	ended := func(r mlflow.Run, end int) mlflow.Run { r.EndTime = at(end); return r }
	for name, c := range map[string]struct {
		run  mlflow.Run
		want bool
	}{
		"another node's job's":             {theirs("a", 101), true},
		"at the same second":               {theirs("a", 100), true},
		"a job's of an earlier use":        {theirs("a", 99), false},
		"ours, of another node":            {own("a", 99, tagRecording("0"), "h"), true},
		"ours, with our node":              {own("a", 99, tagRecording("1"), "h"), false},
		"ours, with our very recording":    {own("a", 99, tagRecording("1"), "same"), true},
		"ours, with a longer name":         {own("a", 99, tagRecording("10"), "h"), true},
		"ours, begun after our end":        {own("a", 201), false},
		"ours, ended before our start":     {ended(own("a", 50), 99), false},
		"ours, ended while we ran":         {ended(own("a", 50), 150), true},
		"ours, begun as we ended":          {own("a", 200), true},
		"ours, of the node, still running": {own("a", 120), true},
		"a job's, begun after our end":     {theirs("a", 201), false},
		"a job's, with our node":           {theirs("a", 101, tagRecording("1"), "h"), false},
		"a job's of our node":              {theirs("a", 101, TagInvocation, "abc.1"), false},
		"a job's of another node":          {theirs("a", 101, TagInvocation, "abc.0"), true},
		"ours, made live for our node":     {own("a", 99, TagInvocation, "abc.1"), false},
		"ours, made live for another":      {own("a", 99, TagInvocation, "abc.11"), true},
	} {
		if got := id.fits(c.run); got != c.want {
			t.Errorf("fits(%s) = %v, want %v", name, got, c.want)
		}
	}
	id.perfpy = true
	if !id.fits(own("a", 5, tagRecording("1"), "same")) || id.fits(own("a", 150)) {
		t.Error("fits of perf.py's file is wrong, want true for its recording and false for its run ID alone")
	}
	id = runIdentity{start: at(100).Add(999 * time.Microsecond), end: at(200)} // MLflow keeps milliseconds
	if !id.fits(theirs("a", 100)) {
		t.Error("fits of a run of the same millisecond = false, want true")
	}
}

// The same recording has the same identity, and another one has another.
func TestNewRunIdentity_IsTheSameForTheSameRecording(t *testing.T) {
	t.Parallel()
	report := func(id string, start int, nodes ...string) *reporter.Report {
		r := &reporter.Report{Run: reporter.Run{ID: id, Start: reporter.Time{Time: at(start)}},
			Nodes: make(map[string]*reporter.Node)}
		for _, n := range nodes {
			r.Nodes[n] = &reporter.Node{Sampling: &reporter.Sampling{Start: reporter.Time{Time: at(start)}}}
		}
		return r
	}
	same := newRunIdentity(report("r", 1, "0", "1"), Destination{}, "").invocation
	if got := newRunIdentity(report("r", 1, "1", "0"), Destination{Invocation: "not 'plain'"},
		"").invocation; got != same || !isFilterSafe(got) {
		t.Errorf("invocations %q and %q, want the same one, safe for a filter", got, same)
	}
	for name, other := range map[string]*reporter.Report{"id": report("s", 1, "0", "1"),
		"start": report("r", 2, "0", "1"), "nodes": report("r", 1, "0")} {
		if newRunIdentity(other, Destination{}, "").invocation == same {
			t.Errorf("another %s gives the same invocation %q, want another one", name, same)
		}
	}
	if got := newRunIdentity(report("r", 1, "0"), Destination{Invocation: "abc"}, "").invocation; got != "abc" {
		t.Errorf("invocation %q, want abc as given", got)
	}
}

// Values that a filter cannot contain are not searched for.
func TestIsFilterSafe(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"": false, "a.B_9-": true, "it's": false, "a b": false, "é": false, "%": false, "`": false, "\x00": false,
	} {
		if isFilterSafe(value) != want {
			t.Errorf("isFilterSafe(%q) = %v, want %v", value, !want, want)
		}
	}
}
