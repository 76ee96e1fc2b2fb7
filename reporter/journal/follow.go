package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/reporter"
)

// A Follower reads a journal while its agent writes it. Each Poll reads the new lines, or everything if the
// agent has replaced the file with a snapshot. A Follower only reads, so it does not affect the agent.
// It is not safe for concurrent use.
type Follower struct {
	path string
	// file stays open so that no other file gets its inode number, by which a replaced journal is recognized.
	file   *os.File
	seen   int64 // size of the file at the last Poll
	read   int64 // bytes of complete lines
	parser parser
}

// Follow returns a Follower of the journal at path. It reads nothing yet.
func Follow(path string) *Follower { return &Follower{path: path} }

// Path returns the path of the journal.
func (f *Follower) Path() string { return f.path }

// Poll reads the lines added to the journal since the last Poll. It reports whether there were any, and leaves an
// incomplete line for later. The error is fs.ErrNotExist after the report has replaced the journal. After an error, the
// lines read before are kept.
func (f *Follower) Poll() (changed bool, err error) {
	there, err := os.Stat(f.path)
	if err != nil {
		return false, fmt.Errorf("follow journal: %w", err)
	}
	if !there.Mode().IsRegular() {
		return false, fmt.Errorf("follow journal %s: is not a file: %v", f.path, there.Mode())
	}
	if f.file != nil {
		if ours, err := f.file.Stat(); err == nil && os.SameFile(ours, there) {
			return f.continueReading()
		}
	}
	return f.start()
}

// start opens the file at path, and reads all of it.
func (f *Follower) start() (changed bool, err error) {
	file, err := durable.OpenNoAtime(f.path)
	if err != nil {
		return false, fmt.Errorf("follow journal: %w", err)
	}
	fresh := &Follower{path: f.path, file: file}
	if changed, err = fresh.continueReading(); err != nil {
		file.Close()
		return false, err
	}
	f.Close()
	*f = *fresh
	return changed, nil
}

// continueReading reads the open file from the end of the last complete line.
func (f *Follower) continueReading() (changed bool, err error) {
	st, err := f.file.Stat()
	switch {
	case err != nil:
		return false, fmt.Errorf("follow journal: %w", err)
	case st.Size() > reporter.MaxFileSize:
		return false, fmt.Errorf("follow journal %s: is %d MiB large; at most %d MiB are read",
			f.path, st.Size()>>20, reporter.MaxFileSize>>20)
	case st.Size() == f.seen:
		return false, nil
	case st.Size() < f.read: // truncated by another program: start over
		f.read, f.parser = 0, parser{}
	}

	data := make([]byte, st.Size()-f.read)
	n, err := f.file.ReadAt(data, f.read)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("follow journal: %w", err)
	}

	whole := bytes.LastIndexByte(data[:n], '\n') + 1
	for line := range lines(data[:whole]) {
		if err := f.parser.take(line); err != nil {
			return false, fmt.Errorf("follow journal %s: %w", f.path, err)
		}
	}

	f.read, f.seen = f.read+int64(whole), st.Size()
	return whole > 0, nil
}

// Report returns the report of all complete lines, like Parse, or nil if there is no line yet.
func (f *Follower) Report() *reporter.Report {
	if f.parser.rec == nil {
		return nil
	}
	return f.parser.report()
}

// maxValueAge is the time for which a value stays valid if newer samples lack it. It is longer than the minimum window
// of a sample (collector.MinWindow).
const maxValueAge = 200 * time.Millisecond

// Newest returns the newest values by column: from the newest sample or, if its window was too short, from a sample
// just before that. NaN means not measured. The result is nil if no sample was taken.
func (f *Follower) Newest() []float64 {
	var out []float64
	for _, v := range f.parser.newest {
		age := f.parser.rec.End.Mono - f.parser.rec.Start.Mono - v.at
		if v.at == 0 || age > maxValueAge {
			v.value = math.NaN()
		}
		out = append(out, v.value)
	}
	return out
}

// Close closes the file.
func (f *Follower) Close() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}
