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
)

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
	if news := f.Poll(); news.Why == "" {
		t.Error("Poll returned no reason, want the error of the poll")
	}

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
	if want := (Dropped{Marks: 500, PhaseSpans: 500}); news.Dropped != want || len(news.Lines) != MaxMarks+MaxPhaseSpans+1 {
		t.Errorf("dropped %+v, returned %d lines; want %+v, %d", news.Dropped, len(news.Lines), want,
			MaxMarks+MaxPhaseSpans+1)
	}
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
	if want := (Dropped{Marks: int64(whole) - MaxMarks, Bytes: int64(size - 17 - whole*100)}); news.Dropped != want {
		t.Errorf("dropped %+v, want %+v", news.Dropped, want)
	}
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

	for range 2 {
		if news := f.Poll(); len(news.Lines) > 0 || !strings.Contains(news.Why, "no response within 200ms") {
			t.Fatalf("file system hangs: got texts %q, reason %q; want no texts and \"no response within 200ms\"", texts(news),
				news.Why)
		}
	}
	close(answer)
	for deadline := time.Now().Add(10 * time.Second); ; {
		news := f.Poll()
		if slices.Equal(texts(news), []string{"one"}) && news.Why == "" {
			break
		}
		if len(news.Lines) > 0 || time.Now().After(deadline) {
			t.Fatalf("got texts %q, reason %q; want \"one\" within 10 s", texts(news), news.Why)
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
		if err := Append(bad, Line{Text: "one"}); err == nil {
			t.Errorf("Append to %s returned nil, want an error", bad)
		}
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
		if l := news.Lines[0]; l.IsPhase && l.At != 0 {
			t.Errorf("time of the phase = %v, want 0 for the start of the recording", l.At)
		}
	}
}

// An incomplete line is not reread until the file grows, and is not kept beyond the limit.
func TestFollower_KeepsUnfinishedLineUpToLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, strings.Repeat("x", MaxFile-1))
	wantTexts(t, f.Poll())
	if allocated := testing.AllocsPerRun(10, func() { f.file.poll(false) }); allocated > 10 {
		t.Errorf("poll of an unchanged file made %v allocations, want at most 10", allocated)
	}
	if len(f.file.rest) != MaxFile-1 {
		t.Errorf("kept %d bytes of the unfinished line, want %d", len(f.file.rest), MaxFile-1)
	}

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
		if len(news.Lines) != 2 || news.Lines[0].Text != "late" || news.Lines[1].Text != "the end" {
			t.Errorf("Finish = %+v, want the lines \"late\" and \"the end\"", news)
		}
	})
}
