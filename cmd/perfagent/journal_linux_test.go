package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// kills is the number of perfagents that a test kills. atOnce is how many of them run at the same time.
const kills, atOnce = 30, 10

// If perfagent is killed in the middle of the job, the job continues, and the journal is readable up to the last
// sample.
func TestJournal_KillInMidJobLosesOnlyTheLastSample(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for i := range kills {
		turn <- struct{}{}
		cmd := clitest.Perfagent(t, "run", "--interval", "20ms", "--", "sh", "-c",
			`trap 'echo signal' HUP INT TERM PIPE CONT; echo ready; read x; echo "done $x" >marker`)
		in, goOn := clitest.Pipe(t)
		cmd.Stdin = in
		l := clitest.StartProcess(t, cmd)
		wg.Go(func() {
			defer func() { <-turn }()
			killInMidJob(l, goOn, i)
		})
	}
	wg.Wait()
}

// killInMidJob kills a perfagent at a random moment when its journal covers the time so far, which takes longer on a
// busy disk. It runs in a goroutine, so it must not call t.Fatal.
func killInMidJob(l *clitest.Process, goOn *os.File, i int) {
	fail := func(format string, args ...any) { l.T.Errorf("kill %d: %s", i, fmt.Sprintf(format, args...)) }
	if line := <-l.Lines; line != "ready" {
		fail("first line of the job = %q, want \"ready\"", line)
		return
	}
	lived := time.Duration(rand.Int64N(int64(800 * time.Millisecond)))
	time.Sleep(lived)       // until a random moment
	var wrote time.Duration // time that the journal covers before the kill
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if found, _ := filepath.Glob(filepath.Join(l.Cmd.Dir, "perfagent-out/*/node-0.jsonl")); len(found) == 1 {
			if r, err := reportfile.Read(found[0], 0); err == nil {
				wrote = time.Duration(r.Run.WallSeconds * float64(time.Second))
			}
		}
		if wrote >= lived-500*time.Millisecond {
			break
		}
		if time.Since(begin) > clitest.Longest {
			fail("the journal covers %v, want %v or more", wrote, lived)
			break
		}
	}
	_ = unix.Kill(l.Cmd.Process.Pid, unix.SIGKILL)
	if _, err := goOn.WriteString("well\n"); err != nil {
		fail("%v", err)
	}
	for line := range l.Lines { // until the job has ended
		fail("the job printed %q, want nothing after the kill", line)
	}
	_ = l.Cmd.Wait()
	if text, _ := os.ReadFile(filepath.Join(l.Cmd.Dir, "marker")); string(text) != "done well\n" {
		fail("marker of the job = %q, want \"done well\\n\"", text)
	}
	seen, text := shown(l.T, l.Cmd.Dir)
	if seen < wrote-time.Millisecond { // allow for rounding
		fail("the journal covered %v before the kill, but covers only %v after it: %s", wrote, seen, text)
	}
}

var knownUpTo = regexp.MustCompile(`known up to (\S+) after the start`)

// shown returns the length of the newest recording according to show --json, and the stderr of show.
func shown(t testing.TB, dir string) (time.Duration, string) {
	t.Helper()
	o := wantCall(t, 0, "show", "--json", "--out", filepath.Join(dir, "perfagent-out"))
	var nodes map[string]map[string]float64
	if err := json.Unmarshal([]byte(o.Out), &nodes); err != nil || nodes["0"] == nil {
		t.Errorf("show --json of the journal: error %v, want node 0: %s", err, o.Out)
	}
	m := knownUpTo.FindStringSubmatch(o.Err)
	if m == nil {
		t.Errorf("stderr of show lacks \"known up to\": %q", o.Err)
		return 0, o.Err
	}
	seen, err := time.ParseDuration(m[1])
	if err != nil {
		t.Error(err)
	}
	return seen, o.Err
}

// A perfagent that is killed while it writes the report leaves the complete report, the journal, or both.
func TestJournal_KillAtTheEndLeavesReportOrJournal(t *testing.T) {
	t.Parallel()
	for i := range kills {
		cmd := clitest.Perfagent(t, "run", "--interval", "10ms", "--run-id", "r", "--", "sh", "-c", "echo ready; read x")
		r, w := clitest.Pipe(t)
		cmd.Stdin = r
		l := clitest.StartProcess(t, cmd)
		l.Expect("ready")
		w.Close()
		time.Sleep(time.Duration(rand.Int64N(int64(8 * time.Millisecond)))) // until a random moment
		_ = unix.Kill(cmd.Process.Pid, unix.SIGKILL)
		clitest.Wait(t, cmd)
		reports, _ := filepath.Glob(filepath.Join(cmd.Dir, "perfagent-out/r/*.json"))
		journals, _ := filepath.Glob(filepath.Join(cmd.Dir, "perfagent-out/r/*.jsonl"))
		for _, path := range reports {
			reportertest.ReadFile(t, path)
		}
		for _, path := range journals {
			call("show", path).Want(t, 0)
		}
		if len(reports)+len(journals) == 0 {
			t.Errorf("kill %d left neither journal nor report", i)
		}
	}
}

