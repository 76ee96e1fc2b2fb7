package agent

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/reporter"
)

// The last lines are redacted and printable. If the beginning of a line was not read, the rest of it is left out.
func TestLogLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600)
	for name, c := range map[string]struct {
		log  string
		cut  bool
		want []string
	}{
		"nothing":              {"", false, []string{}},
		"an empty line":        {"\n", false, []string{}},
		"no newline":           {"a\nb", false, []string{"a", "b"}},
		"the last three":       {"a\nb\nc\nd\n", false, []string{"b", "c", "d"}},
		"empty lines":          {"a\n\n\n", false, []string{"a", "", ""}},
		"Windows":              {"a\r\nb\r\n", false, []string{"a", "b"}},
		"a cut line":           {"SWORD=hunter2\nb\n", true, []string{"b"}},
		"a cut progress bar":   {"hunter2\r 50%\r 60%", true, []string{` 50%\r 60%`}},
		"only a part of one":   {"hunter2", true, []string{}},
		"control characters":   {"\x1b[31mred\x1b[0m\x00\u202e\xff\t|", false, []string{`\x1b[31mred\x1b[0m\x00\u202e\xff\t|`}},
		"a long line":          {long, false, []string{long[:499] + "…"}},
		"a long progress bar":  {long + "\r 1%\r 2%", false, []string{" 2%"}},
		"wide characters":      {strings.Repeat("界", 400), false, []string{strings.Repeat("界", 249) + "…"}},
		"a secret":             {"export HF_TOKEN=hunter2 &&", false, []string{"export HF_TOKEN=*** &&"}},
		"a secret in color":    {"\x1b[1mapi_key\x1b[0m=hunter2 x", false, []string{"api_key=***"}},
		"a secret in the next": {"z\n--password\nhunter2\na\nb", false, []string{"***", "a", "b"}},
		"a long secret":        {long[:490] + " password=hunter2hunter2", false, []string{long[:490] + " password…"}},
	} {
		got := logLines(c.log, c.cut, 3, redact.Rules{})
		if got == nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: last lines %q, want %q", name, got, c.want)
		}
	}
}

func FuzzLogLines(f *testing.F) {
	for _, seed := range []string{"a\nb\n", "TOKEN=x\r\n", "\x1b[1mkey\x1b[0m: y", "\r\r\r", "\xff\x00", `{"secret": [` + "\n1]"} {
		f.Add(seed, false, 20)
		f.Add(seed, true, 1)
	}
	f.Fuzz(func(t *testing.T, log string, cut bool, n int) {
		n = max(1, n%100)
		lines := logLines(log, cut, n, redact.Rules{})
		if lines == nil || len(lines) > n {
			t.Errorf("%d lines, want at most %d", len(lines), n)
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > reporter.MaxLogLine || strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("line %q is too long or has a control character", line)
			}
		}
	})
}

func TestPositionIn(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]int64{
		"pos:\t1234\nflags:\t0100001\nmnt_id:\t29\n": 1234, "flags:\t0\npos:\t0\n": 0,
		"": -1, "pos:\t-3\n": -1, "pos:\tx": -1, "pos:\t99999999999999999999": -1,
	} {
		check.Equal(t, positionIn([]byte(data)), want, "position in %q", data)
	}
}

// A log on which this process holds a lock is not opened, because closing it would remove the lock.
func TestOpenLog_KeepsLock(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	check.Must(t, err)
	defer f.Close()
	check.Must(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}))
	info, err := f.Stat()
	check.Must(t, err)
	if l := newJobLog(reporter.LogStderr, f, info); l.reader != nil || l.err == nil {
		t.Errorf("reader %v, error %v; want none, and an error", l.reader, l.err)
	}
}

func TestJobLog_Span(t *testing.T) {
	t.Parallel()
	const unknown = -1
	for name, c := range map[string]struct {
		stream     string
		appends    bool
		start, end logMark
		want       logSpan
	}{
		"a new file":           {"stderr", false, logMark{0, 0}, logMark{70, 70}, logSpan{0, 70, false, false}},
		"after other output":   {"stderr", false, logMark{50, 50}, logMark{70, 70}, logSpan{50, 70, false, false}},
		"nothing written":      {"stderr", false, logMark{50, 50}, logMark{50, 50}, logSpan{50, 50, false, false}},
		"appended":             {"stderr", true, logMark{50, 0}, logMark{70, 70}, logSpan{50, 70, false, true}},
		"another appended":     {"stderr", false, logMark{0, 0}, logMark{90, 70}, logSpan{0, 70, false, true}},
		"over older output":    {"stderr", false, logMark{100, 0}, logMark{100, 20}, logSpan{0, 20, false, true}},
		"stdout":               {"stdout", false, logMark{5, 5}, logMark{70, unknown}, logSpan{5, 70, false, false}},
		"both":                 {"both", false, logMark{0, 0}, logMark{70, 30}, logSpan{0, 70, false, false}},
		"truncated":            {"stderr", false, logMark{50, 50}, logMark{0, 90}, logSpan{0, 0, true, true}},
		"truncated, appended":  {"stderr", true, logMark{50, 0}, logMark{20, 20}, logSpan{0, 20, true, true}},
		"truncated, and a gap": {"stderr", false, logMark{0, 0}, logMark{40, 90}, logSpan{0, 40, true, true}},
		"truncated stdout":     {"stdout", false, logMark{50, 50}, logMark{20, unknown}, logSpan{0, 20, true, false}},
		"not known any more":   {"stderr", false, logMark{50, 50}, logMark{0, unknown}, logSpan{0, 0, true, false}},
	} {
		l := &jobLog{stream: c.stream, appends: c.appends, start: c.start, end: c.end}
		if got := l.span(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Only the end of a huge log is read, whatever it contains.
func TestJobLog_ReadsOnlyEndOfHugeFile(t *testing.T) {
	t.Parallel()
	const size = 10 << 30
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	check.Must(t, err)
	defer f.Close()
	info, err := f.Stat()
	check.Must(t, err)
	l := newJobLog(reporter.LogStderr, f, info)
	defer l.reader.Close()
	check.Must(t, f.Truncate(size))
	_, err = f.Seek(size, io.SeekStart)
	check.Must(t, err)
	_, err = f.WriteString("\nthe end\n")
	check.Must(t, err)

	end := positionIn(readDescriptor(f))
	l.end = logMark{end, end}
	lines, err := l.lastLines(l.span(), 20, redact.Rules{})
	if fmt.Sprint(lines) != "[the end]" || err != nil {
		t.Errorf("lines %.200q, error %v; want the last line", lines, err)
	}
}
