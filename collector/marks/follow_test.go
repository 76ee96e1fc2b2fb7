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

// write replaces the file.
func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// add appends to the file.
func add(t *testing.T, path, data string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = file.WriteString(data)
		file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// texts returns what lines say, phases in brackets.
func texts(news News) []string {
	var out []string
	for _, l := range news.Lines {
		if l.Phase {
			l.Text = "[" + l.Text + "]"
		}
		out = append(out, l.Text)
	}
	return out
}

func wantTexts(t *testing.T, news News, want ...string) {
	t.Helper()
	if got := texts(news); !slices.Equal(got, want) || news.Why != "" {
		t.Errorf("found %q, %q; want %q", got, news.Why, want)
	}
}

// What could not be read is read as soon as it can be, though the file has not changed.
func TestFollower_TriesAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	add(t, path, "one\n")
	f := Follow(path)
	look := f.look
	f.look = func() News {
		f.glance = newGlance(path)
		return News{Why: "too many open files"}
	}
	if news := f.Look(); news.Why == "" {
		t.Error("the look did not fail")
	}

	f.look = look
	wantTexts(t, f.Look(), "one")
	wantTexts(t, f.Look())
}

func TestFollower_ReadsWhatIsAdded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	wantTexts(t, f.Look())

	add(t, path, "one\n{\"phase\":\"load\"}\ntw")
	wantTexts(t, f.Look(), "one", "[load]")
	wantTexts(t, f.Look())

	add(t, path, "o\n\nlast")
	wantTexts(t, f.Look(), "two")
	wantTexts(t, f.Last(), "last")
}

// A file whose content does not tell what was added is not read again.
func TestFollower_StopsForGood(t *testing.T) {
	for _, test := range []struct {
		name, want string
		change     func(t *testing.T, path string)
	}{
		{"truncated", "has shrunk", func(t *testing.T, path string) { write(t, path, "x\n") }},
		{"written anew", "was written anew", func(t *testing.T, path string) {
			write(t, path, "{\"phase\":\"next\"}\none\n") // as long as before
		}},
		{"written anew and longer", "was written anew", func(t *testing.T, path string) {
			write(t, path, "{\"phase\":\"the next one\"}\none\n")
		}},
		{"removed", "was removed", func(t *testing.T, path string) { remove(t, path) }},
		{"replaced", "has replaced it", func(t *testing.T, path string) {
			write(t, path+".new", "a longer text than before\nand another line\n")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}},
		{"directory", "not a regular file: d", func(t *testing.T, path string) {
			remove(t, path)
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}},
		{"link", "not a regular file: L", func(t *testing.T, path string) {
			remove(t, path)
			write(t, path+".other", "another\n")
			if err := os.Symlink(path+".other", path); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "node-0.marks")
			f := Follow(path)
			add(t, path, "{\"phase\":\"load\"}\none\n")
			wantTexts(t, f.Look(), "[load]", "one")

			test.change(t, path)
			news := f.Look()
			if got := texts(news); !slices.Equal(got, []string{"[]"}) || !strings.Contains(news.Why, test.want) {
				t.Errorf("found %q, %q; want the end of the phase, and %q", got, news.Why, test.want)
			}

			os.RemoveAll(path)
			write(t, path, "{\"phase\":\"load\"}\none\nand more\n")
			if again := f.Last(); len(again.Lines) > 0 || again.Why != news.Why {
				t.Errorf("then found %q, %q; want nothing, for the reason %q", texts(again), again.Why, news.Why)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestFollower_CountsWhatIsBeyondTheBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, "mark %d\n{\"phase\":\"p%d\",\"ts\":%d}\n", i, i%3, i)
	}
	write(t, path, text.String())

	news := f.Last()
	if want := (Lost{Marks: 500, Stretches: 500}); news.Lost != want || len(news.Lines) != MaxMarks+MaxStretches+1 {
		t.Errorf("lost %+v of %d lines that came; want %+v", news.Lost, len(news.Lines), want)
	}
	// The first phase beyond the bound ends the one before it, when it begins.
	if end := news.Lines[len(news.Lines)-1]; !end.Phase || end.Text != "" || end.At != 1000 {
		t.Errorf("the last line is %+v", end)
	}
}

func TestFollower_ReadsAMebibyte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, "{\"phase\":\"load\"}\n")
	wantTexts(t, f.Look(), "[load]")

	line := strings.Repeat("x", 99) + "\n"
	add(t, path, strings.Repeat(line, 100_000))
	news := f.Look()
	size, whole := 17+100_000*100, (MaxFile-17)/100
	if want := (Lost{Marks: int64(whole) - MaxMarks, Bytes: int64(size - 17 - whole*100)}); news.Lost != want {
		t.Errorf("lost %+v, want %+v", news.Lost, want)
	}
	if end := news.Lines[len(news.Lines)-1]; !equal(end, Line{Phase: true, At: math.NaN()}) {
		t.Errorf("the last line is %+v: what phase it is, is not known beyond the bound", end)
	}

	add(t, path, "more\n")
	if news = f.Last(); len(news.Lines) != 0 || news.Lost.Bytes != int64(size-17-whole*100+5) {
		t.Errorf("then found %q, lost %+v", texts(news), news.Lost)
	}
}