// journalOf returns a journal with at least n samples, as left by a crash.
func journalOf(t *testing.T, n int) string {
	t.Helper()
	cmd := clitest.Perfagent(t, "run", "--interval", "10ms", "--run-id", "r", "--", "sh", "-c", "echo ready; exec sleep 600")
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	path := untilLines(t, filepath.Join(cmd.Dir, "perfagent-out/r/node-0.jsonl"), n)
	l.Signal(unix.SIGKILL)
	check.Must(t, unix.Kill(-cmd.Process.Pid, unix.SIGKILL)) // the job
	clitest.Wait(t, cmd)
	text := clitest.Read(t, path)
	if strings.Contains(text, "\n{\"snapshot\":") {
		t.Log("trying again: perfagent replaced the journal, because the disk was slow")
		return journalOf(t, n)
	}
	return text
}

// samplesShown returns the number of samples in a journal. It fails the test if show or merge cannot read the journal.
func samplesShown(t *testing.T, path string) int64 {
	t.Helper()
	o := wantCall(t, 0, "show", path)
	clitest.WantPrintable(t, o.Out)
	if !strings.Contains(o.Out, "Still running or lost") {
		t.Errorf("show lacks \"Still running or lost\": %q", o.Out)
	}
	merged := filepath.Join(t.TempDir(), "merged.json")
	call("merge", path, "--to", merged).Want(t, 0)
	r := reportertest.ReadFile(t, merged)
	if r.Run.Incomplete == "" {
		t.Error("the merged report is complete, want the reason why it is incomplete")
	}
	return r.Nodes["0"].Sampling.Samples
}

// If a journal is cut off anywhere, the samples before the cut are readable. Without samples, it gives a valid report
// without values.
func TestJournal_CutOffAnywhere_KeepsSamplesBeforeCut(t *testing.T) {
	t.Parallel()
	text := journalOf(t, 5)
	all, head := int64(strings.Count(text, "\n")-1), strings.Index(text, "\n")+1
	path := filepath.Join(t.TempDir(), "node-0.jsonl")
	cuts := []int{head - 1, head, head + 10}
	for cut := head + 11; cut < len(text); cut += 1 + (len(text)-head)/60 {
		cuts = append(cuts, cut)
	}
	for _, cut := range cuts {
		clitest.Write(t, path, text[:cut], 0o644)
		want := int64(strings.Count(text[:cut+1], "\n") - 1) // a sample that lacks only its newline is counted
		if got := samplesShown(t, path); got != want {
			t.Errorf("journal cut off at byte %d: %d samples, want %d", cut, got, want)
		}
	}
	for _, tail := range []string{"\x00\x00\x00\x00", "{\"sample\":[", "null\n", "[]\n", "{}\n", "\xff\xfe\n", "{\"snapshot\":{}}\n", strings.Repeat("\x00", 4096) + "\n"} {
		clitest.Write(t, path, text+tail, 0o644)
		if got := samplesShown(t, path); got != all {
			t.Errorf("journal with %q at its end: %d samples, want %d", tail[:4], got, all)
		}
	}
}

// A damaged byte loses only its line, or two lines if it is a newline.
func TestJournal_DamagedByteLosesOnlyItsLine(t *testing.T) {
	t.Parallel()
	text := journalOf(t, 8)
	head := strings.Index(text, "\n") + 1
	all := int64(strings.Count(text, "\n") - 1)
	path := filepath.Join(t.TempDir(), "node-0.jsonl")
	source := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		damaged := []byte(text)
		at := head + source.IntN(len(text)-head)
		damaged[at] ^= byte(1 + source.IntN(255))
		clitest.Write(t, path, string(damaged), 0o644)
		if got := samplesShown(t, path); got < all-2 || got > all {
			t.Errorf("byte %d is %q instead of %q: %d samples shown, want %d to %d",
				at, damaged[at], text[at], got, all-2, all)
		}
	}
	// show refuses a journal without a valid first line, and names the file in one line.
	for _, head := range []string{"", "x", "{}", `{"journal":"perfagent.journal/2"}`, `{"journal":"x"}`, "null"} {
		clitest.Write(t, path, head+text[strings.Index(text, "\n"):], 0o644)
		wantError(t, call("show", path), 1, path)
	}
}
