package marks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/internal/timeout"
)

// The limits of a file. Everything above them is counted.
const (
	MaxMarks      = 1000    // moments
	MaxPhaseSpans = 1000    // beginnings of phases
	MaxFile       = 1 << 20 // bytes
)

// pollTimeout is the timeout of Poll. finishTimeout, the timeout of Finish, is longer because Finish is the last
// attempt. A file system blocks forever if its server is lost, so Poll does not wait for an operation that was already
// pending.
var (
	pollTimeout   = 200 * time.Millisecond
	finishTimeout = 2 * time.Second
)

// A Dropped counts the marks, phases and bytes above the limits.
type Dropped struct {
	Marks      int64 `json:"marks,omitzero"`
	PhaseSpans int64 `json:"stretches,omitzero"` // beginnings of phases
	Bytes      int64 `json:"bytes,omitzero"`     // unread bytes of the file
}

// An Update is the result of a poll of the file.
type Update struct {
	Lines   []Line  // in the order of the file
	Dropped Dropped // since the last poll, except Bytes, which is for the whole file
	Why     string  // why the file cannot be read; "" if it can be read or does not exist
}

// A Follower reads a file of marks while a job appends to it. A poll checks the file's status, and reads only the added
// part. It has a timeout, unless the file system responds promptly and the file is unchanged. Once the file is not
// regular, has shrunk, or was replaced, the Follower stops reading. A Follower is not safe for concurrent use.
type Follower struct {
	caller       *timeout.Caller[Update]
	poll, finish func() Update
	file         file
	detector     *changeDetector // nil before the first poll
	idleUpdate   Update          // result of a poll without changes
}

// A file is the state of a Follower. Only the running poll may access it.
type file struct {
	path string
	open *os.File // stays open, so that its inode cannot be reused for another file
	info os.FileInfo
	read int64  // number of bytes read
	rest []byte // beginning of an incomplete line
	tail []byte // the last bytes read; if they have changed, the file was rewritten
	// modified is the modification time of the file at the newest poll.
	modified time.Time
	// unread is the number of bytes of an incomplete line that were dropped at the limit.
	unread int64
	// earlier is the line of the phase that was open at the start of the recording. The first poll returns it.
	earlier []Line

	marks, phaseSpans int  // numbers so far
	phase             bool // inside a phase
	stopReason        string
}

// Follow returns a Follower of the file at path. The file need not exist yet.
func Follow(path string) *Follower {
	f := &Follower{caller: timeout.NewCaller[Update](), file: file{path: path}}
	f.poll = func() Update {
		if f.detector == nil {
			f.detector = newChangeDetector(path)
		}
		return f.file.poll(false)
	}
	f.finish = func() Update { return f.file.poll(true) }

	return f
}

// Poll returns the complete lines that were added since the last poll. An incomplete line is kept until its end is
// added.
func (f *Follower) Poll() Update {
	unchanged := !f.caller.Pending() && f.detector != nil && f.detector.isUnchanged()
	if unchanged && f.idleUpdate.Why == "" { // after an error, even an unchanged file may now be readable
		return f.idleUpdate
	}

	news := f.call(f.poll, 0, pollTimeout)
	f.idleUpdate = Update{Why: news.Why, Dropped: Dropped{Bytes: news.Dropped.Bytes}}
	return news
}

// Finish is the last poll, which also returns an incomplete line at the end. It closes the file.
func (f *Follower) Finish() Update { return f.call(f.finish, finishTimeout, finishTimeout) }

// Skip skips the current content of the file, which is older than the recording. It keeps only the current phase, which
// the next Poll returns first, with the time 0.
func (f *Follower) Skip() {
	f.call(func() Update {
		f.file.skip()
		return Update{}
	}, 0, pollTimeout)
}

// skip reads the current content of the file, and keeps only the phase that is open at its end.
func (f *file) skip() {
	lines := f.poll(false).Lines
	f.marks, f.phaseSpans, f.phase = 0, 0, false
	for i := len(lines) - 1; i >= 0; i-- {
		if l := lines[i]; l.IsPhase {
			if l.Text != "" {
				l.At = 0
				f.earlier, f.phaseSpans, f.phase = []Line{l}, 1, true
			}
			return
		}
	}
}

// call runs question and waits for its result for at most within. If an earlier question is pending, call first waits
// for at most before for its result, and merges the two results.
func (f *Follower) call(question func() Update, before, within time.Duration) Update {
	none := func(limit time.Duration) Update {
		return Update{Why: fmt.Sprintf("read marks %s: no response within %v", f.file.path, max(limit, pollTimeout))}
	}
	var earlier Update
	if f.caller.Pending() {
		answer, ok := f.caller.Result(before)
		if !ok {
			return none(before)
		}
		earlier = answer
	}

	f.caller.Start(question)
	news, ok := f.caller.Result(within)
	if !ok {
		news = none(within)
	}

	return earlier.merge(news)
}

// merge combines the results of two polls.
func (n Update) merge(o Update) Update {
	o.Lines = append(n.Lines, o.Lines...)
	o.Dropped.Marks += n.Dropped.Marks
	o.Dropped.PhaseSpans += n.Dropped.PhaseSpans
	o.Dropped.Bytes = max(o.Dropped.Bytes, n.Dropped.Bytes)

	return o
}

