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

// The bounds of what is taken from a file. What is beyond is counted.
const (
	MaxMarks      = 1000    // moments
	MaxPhaseSpans = 1000    // times that a phase begins
	MaxFile       = 1 << 20 // bytes
)

// answerWithin is how long a look at the file is waited for, and lastWithin the last one, which has no other after it.
// A file system whose server is gone blocks forever; it is waited for once, not in every look.
const (
	pollTimeout   = 200 * time.Millisecond
	finishTimeout = 2 * time.Second
)

// A Dropped counts what is beyond the bounds.
type Dropped struct {
	Marks      int64 `json:"marks,omitzero"`
	PhaseSpans int64 `json:"stretches,omitzero"` // times that a phase began
	Bytes      int64 `json:"bytes,omitzero"`     // of the file that were not read
}

// Update is what a look at the file found.
type Update struct {
	Lines   []Line  // in the order of the file
	Dropped Dropped // since the look before; but Bytes is of the whole file
	Why     string  // why the file is not read; "" if it is, or does not exist
}

// A Follower reads a file of marks while a job appends to it. A look is one question for the file's
// status, and reads only what was added. The question is one that may never be answered, unless the file system is
// known to be prompt. What is not a regular file, shrinks, or is replaced is never
// read again. A Follower belongs to one goroutine.
type Follower struct {
	caller       *timeout.Caller[Update]
	poll, finish func() Update
	file         file
	detector     *changeDetector // nil before the first look
	idleUpdate   Update          // what the look before found that is true of the file, and not news
}

// A file is the state of a Follower. While a look is under way it belongs to that.
type file struct {
	path string
	open *os.File // stays open, so that no other file gets its identity
	info os.FileInfo
	read int64  // bytes
	rest []byte // the beginning of a line whose end was not read yet
	tail []byte // the last bytes that were read; others in their place mean that the file was written anew
	// modified is when the file was last written to, as of the newest look.
	modified time.Time
	// unread is how many bytes of an unfinished line were given up at the bound.
	unread int64
	// earlier is the phase that was on before the recording, until the first look.
	earlier []Line

	marks, phaseSpans int  // taken so far
	phase             bool // one is on
	stopReason        string
}

// Follow returns a Follower of the file at path, which may not exist yet.
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

// Poll returns what was added since the look before. A line without its end waits for it.
func (f *Follower) Poll() Update {
	unchanged := !f.caller.Pending() && f.detector != nil && f.detector.isUnchanged()
	if unchanged && f.idleUpdate.Why == "" { // what could not be read may be readable now, though it is the same
		return f.idleUpdate
	}

	news := f.call(f.poll, 0, pollTimeout)
	f.idleUpdate = Update{Why: news.Why, Dropped: Dropped{Bytes: news.Dropped.Bytes}}
	return news
}

// Finish is the last Look: a line counts without its end. It closes the file.
func (f *Follower) Finish() Update { return f.call(f.finish, finishTimeout, finishTimeout) }

// Skip passes over what is in the file already, which is from before the recording. Only the phase that is
// on then remains: the next Look has it first, with a time before all others.
func (f *Follower) Skip() {
	f.call(func() Update {
		f.file.skip()
		return Update{}
	}, 0, pollTimeout)
}

// skip passes over what is in the file.
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

// call asks a question once the one before is answered, which may take as long as before, and the answer within.
func (f *Follower) call(question func() Update, before, within time.Duration) Update {
	none := func(limit time.Duration) Update {
		return Update{Why: fmt.Sprintf("read marks %s: no answer within %v", f.file.path, max(limit, pollTimeout))}
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

// merge puts two looks together.
func (n Update) merge(o Update) Update {
	o.Lines = append(n.Lines, o.Lines...)
	o.Dropped.Marks += n.Dropped.Marks
	o.Dropped.PhaseSpans += n.Dropped.PhaseSpans
	o.Dropped.Bytes = max(o.Dropped.Bytes, n.Dropped.Bytes)

	return o
}

// poll reads what was added to the file.
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

// status asks for the file's status, and opens it when it is there. A file that is not to be read sets
// f.stopped; an error is one that may go away.
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

// begin opens the file, which info is the status of.
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

// stop ends the reading for good.
func (f *file) stop(why string) {
	f.stopReason = fmt.Sprintf("read marks %s: %s", f.path, why)
	f.rest = nil
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}

// take reads what was added to the file, within the bound.
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

// readTo reads the file up to a size, and takes the whole lines of it. It begins with the last bytes that were
// read before, so that a file that was cut and written anew is recognized.
func (f *file) readTo(size int64, news *Update) {
	data := make([]byte, int64(len(f.tail))+size-f.read)
	n, err := f.open.ReadAt(data, f.read-int64(len(f.tail)))
	data = data[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		news.Why = "read marks: " + err.Error()
	}
	switch {
	case n < len(f.tail): // it is being cut: the next look shows it
		return
	case !bytes.HasPrefix(data, f.tail):
		f.stop("it was written anew: append to it with >>")
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

// maxTail is how many bytes of what was read are compared.
const maxTail = 64

// takeLines takes the whole lines of what was read.
func (f *file) takeLines(news *Update) {
	whole := bytes.LastIndexByte(f.rest, '\n') + 1
	for line := range bytes.Lines(f.rest[:whole]) {
		f.takeLine(line, news)
	}
	if whole > 0 {
		f.rest = bytes.Clone(f.rest[whole:])
	}
}

// takeLine takes a line, or counts it where it is beyond the bounds. A phase beyond them ends the one
// before it.
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

// endPhase ends a phase that is on, at a time or, for NaN, now.
func (f *file) endPhase(at float64, news *Update) {
	if f.phase {
		f.phase = false
		news.Lines = append(news.Lines, Line{IsPhase: true, At: at})
	}
}
