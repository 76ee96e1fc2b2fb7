package main

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// The error for an ended run of several nodes has the command that shows all nodes.
func TestWatch_NamesShowCommandForEndedRunOfSeveralNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, node := range []string{"0", "1"} {
		mustRun(t, 0, "run", "-q", "--run-id", "two", "--node", node, "--out", filepath.Join(dir, "perfagent-out"), "--", "true")
	}
	o := mustExit(t, 1, watchCommand(t, dir, nil, "two"))
	if want := "perfagent watch: run \"two\" has ended: perfagent show perfagent-out/two\n"; o.Err != want {
		t.Errorf("stderr %q, want %q", o.Err, want)
	}
}

// A run that cannot be watched is reported in one line with its name, and the exit code is 1.
func TestWatch_RefusesRunThatCannotBeWatched(t *testing.T) {
	t.Parallel()
	ended := watched(t, "", "--run-id", "ended", "--node", "3", "--interval", "50ms")
	ended.ends(0)
	dir := ended.Cmd.Dir
	out := filepath.Join(dir, "perfagent-out")
	for _, name := range []string{"empty", "folder/node-0.jsonl", "junk", "../unread/folder/node-0.jsonl"} {
		check.Must(t, os.MkdirAll(filepath.Join(out, name), 0o755))
	}
	clitest.Write(t, filepath.Join(out, "junk", "node-0.jsonl"), "{\x1b[31m\n", 0o644)
	clitest.Write(t, filepath.Join(out, "file"), "", 0o644)
	check.Must(t, os.Chtimes(filepath.Join(out, "folder/node-0.jsonl"), time.Time{}, time.Now().Add(-time.Hour)))
	for _, c := range []struct {
		args, words []string
	}{
		{[]string{"no-such"}, []string{`no run or file "no-such"`, "the runs in perfagent-out are"}},
		{nil, []string{"no readable run is active under perfagent-out", "2 cannot be read", "perfagent-out/junk/node-0.jsonl", "the head is damaged"}},
		{[]string{"--out", "elsewhere"}, []string{"no run is active under elsewhere", "perfagent show"}},
		{[]string{"--out", "unread"}, []string{"no readable run is active under unread", "1 cannot be read", "unread/folder/node-0.jsonl: is not a file"}},
		{[]string{"ended"}, []string{`run "ended" has ended`, "perfagent show perfagent-out/ended/node-3.json"}},
		{[]string{"ended", "--node", "3"}, []string{`node 3 of run "ended" has ended`, "perfagent show perfagent-out/ended/node-3.json"}},
		{[]string{"ended", "--node", "4"}, []string{`no node 4 of run "ended"`, "there is node 3, which has ended"}},
		{[]string{"empty"}, []string{`no recording of run "empty"`}},
		{[]string{"file"}, []string{`no run or file "file"`, "ended"}},
		{[]string{"folder"}, []string{"folder/node-0.jsonl", "not a file"}},
		{[]string{"junk"}, []string{"junk/node-0.jsonl", "the head is damaged"}},
		{[]string{"../perfagent-out/gone"}, []string{`no run or file "../perfagent-out/gone"`}},
		{[]string{"perfagent-out/ended"}, []string{`run "ended" has ended`}},
		{[]string{"@-2"}, []string{`run "ended" has ended`}},
		{[]string{"@-9"}, []string{"no run @-9"}},
		{[]string{"@x"}, []string{`"@x" is not @latest or @-K`}},
		{[]string{"/etc/hosts"}, []string{"not the journal of a run"}},
		{[]string{"\x1b[31mx"}, []string{"no run or file"}},
		{[]string{""}, []string{"name is empty"}},
		{[]string{"--node", "-1", "ended"}, []string{"--node", "-1"}},
		{[]string{"--refresh", "1ms", "ended"}, []string{"--refresh", "100ms"}},
		{[]string{"--out", "", "ended"}, []string{"--out", "empty"}},
		{[]string{"a", "b"}, []string{"one run, please"}},
	} {
		wantError(t, clitest.RunCommand(t, watchCommand(t, dir, nil, c.args...)), 1, c.words...)
	}
	wantError(t, clitest.RunCommand(t, watchCommand(t, dir, []string{"PERFAGENT_OUT=elsewhere"})), 1, "under elsewhere")
}

// A journal in the temporary directory is found with --out.
func TestWatch_FindsJournalInTemporaryDirectory(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	cmd := clitest.Perfagent(t, "run", "--out", "file/out", "--interval", "50ms", "--", "sh", "-c", "echo ready; read x")
	clitest.Write(t, filepath.Join(cmd.Dir, "file"), "", 0o644)
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	in, goOn := clitest.Pipe(t)
	cmd.Stdin = in
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	there, err := filepath.Glob(filepath.Join(tmp, "perfagent-*", "node-0.jsonl"))
	if err != nil || len(there) != 1 {
		t.Fatalf("journals in the temporary directory %q (%v), want one", there, err)
	}
	w := watchOn(t, cmd.Dir, nil, "--out", tmp, filepath.Base(filepath.Dir(there[0])))
	w.shows("running for", "CPU")
	goOn.Close()
	wantContains(t, w.leaves(0), "perfagent show "+filepath.Dir(there[0]))
	l.End()
}