// poll reads the added part of the file. last means that an incomplete line counts and the file is closed.
func (f *file) poll(last bool) (news Update) {
	news.Lines, f.earlier = f.earlier, nil
	info, err := f.status()
	switch {
	case err != nil:
		news.Why = err.Error()
	case f.stopReason != "":
		f.endPhase(math.NaN(), &news)
		news.Why = f.stopReason
	case f.open != nil:
		f.take(info, last, &news)
	}

	if last && f.open != nil {
		f.open.Close()
		f.open = nil
	}

	return news
}

// status returns the file's status, and opens the file when it exists. It calls stop for a file that must not be read.
// It returns an error for a failure that may be temporary.
func (f *file) status() (info os.FileInfo, err error) {
	if f.stopReason != "" {
		return nil, nil
	}

	info, err = os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.open == nil:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		f.stop("it was removed")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read marks: %w", err)
	case !info.Mode().IsRegular():
		f.stop("it is not a regular file: " + info.Mode().String())
		return nil, nil
	case f.open == nil:
		return info, f.begin(info)
	case !os.SameFile(info, f.info):
		f.stop("another file has replaced it")
	case info.Size() < f.read:
		f.stop("it has shrunk: append to it with >>")
	}

	return info, nil
}

// begin opens the file with the given status.
func (f *file) begin(info os.FileInfo) error {
	open, err := durable.OpenNoAtime(f.path)
	if err != nil {
		return fmt.Errorf("read marks: %w", err)
	}
	f.info, err = open.Stat()
	if err != nil {
		open.Close()
		return fmt.Errorf("read marks: %w", err)
	}
	if !os.SameFile(info, f.info) {
		open.Close()
		f.stop("another file has replaced it")
		return nil
	}

	f.open = open
	return nil
}

// stop stops reading permanently, for the reason why.
func (f *file) stop(why string) {
	f.stopReason = fmt.Sprintf("read marks %s: %s", f.path, why)
	f.rest = nil
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}

// take reads the added part of the file, up to MaxFile.
func (f *file) take(info os.FileInfo, last bool, news *Update) {
	size := info.Size()
	if !info.ModTime().Equal(f.modified) || min(size, MaxFile) > f.read {
		f.modified = info.ModTime()
		f.readTo(min(size, MaxFile), news)
	}

	switch {
	case f.stopReason != "":
	case size > MaxFile:
		f.unread += int64(len(f.rest))
		f.rest = nil
		news.Dropped.Bytes = size - f.read + f.unread
		f.endPhase(math.NaN(), news)
	case last:
		f.takeLine(f.rest, news)
		f.rest = nil
	}
}

// readTo reads the file up to size, and takes the complete lines. It rereads the last bytes to detect a file that was
// truncated and rewritten.
func (f *file) readTo(size int64, news *Update) {
	data := make([]byte, int64(len(f.tail))+size-f.read)
	n, err := f.open.ReadAt(data, f.read-int64(len(f.tail)))
	data = data[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		news.Why = "read marks: " + err.Error()
	}
	switch {
	case n < len(f.tail): // the file is being truncated, which the next poll notices
		return
	case !bytes.HasPrefix(data, f.tail):
		f.stop("it was rewritten: append to it with >>")
		f.endPhase(math.NaN(), news)
		news.Why = f.stopReason
		return
	}

	added := data[len(f.tail):]
	f.read += int64(len(added))
	f.rest = append(f.rest, added...)
	f.tail = bytes.Clone(data[max(0, len(data)-maxTail):])
	f.takeLines(news)
}

// maxTail is the maximum number of bytes that readTo rereads and compares.
const maxTail = 64

// takeLines takes the complete lines in rest.
func (f *file) takeLines(news *Update) {
	whole := bytes.LastIndexByte(f.rest, '\n') + 1
	for line := range bytes.Lines(f.rest[:whole]) {
		f.takeLine(line, news)
	}
	if whole > 0 {
		f.rest = bytes.Clone(f.rest[whole:])
	}
}

// takeLine adds a line to news, or counts it as dropped. A phase beyond the limit ends the phase before it.
func (f *file) takeLine(data []byte, news *Update) {
	l, ok := Parse(data)
	switch {
	case !ok:
	case !l.IsPhase && f.marks == MaxMarks:
		news.Dropped.Marks++
	case !l.IsPhase:
		f.marks++
		news.Lines = append(news.Lines, l)
	case l.Text != "" && f.phaseSpans == MaxPhaseSpans:
		news.Dropped.PhaseSpans++
		f.endPhase(l.At, news)
	case l.Text != "":
		f.phaseSpans++
		f.phase = true
		news.Lines = append(news.Lines, l)
	default:
		f.endPhase(l.At, news)
	}
}

// endPhase ends the current phase, if any, at the time at; NaN means now.
func (f *file) endPhase(at float64, news *Update) {
	if f.phase {
		f.phase = false
		news.Lines = append(news.Lines, Line{IsPhase: true, At: at})
	}
}
