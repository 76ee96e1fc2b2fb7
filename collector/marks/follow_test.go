package marks

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/check"
)

// must ends a test on an error.
var must = check.Must

func init() { pollTimeout, finishTimeout = time.Minute, time.Minute } // however slow the machine is

// write replaces the content of the file.
func write(t *testing.T, path, data string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(data), 0o644))
}

// add appends data to the file.
func add(t *testing.T, path, data string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = file.WriteString(data)
		file.Close()
	}
	must(t, err)
}

// texts returns the texts of the lines, with phases in brackets.
func texts(news Update) []string {
	var out []string
	for _, l := range news.Lines {
		if l.IsPhase {
			l.Text = "[" + l.Text + "]"
		}
		out = append(out, l.Text)
	}
	return out
}

func wantTexts(t *testing.T, news Update, want ...string) {
	t.Helper()
	if got := texts(news); !slices.Equal(got, want) || news.Why != "" {
		t.Errorf("got texts %q, reason %q; want %q and no reason", got, news.Why, want)
	}
}

// After an error, the next poll reads the file even if it is unchanged.
func TestFollower_RetriesAfterError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	add(t, path, "one\n")
	f := Follow(path)
	look := f.poll
	f.poll = func() Update {
		f.detector = newChangeDetector(path)
		return Update{Why: "too many open files"}
	}
	news := f.Poll()
	check.True(t, news.Why != "", "Poll returned no reason, want the error of the poll")

	f.poll = look
	wantTexts(t, f.Poll(), "one")
	wantTexts(t, f.Poll())
}

func TestFollower_ReadsAddedLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	wantTexts(t, f.Poll())

	add(t, path, "one\n{\"phase\":\"load\"}\ntw")
	wantTexts(t, f.Poll(), "one", "[load]")
	wantTexts(t, f.Poll())

	add(t, path, "o\n\nlast")
	wantTexts(t, f.Poll(), "two")
	wantTexts(t, f.Finish(), "last")
}

// If a change is not a plain append, the file is not read again.
func TestFollower_StopsIfChangeIsNotAppend(t *testing.T) {
	for _, test := range []struct {
		name, want string
		change     func(t *testing.T, path string)
	}{
		{"truncated", "has shrunk", func(t *testing.T, path string) { write(t, path, "x\n") }},
		{"rewritten with same length", "was rewritten", func(t *testing.T, path string) {
			write(t, path, "{\"phase\":\"next\"}\none\n") // same length as before
		}},
		{"rewritten and longer", "was rewritten", func(t *testing.T, path string) {
			write(t, path, "{\"phase\":\"the next one\"}\none\n")
		}},
		{"removed", "was removed", func(t *testing.T, path string) { remove(t, path) }},
		{"replaced", "has replaced it", func(t *testing.T, path string) {
			write(t, path+".new", "a longer text than before\nand another line\n")
			must(t, os.Rename(path+".new", path))
		}},
		{"directory", "not a regular file: d", func(t *testing.T, path string) {
			remove(t, path)
			must(t, os.Mkdir(path, 0o755))
		}},
		{"link", "not a regular file: L", func(t *testing.T, path string) {
			remove(t, path)
			write(t, path+".other", "another\n")
			must(t, os.Symlink(path+".other", path))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "node-0.marks")
			f := Follow(path)
			add(t, path, "{\"phase\":\"load\"}\none\n")
			wantTexts(t, f.Poll(), "[load]", "one")

			test.change(t, path)
			news := f.Poll()
			if got := texts(news); !slices.Equal(got, []string{"[]"}) || !strings.Contains(news.Why, test.want) {
				t.Errorf("got texts %q, reason %q; want the end of the phase and a reason with %q", got, news.Why, test.want)
			}

			os.RemoveAll(path)
			write(t, path, "{\"phase\":\"load\"}\none\nand more\n")
			if again := f.Finish(); len(again.Lines) > 0 || again.Why != news.Why {
				t.Errorf("Finish: got texts %q, reason %q; want no texts and the reason %q", texts(again), again.Why, news.Why)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	must(t, os.Remove(path))
}

func TestFollower_CountsDroppedLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, "mark %d\n{\"phase\":\"p%d\",\"ts\":%d}\n", i, i%3, i)
	}
	write(t, path, text.String())

	news := f.Finish()
	want := (Dropped{Marks: 500, PhaseSpans: 500})
	check.True(t, news.Dropped == want && len(news.Lines) == MaxMarks+MaxPhaseSpans+1,
		"dropped %+v, returned %d lines; want %+v, %d", news.Dropped, len(news.Lines), want, MaxMarks+MaxPhaseSpans+1)
	// The first phase beyond the limit ends the previous phase at its own beginning.
	if end := news.Lines[len(news.Lines)-1]; !end.IsPhase || end.Text != "" || end.At != 1000 {
		t.Errorf("last line = %+v, want the end of the phase (empty text) at 1000", end)
	}
}