// If the journal disappears, and no valid report replaces it, watch reports that.
func TestWatch_ReportsJournalThatDisappears(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		instead string
		words   []string
	}{
		"no report":     {"", []string{"no report in its place", "node-0.json"}},
		"half a report": {`{"schema":"perfagent.report/1","run":{`, []string{"no report in its place", "cut off"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := watched(t, "", "--run-id", "r", "--interval", "50ms")
			w := watchOn(t, run.Cmd.Dir, nil)
			plain := clitest.StartProcess(t, watchCommand(t, run.Cmd.Dir, nil))
			w.shows("running for")
			plain.Next()
			if c.instead != "" {
				clitest.Write(t, filepath.Join(run.Cmd.Dir, "perfagent-out/r/node-0.json"), c.instead, 0o644)
			}
			check.Must(t, os.Remove(filepath.Join(run.Cmd.Dir, "perfagent-out/r/node-0.jsonl")))
			wantContains(t, w.leaves(1), "ended without a report here", "no report in its place")
			mustEnd(plain, 1).WantLine(t, c.words...)
		})
	}
}

// watch reports a journal that becomes unreadable, and continues once the journal is readable again.
func TestWatch_ReportsUnreadableJournalAndRecovers(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--run-id", "r", "--interval", "50ms")
	w := watchOn(t, run.Cmd.Dir, nil, "--refresh", "100ms")
	w.shows("running for")
	journal := filepath.Join(run.Cmd.Dir, "perfagent-out/r/node-0.jsonl")
	replace := func(how func(tmp string) error) {
		t.Helper()
		tmp := filepath.Join(t.TempDir(), "x")
		check.Must(t, errors.Join(how(tmp), os.Rename(tmp, journal)))
	}
	check.Must(t, os.Link(journal, journal+".kept"))
	replace(func(tmp string) error { return os.WriteFile(tmp, []byte("\x1b[31m\n"), 0o644) })
	f := w.shows("cannot be read", "the head is damaged", "q quits")
	if f.row("CPU") == "" {
		t.Errorf("the view lacks the row CPU after the journal became unreadable:\n%s", f)
	}
	replace(func(tmp string) error { return unix.Mkfifo(tmp, 0o644) })
	w.shows("cannot be read", "not a file")
	replace(func(tmp string) error { return os.Link(journal+".kept", tmp) })
	w.shows("running for", "CPU")
	run.ends(0)
	w.leaves(0)
}

// watchJournal creates a journal below a directory, with this process as its writer.
func watchJournal(t testing.TB, dir, folder string, head journal.Head, machine host.Info) (*journal.Journal, *collector.Recording) {
	t.Helper()
	dir = filepath.Join(dir, "perfagent-out", folder)
	check.Must(t, os.MkdirAll(dir, 0o755))
	head.Run.Start = reporter.Time{Time: time.Now()}
	head.Interval, head.MaxLength = time.Second, 1000
	j, err := journal.Create(dir, head)
	check.Must(t, err)
	t.Cleanup(func() { _ = j.Remove() })
	rec := collector.NewRecording(host.Instant{Wall: time.Now(), Mono: time.Hour, Boot: time.Hour}, head.Interval, head.MaxLength)
	rec.Host = machine
	return j, rec
}

// watchSample adds a sample to a journal.
func watchSample(j *journal.Journal, rec *collector.Recording, n int) {
	var s collector.Sample
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.Mod(math.Sqrt(float64(n*(c+3))), 1)*100, 1+math.Mod(float64(n)/7, 1)/500
	}
	s.Values[collector.Timestamp] = float64(rec.Start.Wall.Unix() + int64(n))
	rec.Add(&s)
	rec.End.Mono += time.Second
	rec.End.Boot += time.Second
	j.Observe(&s, rec)
}

// Whatever a journal contains, the terminal gets only perfagent's control characters, and no line wider than the
// screen.
func TestWatch_EscapesHostileJournal(t *testing.T) {
	t.Parallel()
	evil := "\x1b]0;title\a\x1b[2J\x1b[31m\r\n\x9b5n\u202e日本語👩‍👩‍👧\xff"
	dir := t.TempDir()
	head := journal.Head{Run: reporter.Run{ID: evil, Command: []string{evil, strings.Repeat("日\x1b[31m", 300_000), "", "b c"},
		Tags: map[string]string{evil: evil}}, Agent: reporter.Agent{Version: evil}}
	j, rec := watchJournal(t, dir, "evil", head, host.Info{Hostname: strings.Repeat(evil, 99), CPUModel: evil, BootID: evil, CPUs: 1 << 40, MemoryMB: 1e300})
	defer func() { _ = j.Stop(clitest.Longest) }()
	for n := range 5 {
		watchSample(j, rec, n)
	}
	for _, env := range [][]string{nil, {"LC_ALL=C"}} {
		w := watchOn(t, dir, env, "--refresh", "200ms")
		f := w.shows("evil, ", "CPU", `]0;title\`)
		for _, size := range []struct{ width, height int }{{23, 9}, {200, 50}} {
			w.resize(size.width, size.height)
			w.next("a frame that fits", func(f watchFrame) bool { return f.wide == "" && len(f.lines) <= size.height })
			w.next("another frame", func(f watchFrame) bool { return f.wide == "" })
		}
		w.quit()
		if len(w.vt.wrong) > 0 {
			t.Errorf("the terminal got control sequences that are not perfagent's: %q", w.vt.wrong)
		}
		if f.row(`\x1b]0;title\a`) == "" && f.row(`\x1b]0;title\x07`) == "" {
			t.Errorf("no line of the command begins with the escaped title:\n%s", f)
		}
	}
	plain := clitest.StartProcess(t, watchCommand(t, dir, nil, "--refresh", "100ms", "evil"))
	clitest.WantPrintable(t, plain.Next())
	plain.Signal(unix.SIGKILL)
	plain.End()
}

// watchTail returns the last 4 KiB of a journal, which contain at least one sample.
func watchTail(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	check.Must(t, err)
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	check.Must(t, err)
	tail := make([]byte, min(end, 4<<10))
	if _, err := f.ReadAt(tail, end-int64(len(tail))); err != nil {
		t.Fatal(err)
	}
	return string(tail)
}
