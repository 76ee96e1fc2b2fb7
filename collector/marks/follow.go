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
	"github.com/perfagent/perfagent/internal/patience"
)

// The bounds of what is taken from a file. What is beyond is counted.
const (
	MaxMarks     = 1000    // moments
	MaxStretches = 1000    // times that a phase begins
	MaxFile      = 1 << 20 // bytes
)

// answerWithin is how long a look at the file is waited for. A file system whose server is gone blocks
// forever; it is waited for once, not in every look.
const answerWithin = 200 * time.Millisecond

// A Lost counts what is beyond the bounds.
type Lost struct {
	Marks     int64 `json:"marks,omitzero"`
	Stretches int64 `json:"stretches,omitzero"` // times that a phase began
	Bytes     int64 `json:"bytes,omitzero"`     // of the file that were not read
}

// News is what a look at the file found.
type News struct {
	Lines []Line // in the order of the file
	Lost  Lost   // since the look before; but Bytes is of the whole file
	Why   string // why the file is not read; "" if it is, or does not exist
}

// A Follower reads a file of marks while a job appends to it. A look is one question for the file's
// status, and reads only what was added. What is not a regular file, shrinks, or is replaced is never
// read again. A Follower belongs to one goroutine.
type Follower struct {
	asked      *patience.Asker[News]
	look, last func() News
	file       file
}

// A file is the state of a Follower. While a look is under way it belongs to that.
type file struct {
	path string
	open *os.File // stays open, so that no other file gets its identity
	info os.FileInfo
	read int64  // bytes
	rest []byte // the beginning of a line whose end was not read yet

	marks, stretches int  // taken so far
	phase            bool // one is on
	stopped          string
}

// Follow returns a Follower of the file at path, which may not exist yet.
func Follow(path string) *Follower {
	f := &Follower{asked: patience.New[News](), file: file{path: path}}
	f.look = func() News { return f.file.look(false) }
	f.last = func() News { return f.file.look(true) }

	return f
}

// Look returns what was added since the look before. A line without its end waits for it.
func (f *Follower) Look() News { return f.ask(f.look) }

// Last is the last Look: a line counts without its end. It closes the file.
func (f *Follower) Last() News { return f.ask(f.last) }

// ask asks a question once the one before is answered.
func (f *Follower) ask(question func() News) News {
	none := News{Why: fmt.Sprintf("read marks %s: no answer within %v", f.file.path, answerWithin)}
	var earlier News
	if f.asked.Open() {
		answer, ok := f.asked.Answer(0)
		if !ok {
			return none
		}
		earlier = answer
	}

	f.asked.Start(question)
	news, ok := f.asked.Answer(answerWithin)
	if !ok {
		news = none
	}

	return earlier.followedBy(news)
}

// followedBy puts two looks together.
func (n News) followedBy(o News) News {
	o.Lines = append(n.Lines, o.Lines...)
	o.Lost.Marks += n.Lost.Marks
	o.Lost.Stretches += n.Lost.Stretches
	o.Lost.Bytes = max(o.Lost.Bytes, n.Lost.Bytes)

	return o
}

// look reads what was added to the file.
func (f *file) look(last bool) (news News) {
	size, err := f.status()
	switch {
	case err != nil:
		news.Why = err.Error()
	case f.stopped != "":
		f.endPhase(math.NaN(), &news)
		news.Why = f.stopped
	case f.open != nil:
		f.take(size, last, &news)
	}

	if last && f.open != nil {
		f.open.Close()
		f.open = nil
	}

	return news
}

// status asks for the file's size, and opens it when it is there. A file that is not to be read sets
// f.stopped; an error is one that may go away.
func (f *file) status() (size int64, err error) {
	if f.stopped != "" {
		return 0, nil
	}

	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.open == nil:
		return 0, nil
	case errors.Is(err, fs.ErrNotExist):
		f.stop("it was removed")
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read marks: %w", err)
	case !info.Mode().IsRegular():
		f.stop("it is no regular file: " + info.Mode().String())
		return 0, nil
	case f.open == nil:
		return info.Size(), f.begin(info)
	case !os.SameFile(info, f.info):
		f.stop("another file has replaced it")
	case info.Size() < f.read:
		f.stop("it has shrunk: append to it with >>")
	}

	return info.Size(), nil
}

// begin opens the file, which info is the status of.
func (f *file) begin(info os.FileInfo) error {
	open, err := durable.OpenQuietly(f.path)
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
	f.stopped = fmt.Sprintf("read marks %s: %s", f.path, why)
	f.rest = nil
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}

// take reads to the given size, within the bound.
func (f *file) take(size int64, last bool, news *News) {
	if until := min(size, MaxFile); until > f.read {
		had := len(f.rest)
		f.rest = append(f.rest, make([]byte, until-f.read)...)
		n, err := f.open.ReadAt(f.rest[had:], f.read)
		f.rest, f.read = f.rest[:had+n], f.read+int64(n)
		if err != nil && !errors.Is(err, io.EOF) {
			news.Why = "read marks: " + err.Error()
		}
	}

	f.takeLines(news)
	switch {
	case size > MaxFile:
		news.Lost.Bytes = size - f.read + int64(len(f.rest))
		f.endPhase(math.NaN(), news)
	case last:
		f.takeLine(f.rest, news)
		f.rest = nil
	}
}

// takeLines takes the whole lines of what was read.
func (f *file) takeLines(news *News) {
	whole := bytes.LastIndexByte(f.rest, '\n') + 1
	for line := range bytes.Lines(f.rest[:whole]) {
		f.takeLine(line, news)
	}
	f.rest = bytes.Clone(f.rest[whole:])
}

// takeLine takes a line, or counts it where it is beyond the bounds. A phase beyond them ends the one
// before it.
func (f *file) takeLine(data []byte, news *News) {
	l, ok := Parse(data)
	switch {
	case !ok:
	case !l.Phase && f.marks == MaxMarks:
		news.Lost.Marks++
	case !l.Phase:
		f.marks++
		news.Lines = append(news.Lines, l)
	case l.Text != "" && f.stretches == MaxStretches:
		news.Lost.Stretches++
		f.endPhase(l.At, news)
	case l.Text != "":
		f.stretches++
		f.phase = true
		news.Lines = append(news.Lines, l)
	default:
		f.endPhase(l.At, news)
	}
}

// endPhase ends a phase that is on, at a time or, for NaN, now.
func (f *file) endPhase(at float64, news *News) {
	if f.phase {
		f.phase = false
		news.Lines = append(news.Lines, Line{Phase: true, At: at})
	}
}