func TestFollower_ReadsAtMostMaxFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, "{\"phase\":\"load\"}\n")
	wantTexts(t, f.Poll(), "[load]")

	line := strings.Repeat("x", 99) + "\n"
	add(t, path, strings.Repeat(line, 100_000))
	news := f.Poll()
	size, whole := 17+100_000*100, (MaxFile-17)/100
	want := (Dropped{Marks: int64(whole) - MaxMarks, Bytes: int64(size - 17 - whole*100)})
	check.True(t, news.Dropped == want, "dropped %+v, want %+v", news.Dropped, want)
	if end := news.Lines[len(news.Lines)-1]; !equal(end, Line{IsPhase: true, At: math.NaN()}) {
		t.Errorf("last line = %+v, want the end of the phase without a time, as later phases are unknown", end)
	}

	add(t, path, "more\n")
	if news = f.Finish(); len(news.Lines) != 0 || news.Dropped.Bytes != int64(size-17-whole*100+5) {
		t.Errorf("Finish: got texts %q, dropped %d bytes; want no texts, %d bytes", texts(news), news.Dropped.Bytes, size-17-whole*100+5)
	}
}

// Poll waits for a hanging file system only once, and a late result is not lost.
func TestFollower_KeepsLateResult(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	write(t, path, "one\n")
	answer, look := make(chan bool), f.poll
	f.poll = func() Update { <-answer; return look() }
	defer func() { pollTimeout = time.Minute }()
	pollTimeout = 200 * time.Millisecond

	for range 2 {
		news := f.Poll()
		check.True(t, len(news.Lines) == 0 && strings.Contains(news.Why, "no response within 200ms"),
			"file system hangs: got texts %q, reason %q; want no texts and \"no response within 200ms\"", texts(news), news.Why)
	}
	close(answer)
	for deadline := time.Now().Add(time.Minute); ; {
		news := f.Poll()
		if slices.Equal(texts(news), []string{"one"}) && news.Why == "" {
			break
		}
		if len(news.Lines) > 0 || time.Now().After(deadline) {
			t.Fatalf("got texts %q, reason %q; want \"one\" within a minute", texts(news), news.Why)
		}
	}
}

func TestAppend_WritesLinesForFollower(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node-0.marks")
	for _, l := range []Line{{Text: "one", At: 1}, {IsPhase: true, Text: "load", At: 2}} {
		must(t, Append(path, l))
	}
	wantTexts(t, Follow(path).Finish(), "one", "[load]")

	for _, bad := range []string{dir, filepath.Join(dir, "none", "node-0.marks")} {
		err := Append(bad, Line{Text: "one"})
		check.True(t, err != nil, "Append to %s returned nil, want an error", bad)
	}
}

// BenchmarkFollower_Look measures the cost per sample for a job without marks.
func BenchmarkFollower_Look(b *testing.B) {
	f := Follow(filepath.Join(b.TempDir(), "node-0.marks"))
	b.ReportAllocs()
	for b.Loop() {
		f.Poll()
	}
}

func BenchmarkParse(b *testing.B) {
	for _, line := range []string{"epoch 3", `{"phase":"train","ts":1795357692.08}`} {
		b.Run(line[:5], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Parse([]byte(line))
			}
		})
	}
}