// A file system that hangs is waited for once, and its late answer is not lost.
func TestFollower_TakesALateAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	write(t, path, "one\n")
	answer, look := make(chan bool), f.look
	f.look = func() News { <-answer; return look() }

	for range 2 {
		if news := f.Look(); len(news.Lines) > 0 || !strings.Contains(news.Why, "no answer within 200ms") {
			t.Fatalf("found %q, %q of a file that hangs", texts(news), news.Why)
		}
	}
	close(answer)
	for deadline := time.Now().Add(10 * time.Second); ; {
		news := f.Look()
		if slices.Equal(texts(news), []string{"one"}) && news.Why == "" {
			break
		}
		if len(news.Lines) > 0 || time.Now().After(deadline) {
			t.Fatalf("found %q, %q", texts(news), news.Why)
		}
	}
}

func TestAppend(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node-0.marks")
	for _, l := range []Line{{Text: "one", At: 1}, {Phase: true, Text: "load", At: 2}} {
		if err := Append(path, l); err != nil {
			t.Fatal(err)
		}
	}
	wantTexts(t, Follow(path).Last(), "one", "[load]")

	for _, bad := range []string{dir, filepath.Join(dir, "none", "node-0.marks")} {
		if err := Append(bad, Line{Text: "one"}); err == nil {
			t.Errorf("a mark was written to %s", bad)
		}
	}
}

// BenchmarkFollower_Look is what each sample of a job that marks nothing costs.
func BenchmarkFollower_Look(b *testing.B) {
	f := Follow(filepath.Join(b.TempDir(), "node-0.marks"))
	b.ReportAllocs()
	for b.Loop() {
		f.Look()
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

// A file that is only touched, or written with what it had, is read on.
func TestFollower_ReadsOnAfterATouch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, "one\n")
	wantTexts(t, f.Look(), "one")

	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, f.Look())
	add(t, path, "two\n")
	wantTexts(t, f.Look(), "two")
}

// Of what was in the file before the recording only the phase that is on counts, from the start.
func TestFollower_SkipsWhatWasBefore(t *testing.T) {
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

		news := f.Look()
		wantTexts(t, news, want...)
		if l := news.Lines[0]; l.Phase && l.At != 0 {
			t.Errorf("the phase begins at %v", l.At)
		}
	}
}

// A line that is never ended is not looked at again until something is added, and not kept beyond the bound.
func TestFollower_LineWithoutAnEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, strings.Repeat("x", MaxFile-1))
	wantTexts(t, f.Look())
	if allocated := testing.AllocsPerRun(10, func() { f.file.look(false) }); allocated > 10 {
		t.Errorf("%v allocations", allocated)
	}
	if len(f.file.rest) != MaxFile-1 {
		t.Errorf("%d bytes are kept", len(f.file.rest))
	}

	add(t, path, "xx")
	for range 2 {
		if news := f.Look(); news.Lost.Bytes != MaxFile+1 || len(f.file.rest) != 0 {
			t.Errorf("lost %d bytes, %d are kept", news.Lost.Bytes, len(f.file.rest))
		}
	}
}

// A line of ours is one of its own, whatever another program has begun to write.
func TestAppend_AfterAnUnfinishedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node-0.marks")
	f := Follow(path)
	add(t, path, "half done")
	for _, name := range []string{"test", ""} {
		if err := Append(path, Line{Phase: true, Text: name, At: 5}); err != nil {
			t.Fatal(err)
		}
	}
	wantTexts(t, f.Last(), "half done", "[test]", "[]")
}

// The last look has no other after it, so a busy machine gets more time for it, and for the one that is still open.
func TestFollower_LastIsWaitedFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "marks")
	if err := os.WriteFile(path, []byte("the end"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := Follow(path)
		f.asked.Start(func() News {
			time.Sleep(time.Second)
			return News{Lines: []Line{{Text: "late"}}}
		})
		if news := f.Look(); news.Why == "" {
			t.Errorf("a look waits for another: %+v", news)
		}
		news := f.Last()
		if len(news.Lines) != 2 || news.Lines[0].Text != "late" || news.Lines[1].Text != "the end" {
			t.Errorf("%+v", news)
		}
	})
}
