package journal

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// followed returns a Follower of a new, empty file in the test's directory.
func followed(t testing.TB) (f *Follower, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "node-3.jsonl")
	followAppend(t, path, nil)
	f = Follow(path)
	t.Cleanup(f.Close)
	return f, path
}

func followAppend(t testing.TB, path string, data []byte) {
	t.Helper()
	out := check.Value(os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644))(t)
	defer out.Close()
	if _, err := out.Write(data); err != nil {
		t.Fatal(err)
	}
}

// followLook polls, and ends the test on an error.
func followLook(t testing.TB, f *Follower) (changed bool) {
	t.Helper()
	return check.Value(f.Poll())(t)
}

// followText returns a report as text, or "" for nil.
func followText(t testing.TB, r *reporter.Report) string {
	t.Helper()
	if r == nil {
		return ""
	}
	return string(check.Value(reporter.Encode(r))(t))
}

// Wherever a write is interrupted, a Follower first reports the complete lines, and after the rest is written the whole
// file.
func TestFollower_ReadsSameAsParse(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU")
	t.Parallel()
	for n, snapshot := range map[int]bool{2: false, 3: true} {
		data, _ := journalOf(t, n, snapshot)
		want := followText(t, parsed(t, data))
		before, path := "", filepath.Join(t.TempDir(), "node-3.jsonl")
		for cut := 0; cut <= len(data); cut++ {
			if cut > 0 && data[cut-1] == '\n' {
				before = followText(t, parsed(t, data[:cut]))
			}
			every := map[bool]int{false: testenv.Rounds(11, 31), true: testenv.Rounds(47, 149)}[snapshot]
			if cut%every > 0 && !bytes.Contains(data[max(0, cut-3):min(len(data), cut+3)], []byte("\n")) {
				continue // skip most bytes of a long line
			}
			check.Must(t, os.WriteFile(path, data[:cut], 0o644))
			f := Follow(path)
			followLook(t, f)
			if d := cmp.Diff(before, followText(t, f.Report())); d != "" {
				t.Fatalf("snapshot %v: first %d of %d bytes (-complete lines +followed):\n%s", snapshot, cut, len(data), d)
			}
			if followLook(t, f) {
				t.Fatalf("cut at %d: Poll reports a change although nothing was written", cut)
			}
			followAppend(t, path, data[cut:])
			followLook(t, f)
			if d := cmp.Diff(want, followText(t, f.Report())); d != "" {
				t.Fatalf("snapshot %v: after a cut at %d of %d (-whole +followed):\n%s", snapshot, cut, len(data), d)
			}
			f.Close()
		}
	}
}

// A Follower follows a real journal through its rewrites, and its report always equals Parse's.
func TestFollower_FollowsRewrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, followRewrites)
}

// followRewrites runs in a synctest bubble.
func followRewrites(t *testing.T) {
	s := reportertest.NewStream(4)
	rec := s.Recording(40)
	h, spent := head(s, 40), 0.0
	h.AgentCPUSeconds = func() float64 { return spent }
	j := createFor(t, h)
	f := Follow(j.Path())
	defer f.Close()
	files := 0
	for i := range 3000 {
		spent = float64(i+1) / 1000
		sample := s.Next(rec)
		if i%7 == 3 { // a window too short to be measured
			sample.Values[collector.CPUAvg] = math.NaN()
		}
		replaced := j.wantSnapshot.Load()
		j.Observe(sample, rec)
		if replaced {
			files++
		}
		if i%59 != 0 && !replaced {
			continue
		}
		synctest.Wait() // otherwise the queue overflows
		if i%testenv.Rounds(59, 413) != 0 && !replaced {
			continue
		}
		synctest.Wait()
		wantSamples(t, f, int64(i+1))
		if d := cmp.Diff(followText(t, read(t, j.Path())), followText(t, f.Report())); d != "" {
			t.Fatalf("report after %d samples (-read +followed):\n%s", i+1, d)
		}
		if got := f.Report().Nodes["3"].Agent.CPUSeconds; got != spent {
			t.Fatalf("after %d samples: the agent's own cost is %v s, want %v", i+1, got, spent)
		}
		if i%7 != 3 {
			same(t, "values of the newest sample", f.Newest(), sample.Values[:], cmpopts.EquateNaNs())
		}
	}
	synctest.Wait()
	wantSamples(t, f, 3000)
	stopped(t, j)
	if files < 3 {
		t.Errorf("the journal was rewritten %d times, want at least 3", files)
	}
	check.Must(t, j.Remove())
	if _, err := f.Poll(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Poll of a removed journal: error %v, want fs.ErrNotExist", err)
	}
	if f.Report() == nil || f.Report().Nodes["3"].Sampling.Samples != 3000 {
		t.Error("the report with 3000 samples was lost when the journal was removed")
	}
}

// wantSamples polls, and expects the given number of samples.
func wantSamples(t testing.TB, f *Follower, samples int64) {
	t.Helper()
	followLook(t, f)
	if r := f.Report(); r == nil || r.Nodes["3"].Sampling.Samples != samples {
		t.Fatalf("report %+[2]v, want %[1]d samples", samples, r)
	}
}

