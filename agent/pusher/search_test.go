package pusher

import (
	"slices"
	"testing"
	"time"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// at returns the time that many seconds after a fixed start.
func at(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0) }

// own returns a run that perfagent created. theirs returns a run that a job created.
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
		"no runs":                        {nil, "", ""},
		"the job's run":                  {[]mlflow.Run{theirs("a", 5)}, "a", ""},
		"the job's earliest run":         {[]mlflow.Run{theirs("a", 9), theirs("b", 5), theirs("c", 7)}, "b", ""},
		"our run before the job's":       {[]mlflow.Run{theirs("a", 5), own("z", 9)}, "z", "a"},
		"already linked":                 {[]mlflow.Run{theirs("a", 5), own("z", 9, tagJobRun, "a")}, "z", ""},
		"our earliest run":               {[]mlflow.Run{own("y", 8), own("z", 6)}, "z", ""},
		"created twice at the same time": {[]mlflow.Run{own("z", 6), own("y", 6)}, "y", ""},
		"nested, child first":            {[]mlflow.Run{theirs("a", 5, "mlflow.parentRunId", "b"), theirs("b", 5)}, "b", ""},
		"nested, parent first":           {[]mlflow.Run{theirs("b", 5), theirs("a", 5, "mlflow.parentRunId", "b")}, "b", ""},
		"link to the outermost": {[]mlflow.Run{own("z", 1), theirs("a", 5, "mlflow.parentRunId", "b"),
			theirs("b", 5)}, "z", "b"},
		"tag of another program": {[]mlflow.Run{theirs("a", 5, tagCreatedBy, "me")}, "a", ""},
		"run without a start":    {[]mlflow.Run{{ID: "a", Tags: map[string]string{}}, theirs("b", 5)}, "a", ""},
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

// A run ID may be used twice, and by several nodes.
func TestRunIdentity_FitsOnlyItsOwnRuns(t *testing.T) {
	t.Parallel()
	id := runIdentity{runID: "r", start: at(100), end: at(200), nodes: []string{"1"},
		recordings: map[string]string{"1": "same"}}
	ended := func(r mlflow.Run, end int) mlflow.Run { r.EndTime = at(end); return r }
	for name, c := range map[string]struct {
		run  mlflow.Run
		want bool
	}{
		"created by another node's job":                {theirs("a", 101), true},
		"created by a job in the same second":          {theirs("a", 100), true},
		"created by a job in an earlier use of the ID": {theirs("a", 99), false},
		"ours, of another node":                        {own("a", 99, tagRecording("0"), "h"), true},
		"ours, with our node":                          {own("a", 99, tagRecording("1"), "h"), false},
		"ours, with our recording":                     {own("a", 99, tagRecording("1"), "same"), true},
		"ours, with a node that has a longer name":     {own("a", 99, tagRecording("10"), "h"), true},
		"ours, started after our end":                  {own("a", 201), false},
		"ours, ended before our start":                 {ended(own("a", 50), 99), false},
		"ours, ended during our run":                   {ended(own("a", 50), 150), true},
		"ours, started at our end":                     {own("a", 200), true},
		"ours, still running":                          {own("a", 120), true},
		"created by a job after our end":               {theirs("a", 201), false},
		"created by a job, with our node":              {theirs("a", 101, tagRecording("1"), "h"), false},
		"created by a job on our node":                 {theirs("a", 101, TagInvocation, "abc.1"), false},
		"created by a job on another node":             {theirs("a", 101, TagInvocation, "abc.0"), true},
		"ours, created live for our node":              {own("a", 99, TagInvocation, "abc.1"), false},
		"ours, created live for another node":          {own("a", 99, TagInvocation, "abc.11"), true},
	} {
		if got := id.fits(c.run); got != c.want {
			t.Errorf("fits(%s) = %v, want %v", name, got, c.want)
		}
	}
	id.perfpy = true
	if !id.fits(own("a", 5, tagRecording("1"), "same")) || id.fits(own("a", 150)) {
		t.Error("fits for perf.py's file: want true for a run with its recording, and false for a run with only its run ID")
	}
	id = runIdentity{start: at(100).Add(999 * time.Microsecond), end: at(200)} // MLflow stores milliseconds
	if !id.fits(theirs("a", 100)) {
		t.Error("fits of a run of the same millisecond = false, want true")
	}
}

// The same recording always has the same identity, and another recording has a different identity.
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
			t.Errorf("a report with a different %s has the same invocation %q, want a different one", name, same)
		}
	}
	if got := newRunIdentity(report("r", 1, "0"), Destination{Invocation: "abc"}, "").invocation; got != "abc" {
		t.Errorf("invocation %q, want abc as given", got)
	}
}

// Values that a filter cannot contain are not used in searches.
func TestIsFilterSafe_RejectsSpecialCharacters(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"": false, "a.B_9-": true, "it's": false, "a b": false, "é": false, "%": false, "`": false, "\x00": false,
	} {
		if isFilterSafe(value) != want {
			t.Errorf("isFilterSafe(%q) = %v, want %v", value, !want, want)
		}
	}
}