// A change of only the modification time does not stop the Follower.
func TestFollower_ContinuesAfterTouch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, "one\n")
	wantTexts(t, f.Poll(), "one")

	must(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)))
	wantTexts(t, f.Poll())
	add(t, path, "two\n")
	wantTexts(t, f.Poll(), "two")
}

// Of the lines from before the recording, only the current phase is kept, and it begins with the recording.
func TestFollower_SkipKeepsOnlyCurrentPhase(t *testing.T) {
	for before, want := range map[string][]string{
		"one\n{\"phase\":\"load\",\"ts\":5}\ntwo\n{\"phase\":\"train\"}\nthree\n": {"[train]", "four"},
		"one\n{\"phase\":\"load\"}\n{\"phase\":null}\n":                           {"four"},
		"": {"four"},
	} {
		path := filepath.Join(t.TempDir(), "node-0.marks")
		add(t, path, before)
		f := Follow(path)
		f.Skip()
		add(t, path, "four\n")

		news := f.Poll()
		wantTexts(t, news, want...)
		l := news.Lines[0]
		check.True(t, !l.IsPhase || l.At == 0, "time of the phase = %v, want 0 for the start of the recording", l.At)
	}
}

// An incomplete line is not reread until the file grows, and is not kept beyond the limit.
func TestFollower_KeepsUnfinishedLineUpToLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, strings.Repeat("x", MaxFile-1))
	wantTexts(t, f.Poll())
	allocated := testing.AllocsPerRun(10, func() { f.file.poll(false) })
	check.True(t, allocated <= 10, "poll of an unchanged file made %v allocations, want at most 10", allocated)
	check.True(t, len(f.file.rest) == MaxFile-1, "kept %d bytes of the unfinished line, want %d", len(f.file.rest), MaxFile-1)

	add(t, path, "xx")
	for range 2 {
		if news := f.Poll(); news.Dropped.Bytes != MaxFile+1 || len(f.file.rest) != 0 {
			t.Errorf("dropped %d bytes, kept %d; want %d, 0", news.Dropped.Bytes, len(f.file.rest), MaxFile+1)
		}
	}
}

// Append writes a separate line, even after an incomplete line of another program.
func TestAppend_EndsUnfinishedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, "half done")
	for _, name := range []string{"test", ""} {
		must(t, Append(path, Line{IsPhase: true, Text: name, At: 5}))
	}
	wantTexts(t, f.Finish(), "half done", "[test]", "[]")
}

// Finish has a longer timeout than Poll, even for a pending poll, because the machine may be busy.
func TestFollower_FinishWaitsForPendingPoll(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	must(t, os.WriteFile(path, []byte("the end"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		f := Follow(path)
		f.caller.Start(func() Update {
			time.Sleep(time.Second)
			return Update{Lines: []Line{{Text: "late"}}}
		})
		if news := f.Poll(); news.Why == "" {
			t.Errorf("Poll during another poll = %+v, want a reason", news)
		}
		news := f.Finish()
		check.True(t, len(news.Lines) == 2 && news.Lines[0].Text == "late" && news.Lines[1].Text == "the end",
			"Finish = %+v, want the lines \"late\" and \"the end\"", news)
	})
}

func TestParse_AcceptsJSONAndPlainText(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		line string
		want Line
		ok   bool
	}{
		{"", Line{}, false},
		{" \r", Line{}, false},
		{"epoch 3\r", Line{Text: "epoch 3", At: nan}, true},
		{`{"mark":"epoch 3","ts":1795357692.08}`, Line{Text: "epoch 3", At: 1795357692.08}, true},
		{`{"mark":"epoch 3"}`, Line{Text: "epoch 3", At: nan}, true},
		{`{"mark":"epoch 3","ts":null}`, Line{Text: "epoch 3", At: nan}, true},
		{`{"mark":"","ts":1}`, Line{At: 1}, true},
		{`{"phase":"train","ts":2}`, Line{IsPhase: true, Text: "train", At: 2}, true},
		{`{"phase":"train","later":[1,{"a":2}]}`, Line{IsPhase: true, Text: "train", At: nan}, true},
		{`{"phase":null,"ts":2.5}`, Line{IsPhase: true, At: 2.5}, true},
		{`{"phase":""}`, Line{IsPhase: true, At: nan}, true},
		{`{"mark":"a\u001b[2Jb"}`, Line{Text: "a\x1b[2Jb", At: nan}, true},

		{"\xff\xfe", Line{Text: "\uFFFD", At: nan}, true},
		{strings.Repeat("ä", 150), Line{Text: strings.Repeat("ä", 100), At: nan}, true},
		{"x" + strings.Repeat("ä", 150), Line{Text: "x" + strings.Repeat("ä", 99), At: nan}, true},
	} {
		got, ok := Parse([]byte(test.line))
		check.True(t, ok == test.ok && equal(got, test.want),
			"Parse(%q) = %+v, %v; want %+v, %v", test.line, got, ok, test.want, test.ok)
	}
	// JSON that is neither a mark nor a phase is a mark with the line as its text.
	for _, line := range []string{
		`{`, `{}`, `{"epoch":3}`, `{"mark":3}`, `{"phase":3}`, `{"phase":["a"]}`, `{"mark":"a","phase":"b"}`,
		`{"mark":"a","ts":"1"}`, `{"mark":"a","ts":1e999}`, `{"mark":"a"} tail`,
	} {
		got, ok := Parse([]byte(line))
		check.True(t, ok && equal(got, Line{Text: line, At: nan}), "Parse(%q) = %+v, %v; want the line as text", line, got, ok)
	}
}

// equal reports whether two lines are equal. Unknown times are equal.
func equal(a, b Line) bool {
	same := a.At == b.At || math.IsNaN(a.At) && math.IsNaN(b.At)
	a.At, b.At = 0, 0
	return same && a == b
}

func TestLine_AppendRoundTrips(t *testing.T) {
	for _, l := range []Line{
		{Text: "epoch 3", At: 1795357692.080001},
		{Text: "no time", At: math.NaN()},
		{Text: "quotes \" and\nline ends \x00 and ünïcode", At: 0.5},
		{IsPhase: true, Text: "train", At: 12},
		{IsPhase: true, At: 12},
	} {
		line := l.Append(nil)
		if n := strings.Count(string(line), "\n"); n != 1 || !strings.HasSuffix(string(line), "\n") {
			t.Errorf("Append = %q with %d line ends, want one line end, at the end", line, n)
		}
		got, ok := Parse(line)
		check.True(t, ok && equal(got, l), "Parse(%q) = %+v, %v; want %+v, true", line, got, ok, l)
	}
}

// FuzzParse parses any input as at most one line within the limits, which must not change when it is written and parsed
// again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "text", `{"mark":"a","ts":1.5}`, `{"phase":"b"}`, `{"phase":null,"ts":2}`, `{"mark":`, "{\"mark\":\"\xff\"}",
		`{"phase":"` + strings.Repeat("é", 150) + `"}`, `{"mark":"x","ts":-1e300}`, "\x00\x1b]0;title\x07",
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		l, ok := Parse(data)
		if !ok {
			if strings.TrimSpace(string(data)) != "" {
				t.Errorf("Parse(%q) returned false for input that is not blank", data)
			}
			return
		}
		if len(l.Text) > MaxText || !utf8.ValidString(l.Text) || math.IsInf(l.At, 0) {
			t.Fatalf("Parse(%q) = %+v, want a finite time and at most %d bytes of UTF-8", data, l, MaxText)
		}

		if math.Abs(l.At) > 1e9 { // below that, six decimals are exact
			l.At = 1
		}
		again, ok := Parse(l.Append(nil))
		if near := math.Abs(again.At-l.At) < 1e-6; !ok || near != !math.IsNaN(l.At) {
			t.Fatalf("parsed %+v after writing %+v, want the same line", again, l)
		}
		again.At = l.At
		if !equal(again, l) {
			t.Fatalf("parsed %+v after writing %+v, want the same line", again, l)
		}
	})
}
