package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

const (
	maxLogBytes = 64 << 10    // of the end of a log are read
	logTimeout  = time.Second // for each access to a log, because its file system may hang
)

// A jobLog is the regular file that the job has as its standard error or output.
type jobLog struct {
	stream       string   // one of reporter's Log constants
	name         string   // path of the file
	file, reader *os.File // the job's descriptor, and the same file opened for reading
	err          error    // why there is no reader
	info         os.FileInfo
	appends      bool // each write goes to the end of the file, wherever that is
	start, end   logMark
}

// A logMark is the state of a log at one moment.
type logMark struct {
	size     int64
	position int64 // of the job's descriptor; -1 if unknown
}

// errLogHangs is the error of a log that could not be accessed within logTimeout.
var errLogHangs = errors.New("its file system does not respond")

// hangingLogs are the logs of a job with a file system that does not respond.
func hangingLogs() []*jobLog { return []*jobLog{{name: "stderr or stdout", err: errLogHangs}} }

// keepsLog reports whether the report of a failed job gets the end of its log. perf.py's format has no field for it.
func (o Options) keepsLog() bool { return o.LogLines > 0 && o.Compat == "" }

// findLogs finds the logs of the job, just before its start.
func (w *commandRun) findLogs() {
	if !w.o.keepsLog() {
		return
	}
	var ok bool
	if w.logs, ok = timeout.Call(logTimeout, w.o.findLogFiles); !ok {
		w.logs = hangingLogs()
	}
}

// findLogFiles opens the logs of the job: the file of stderr, and the one of stdout if it is another file.
func (o Options) findLogFiles() (logs []*jobLog) {
	for i, stream := range []io.Writer{o.Stderr, o.Stdout} {
		file := []*os.File{os.Stderr, os.Stdout}[i]
		if stream != nil {
			file, _ = stream.(*os.File)
		}
		info, err := file.Stat() // fails for nil
		switch {
		case err != nil || !info.Mode().IsRegular():
		case len(logs) > 0 && os.SameFile(info, logs[0].info):
			logs[0].stream = reporter.LogBoth
		default:
			logs = append(logs, newJobLog([]string{reporter.LogStderr, reporter.LogStdout}[i], file, info))
		}
	}
	return logs
}

// newJobLog opens the log behind file, a descriptor of the job.
func newJobLog(stream string, file *os.File, info os.FileInfo) *jobLog {
	l := &jobLog{stream: stream, file: file, info: info, name: file.Name()}
	link := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	if name, err := os.Readlink(link); err == nil {
		l.name = name
	}
	data := readDescriptor(file)
	l.start = logMark{info.Size(), positionIn(data)}
	flags, _ := strconv.ParseUint(procfile.StatusValue(data, "flags"), 8, 64)
	l.appends = flags&syscall.O_APPEND != 0 || l.start.position < 0
	if bytes.Contains(data, []byte(": POSIX ")) {
		l.err = errors.New("this process has locked it, and would unlock it by closing it")
		return l
	}
	if procfile.FilesAreScarce() {
		l.err = errors.New("the limit of open files (ulimit -n) is too low")
		return l
	}
	l.reader, l.err = os.Open(link)
	return l
}

// readDescriptor returns what the kernel reports about an open file: a file of /proc/PID/fdinfo.
func readDescriptor(file *os.File) []byte {
	data, _ := procfile.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", file.Fd()))
	return data
}

// positionIn returns the position in the result of readDescriptor, or -1 if it is unknown.
func positionIn(data []byte) int64 {
	position, err := strconv.ParseInt(procfile.StatusValue(data, "pos"), 10, 64)
	if err != nil {
		return -1
	}
	return max(-1, position)
}

// closeLogs closes the logs.
func (w *commandRun) closeLogs() {
	for _, l := range w.logs {
		l.reader.Close() // fails for nil
	}
}

// markLogs notes where the logs end, before perfagent itself writes to them.
func (w *commandRun) markLogs() {
	logs := w.logs
	ends, ok := timeout.Call(logTimeout, func() (ends []logMark) {
		for _, l := range logs {
			end := logMark{position: -1}
			if info, err := l.reader.Stat(); err == nil { // fails for nil
				end.size = info.Size()
			}
			if info, err := l.file.Stat(); err == nil && os.SameFile(info, l.info) { // stdout may have been replaced
				end.position = positionIn(readDescriptor(l.file))
			}
			ends = append(ends, end)
		}
		return ends
	})
	if !ok {
		w.logs = hangingLogs()
	}
	for i, end := range ends {
		w.logs[i].end = end
	}
}

// A logSpan is the part of a log that was written during the run.
type logSpan struct {
	from, to  int64
	truncated bool // the file was truncated during the run, and the span is what is left
	shared    bool // others may have written to it
}