func TestFollower_ReadsDamagedJournalAsParseDoes(t *testing.T) {
	data, _ := journalOf(t, 6, false)
	lines := bytes.SplitAfter(data, []byte("\n"))
	torn := bytes.Join([][]byte{lines[0], lines[1], lines[2][:40], []byte("\n"), lines[3]}, nil)
	f, path := followed(t)
	followAppend(t, path, torn)
	followLook(t, f)
	same(t, "report after a torn line", followText(t, f.Report()), followText(t, parsed(t, torn)))

	// After another program truncates the file, the remaining lines and later lines are read.
	check.Must(t, os.Truncate(path, int64(len(lines[0])+len(lines[1]))))
	wantSamples(t, f, 1)
	followAppend(t, path, lines[2])
	wantSamples(t, f, 2)

	// A file that is not a journal does not affect the data read before.
	for name, damage := range map[string]func(path string) error{
		"directory":     func(p string) error { return os.Mkdir(p, 0o755) },
		"no head":       func(p string) error { return os.WriteFile(p, []byte("{\n"), 0o644) },
		"report":        func(p string) error { return os.WriteFile(p, []byte("{\"schema\":\"perfagent.report/1\"}\n"), 0o644) },
		"later version": func(p string) error { return os.WriteFile(p, []byte("{\"journal\":\"perfagent.journal/2\"}\n"), 0o644) },
		"too large": func(p string) error {
			return errors.Join(os.WriteFile(p, nil, 0o644), os.Truncate(p, reporter.MaxFileSize+1))
		},
		"missing file": func(string) error { return nil },
	} {
		check.Must(t, errors.Join(os.Remove(path), damage(path)))
		_, err := f.Poll()
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one with the path", name, err)
		}
		if f.Report() == nil || f.Report().Nodes["3"].Sampling.Samples != 2 {
			t.Errorf("%s: the report with the 2 samples read before was lost", name)
		}
		_ = os.Remove(path)
		check.Must(t, os.WriteFile(path, bytes.Join(lines[:3], nil), 0o644))
		followLook(t, f)
	}
}

// A Follower reads any journal that appears at its path, including replacements.
func TestFollower_ReadsJournalThatAppearsLater(t *testing.T) {
	f, path := followed(t)
	if followLook(t, f) || f.Report() != nil || f.Newest() != nil {
		t.Error("empty file: Poll reports a change, or there is a report or a value, want none")
	}
	data, _ := journalOf(t, 6, false)
	followAppend(t, path, data[:bytes.IndexByte(data, '\n')+1])
	if !followLook(t, f) || f.Report() == nil || f.Newest() != nil {
		t.Error("only a head: want a change, a report, and no values")
	}
	if got := f.Report(); got.Run.ID != "r" || got.Nodes["3"] == nil {
		t.Errorf("only a head: run %+v, want ID r with node 3", got.Run)
	}
	if _, err := Follow(filepath.Join(t.TempDir(), "x")).Poll(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: error %v, want fs.ErrNotExist", err)
	}
}

// Values missing only in the newest sample stay valid, but values that are no longer measured do not.
func TestFollower_NewestDropsOldValues(t *testing.T) {
	s := reportertest.NewStream(2)
	rec := s.Recording(10)
	j := &Journal{}
	f, path := followed(t)
	followAppend(t, path, headLine(t, 10))
	was := math.NaN()
	for i, want := range []bool{true, true, true, false, false} {
		sample := s.Next(rec)
		if i == 2 { // the job ended just after the previous sample
			rec.End.Mono -= 900 * time.Millisecond
		}
		if i >= 2 {
			sample.Values[collector.MemPercent] = math.NaN()
		} else {
			was = sample.Values[collector.MemPercent]
		}
		followAppend(t, path, j.line(sample, rec))
		followLook(t, f)
		if got := f.Newest()[collector.MemPercent]; want && got != was || !want && !math.IsNaN(got) {
			t.Errorf("sample %d: memory %v, want %v (valid: %v)", i, got, was, want)
		}
	}
}

// The agent's CPU time makes a line longer by only one number.
func TestJournal_AgentCPUTimeCostsOneNumberPerLine(t *testing.T) {
	s := reportertest.NewStream(2)
	rec := s.Recording(10)
	sample := s.Next(rec)
	plain, told := &Journal{}, &Journal{agentCPUSeconds: func() float64 { return 123.4567891 }}
	before, after := plain.line(sample, rec), told.line(sample, rec)
	if n := len(after) - len(before); n != len(`,"agent_cpu_s":123.456789`) {
		t.Errorf("the CPU time takes %d bytes, want %d:\n%s", n, len(`,"agent_cpu_s":123.456789`), after)
	}
	a := testing.AllocsPerRun(100, func() { plain.line(sample, rec) })
	b := testing.AllocsPerRun(100, func() { told.line(sample, rec) })
	if a != b {
		t.Errorf("%v allocations per line, and %v with the CPU time, want the same", a, b)
	}
}

// BenchmarkFollower measures a poll for one sample of a journal at its size limit, and
// after the agent has rewritten it.
func BenchmarkFollower(b *testing.B) {
	s := reportertest.NewStream(7)
	rec := s.Recording(1000)
	j := createFor(b, head(s, 1000))
	for i := range 7990 {
		j.Observe(s.Next(rec), rec)
		if i%32 == 0 || j.wantSnapshot.Load() {
			drain(j)
		}
	}
	data := stopped(b, j)
	b.Run("sample", func(b *testing.B) {
		f, path := followed(b)
		followAppend(b, path, data)
		followLook(b, f)
		for b.Loop() {
			b.StopTimer()
			followAppend(b, path, (&Journal{}).line(s.Next(rec), rec))
			b.StartTimer()
			followLook(b, f)
			_ = f.Report()
		}
	})
	b.Run("rewritten", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			f := Follow(j.Path())
			followLook(b, f)
			_ = f.Report()
			f.Close()
		}
	})
}
