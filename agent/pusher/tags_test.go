package pusher

import (
	"bytes"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// readBack returns the words of line, a command, as a shell parses them.
func readBack(t testing.TB, line string) []string {
	t.Helper()
	shell := testenv.NeedsTool(t, "/bin/sh", "install a POSIX shell")
	out, err := exec.Command(shell, "-c", `printf '%s\0' `+line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// words returns words that need quoting in a shell.
func words() []string {
	out := []string{"", " ", "'", `"`, `\`, "a b", "it's", "''", `'"'`, "$HOME", "`date`", "$(date)", "*", "?",
		"[a]", "~", "~root", "a=b", "-n", "--", "!", "!!",
		"#x", "x#", "\n", "a\nb\n", "\t", "a;b", "a&b", "a|b", "<", ">", "(", ")", "{a,b}", "%s", "\\0", "é", "日本",
		"\x01", "\x7f", "\xff\xfe", "\u2028", "^", "a'b'c", "\r\n"}
	for c := 1; c < 256; c++ {
		out = append(out, string([]byte{byte(c)}))
	}
	return out
}

func TestShellCommand_IsReadBackByAShell(t *testing.T) {
	t.Parallel()
	if all := words(); !slices.Equal(readBack(t, ShellCommand(all)), all) {
		t.Errorf("ShellCommand of %q is read back as %q", all, readBack(t, ShellCommand(all)))
	}
	check := func(raw [][]byte) bool {
		all := []string{"first"}
		for _, w := range raw {
			all = append(all, string(bytes.ReplaceAll(w, []byte{0}, []byte("'"))))
		}
		return slices.Equal(readBack(t, ShellCommand(all)), all)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: trials(200)}); err != nil {
		t.Errorf("ShellCommand of random words: %v", err)
	}
}

func FuzzCommandLine(f *testing.F) {
	for _, w := range words() {
		f.Add(w, "x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.Contains(a+b, "\x00") { // an argument cannot contain NUL
			return
		}
		if got := readBack(t, ShellCommand([]string{a, b})); !slices.Equal(got, []string{a, b}) {
			t.Errorf("ShellCommand of %q, %q is read back as %q", a, b, got)
		}
	})
}

func TestClip_CutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	check := func(raw []byte, n uint8) bool {
		s, most := string(raw), int(n)+3
		got, valid := clip(s, most), strings.ToValidUTF8(s, "\uFFFD")
		if len(valid) <= most {
			return got == valid
		}
		head, cut := strings.CutSuffix(got, "…")
		return cut && len(got) <= most && len(got) > most-utf8.UTFMax && utf8.ValidString(got) &&
			strings.HasPrefix(valid, head)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
		t.Errorf("clip of random texts: %v", err)
	}
	for n := 3; n < 40; n++ {
		for _, s := range []string{strings.Repeat("é", 30), strings.Repeat("日", 30), strings.Repeat("😀", 30),
			"a" + strings.Repeat("😀", 30)} {
			if !check([]byte(s), uint8(n-3)) {
				t.Errorf("clip(%q, %d) = %q, want valid UTF-8, not longer, with the same beginning", s, n, clip(s, n))
			}
		}
	}
}

// tagged returns a report with the given tags.
func tagged(all map[string]string) *reporter.Report {
	code := 3
	return &reporter.Report{Run: reporter.Run{ID: "r", Command: []string{"/bin/sh", "-c", "it's"}, ExitCode: &code,
		Tags: all}, Nodes: map[string]*reporter.Node{
		"0":  {Host: &reporter.Host{Hostname: "a"}, Agent: &reporter.Agent{Version: "v"}},
		"10": {Host: &reporter.Host{Hostname: "b"}}, "2": {}}}
}

func TestTags_LeavesOutInvalidTags(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("日", 4000)
	got, notes := tags(tagged(map[string]string{"branch": "main", "long": long, "a:b": "1", "": "2", "../x": "3",
		"a//b": "4", strings.Repeat("k", 251): "5", "odd": "\xff", "perfagent.run_id": "forged"}), 2)
	for key, value := range got {
		if err := mlflow.CheckKey(key); err != nil || len(value) > 5000 || !utf8.ValidString(value) {
			t.Errorf("tag %q of %d bytes: %v; want a valid key, and at most 5000 bytes of UTF-8", key, len(value), err)
		}
	}
	for key, value := range map[string]string{"branch": "main", "odd": "\uFFFD", "perfagent.run_id": "r",
		"perfagent.command": `/bin/sh -c 'it'\''s'`, "perfagent.exit_code": "3",
		"perfagent.version": "v", "perfagent.node.0.host": "a", "perfagent.node.10.host": "b",
		"perfagent.dropped_values": "2",
		"mlflow.note.content":      "Failed (exit 3). Read its own output: it exited by itself."} {
		if got[key] != value {
			t.Errorf("tag %s is %q, want %q", key, got[key], value)
		}
	}
	if v := got["long"]; !strings.HasSuffix(v, "…") || len(v) < 4990 ||
		!strings.HasPrefix(long, strings.TrimSuffix(v, "…")) {
		t.Errorf("the long tag has %d bytes: …%q, want at least 4990 and an ellipsis at the end", len(v), v[len(v)-9:])
	}
	if len(notes) != 6 || len(got) != 11 {
		t.Errorf("%d tags: %v; %d notes: %q; want 11, 6", len(got), got, len(notes), notes)
	}
}

// Values that a server would store as a different value are left out and counted.
func TestMetrics_DropsValuesThatAreNotFinite(t *testing.T) {
	t.Parallel()
	r := &reporter.Report{Nodes: map[string]*reporter.Node{"7": {Metrics: reporter.Values{"a": 1, "b": math.NaN(),
		"c": math.Inf(1), "d": math.Inf(-1), "../e": 2, "f/g": -0.5}}}}
	r.Run.End = reporter.Time{Time: time.UnixMilli(1234)}
	got, dropped := metrics(r)
	if dropped != 4 || len(got) != 2 || got[0] != (mlflow.Metric{Key: "a", Value: 1, Timestamp: 1234, Step: 7}) ||
		got[1].Key != "f/g" {
		t.Errorf("%d values dropped, %+v kept; want 4, a at step 7 and f/g", dropped, got)
	}
}

// The status of a run that perfagent created is the outcome of the job.
func TestStatusOf_IsTheOutcomeOfTheJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code       int
		signal     string
		incomplete string
		want       mlflow.Status
	}{
		{want: mlflow.Finished},
		{code: 1, want: mlflow.Failed},
		{code: 137, signal: "SIGKILL", want: mlflow.Killed},
		{incomplete: "cut off", want: mlflow.Killed},
	} {
		r := &reporter.Report{Run: reporter.Run{ExitCode: &c.code, Signal: c.signal, Incomplete: c.incomplete}}
		if got := statusOf(r); got != c.want {
			t.Errorf("statusOf of %+v = %s, want %s", c, got, c.want)
		}
	}
	if got := statusOf(&reporter.Report{}); got != mlflow.Finished { // as for a sidecar
		t.Errorf("statusOf of an empty report = %s, want %s", got, mlflow.Finished)
	}
}

func TestRunName_IsTheCommand(t *testing.T) {
	t.Parallel()
	for want, command := range map[string][]string{"train.sh --lr '0 1'": {"/home/me/train.sh", "--lr", "0 1"},
		"perfagent r": nil, "x " + strings.Repeat("y", maxRunName-5) + "…": {"x", strings.Repeat("y", 1000)}} {
		if got := runName(&reporter.Report{Run: reporter.Run{ID: "r", Command: command}}); got != want {
			t.Errorf("runName of %.200q = %q, want %q", strings.Join(command, " "), got, want)
		}
	}
}

// perfagent describes only runs that it created, and keeps the user's description. A node that succeeded does not hide
// another node that failed.
func TestAmend_DescribesOnlyOwnRuns(t *testing.T) {
	t.Parallel()
	const failed, succeeded = "Failed (exit 3) after 2.0 s. Read its own output: it exited by itself.", "Succeeded after 2.0 s."
	own := map[string]string{tagCreatedBy: createdBy}
	for name, c := range map[string]struct {
		run  map[string]string
		code int
		user string
		want string
	}{
		"own":                    {own, 0, "", succeeded},
		"the job's":              {nil, 0, "", ""},
		"the user's":             {nil, 0, "my words", "my words"},
		"failed after others":    {map[string]string{tagCreatedBy: createdBy, tagNote: succeeded}, 3, "", failed},
		"succeeded after others": {map[string]string{tagCreatedBy: createdBy, tagNote: failed}, 0, "", ""},
		"ended after others":     {map[string]string{tagCreatedBy: createdBy, tagNote: failed}, 143, "", ""},
	} {
		r := &reporter.Report{Run: reporter.Run{ID: "r", WallSeconds: 2, ExitCode: &c.code}}
		if c.user != "" {
			r.Run.Tags = map[string]string{tagNote: c.user}
		}
		if c.code == 143 {
			v := &reporter.Verdict{Cause: diagnosis.CauseSignal, Evidence: map[string]any{"sender": "slurmstepd"}}
			r.Nodes = map[string]*reporter.Node{"1": {Verdict: v, Job: &reporter.Job{ExitCode: &c.code}}}
		}
		all, _ := tags(r, 0)
		p := &Plan{Run: &mlflow.Run{Tags: c.run}, report: r}
		if p.amend(all); all[tagNote] != c.want {
			t.Errorf("%s: description %q, want %q", name, all[tagNote], c.want)
		}
	}
}

// A node keeps its invocation. A node without an invocation gets none.
func TestGroup_EachNodeKeepsItsInvocation(t *testing.T) {
	t.Parallel()
	of := func(invocation string) *reporter.Node {
		return &reporter.Node{Push: &reporter.Push{MLflow: reporter.PushState{Invocation: invocation}}}
	}
	g := Group{report: &reporter.Report{}, state: reporter.PushState{Invocation: "a.0"}}
	g.report.Nodes = map[string]*reporter.Node{"0": of("a.0"), "1": of(""), "2": {}, "3": of("d.3")}
	want := map[string]string{"0": "a.0", "1": "", "2": "", "3": "d.3"}
	for range 20 { // the order of the map varies
		for node, state := range g.each(reporter.PushState{State: reporter.PushDone}) {
			if state.Invocation != want[node] {
				t.Errorf("node %s has the invocation %q, want %q", node, state.Invocation, want[node])
			}
		}
	}
}