func (s logSpan) isEmpty() bool { return s.from == s.to }

// span returns the part of the log that was written during the run. The position at the end counts only for the log of
// a single stream.
func (l *jobLog) span() logSpan {
	end := l.end
	s := logSpan{from: l.start.size, to: end.size, shared: l.appends || l.start.position < l.start.size}
	if !l.appends {
		s.from = l.start.position
		if end.position >= 0 && l.stream != reporter.LogBoth {
			s.to, s.truncated = min(end.position, end.size), end.position > end.size
			s.shared = s.shared || end.position != end.size
		}
	}
	if s.to < s.from {
		s.from, s.to, s.truncated = 0, end.size, true
	}
	return s
}

// addLog adds the end of the job's log to e. It returns the reason if there is none.
func (w *commandRun) addLog(e *diagnosis.ExitContext) []reporter.Missing {
	switch {
	case !w.o.keepsLog():
		return nil
	case len(w.logs) == 0:
		return []reporter.Missing{reporter.NewMissing("log_tail", reporter.LogNotFile)}
	}

	log, rules := w.logs[0], w.o.redaction()
	if len(w.logs) > 1 && (log.err != nil || log.span().isEmpty() && !w.logs[1].span().isEmpty()) {
		log = w.logs[1] // stdout, because there is nothing from stderr
	}
	span := log.span()
	tail := &reporter.LogTail{Stream: log.stream, File: text.Printable(rules.Args([]string{log.name})[0]),
		MayLeave: w.o.logsMayLeave, Shared: span.shared || w.nodeRole.isRankPart || w.o.identity.WorldSize > 1}
	lines, err := log.lastLines(span, max(w.o.LogLines, diagnosis.LogErrorLines), rules)
	if err != nil {
		why := reporter.NewMissing("log_tail", reporter.LogUnreadable)
		why.Why += ": " + tail.File + ": " + err.Error()
		return []reporter.Missing{why}
	}
	if !span.truncated {
		tail.Bytes = new(span.to - span.from)
	}
	tail.Lines, e.LastLines = last(lines, w.o.LogLines), last(lines, diagnosis.LogErrorLines)
	e.LogTail = tail
	return nil
}

// lastLines reads the last n lines of a part of the log.
func (l *jobLog) lastLines(s logSpan, n int, rules redact.Rules) ([]string, error) {
	if at, ok := errors.AsType[*os.PathError](l.err); ok {
		return nil, at.Err
	}
	if l.err != nil {
		return nil, l.err
	}

	from, err := max(s.from, s.to-maxLogBytes), error(nil)
	data, ok := timeout.Call(logTimeout, func() []byte {
		data := make([]byte, s.to-from)
		var k int
		k, err = l.reader.ReadAt(data, from)
		return data[:k]
	})
	switch {
	case !ok:
		return nil, errLogHangs
	case err != nil && err != io.EOF: // the file may have been truncated
		return nil, err
	}
	return logLines(string(data), from > s.from, n, rules), nil
}

// logLines returns the last n lines of s, redacted, printable, and at most reporter.MaxLogLine cells wide. If isCut is
// set, the beginning of the first line is missing: the rest of it is left out, because it may be a part of a secret.
func logLines(s string, isCut bool, n int, rules redact.Rules) []string {
	if isCut {
		end := strings.IndexAny(s, "\r\n")
		if end < 0 {
			return []string{}
		}
		s = s[end+1:]
	}
	if s = strings.TrimSuffix(s, "\n"); s == "" {
		return []string{}
	}

	// Whether a line has a secret may depend on the line before, as for the arguments of a command.
	lines := last(strings.Split(s, "\n"), n+1)
	bare := make([]string, len(lines)) // without colors, which may divide the name of a secret
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
		bare[i] = colors().ReplaceAllString(lines[i], "")
	}
	out := rules.Args(lines)
	for i, line := range rules.Args(bare) {
		if line != bare[i] {
			out[i] = line
		}
		out[i] = fittingLine(out[i])
	}
	return last(out, n)
}

// colors matches the sequences by which programs change colors and move the cursor (ECMA-48, 5.4).
var colors = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`) })

// fittingLine returns line in printable characters, cut to reporter.MaxLogLine cells. Of a line that is too long and
// that was overwritten several times, such as a progress bar, it returns the last state.
func fittingLine(line string) string {
	shown := text.Printable(line)
	if utf8.RuneCountInString(shown) > reporter.MaxLogLine {
		if at := strings.LastIndexByte(line, '\r'); at >= 0 {
			shown = text.Printable(line[at+1:])
		}
	}
	return text.Clip(shown, reporter.MaxLogLine)
}

// last returns the last n elements of list, or all if there are fewer.
func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }
