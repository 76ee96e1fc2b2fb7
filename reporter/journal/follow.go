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

// Follower reads a journal while its agent writes it: at each Look what is new, and
// everything once the agent has put a snapshot in the file's place. It only reads, so
// the agent does not notice. It is not safe for concurrent use.
type Follower struct {
	path string
	// file stays open, so that no other file gets its inode number: a replaced journal
	// is told by it.
	file    *os.File
	seen    int64 // size of the file at the last Look
	read    int64 // bytes of its whole lines
	journal reading
}

// Follow makes a Follower of a journal's path. Nothing is read yet.
func Follow(path string) *Follower { return &Follower{path: path} }

// Path is the journal's file.
func (f *Follower) Path() string { return f.path }

// Look reads what the journal has gained since the last Look, and tells whether that
// was a line. One of which only a part was written is left for later. The error is
// fs.ErrNotExist once the journal is gone: its report has taken its place. After any
// error what is known stays.
func (f *Follower) Look() (changed bool, err error) {
	there, err := os.Stat(f.path)
	if err != nil {
		return false, fmt.Errorf("follow journal: %w", err)
	}
	if !there.Mode().IsRegular() {
		return false, fmt.Errorf("follow journal %s: is not a file: %v", f.path, there.Mode())
	}
	if !f.isOpen(there) {
		return f.start()
	}
	return f.goOn()
}

// isOpen tells whether the file that has the journal's name is the open one.
func (f *Follower) isOpen(there os.FileInfo) bool {
	if f.file == nil {
		return false
	}
	ours, err := f.file.Stat()
	return err == nil && os.SameFile(ours, there)
}

// start opens the file that has the name now, and reads it all.
func (f *Follower) start() (changed bool, err error) {
	file, err := durable.OpenQuietly(f.path)
	if err != nil {
		return false, fmt.Errorf("follow journal: %w", err)
	}
	fresh := &Follower{path: f.path, file: file}
	if changed, err = fresh.goOn(); err != nil {
		file.Close()
		return false, err
	}
	f.Close()
	*f = *fresh
	return changed, nil
}

// goOn reads the open file from where the last whole line ended.
func (f *Follower) goOn() (changed bool, err error) {
	st, err := f.file.Stat()
	switch {
	case err != nil:
		return false, fmt.Errorf("follow journal: %w", err)
	case st.Size() > reporter.MaxFileSize:
		return false, fmt.Errorf("follow journal %s: is %d MiB large; at most %d MiB are read",
			f.path, st.Size()>>20, reporter.MaxFileSize>>20)
	case st.Size() == f.seen:
		return false, nil
	case st.Size() < f.read: // cut short by somebody else: what is left is all there is
		f.read, f.journal = 0, reading{}
	}

	data := make([]byte, st.Size()-f.read)
	n, err := f.file.ReadAt(data, f.read)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("follow journal: %w", err)
	}

	whole := bytes.LastIndexByte(data[:n], '\n') + 1
	for line := range lines(data[:whole]) {
		if err := f.journal.take(line); err != nil {
			return false, fmt.Errorf("follow journal %s: %w", f.path, err)
		}
	}

	f.read, f.seen = f.read+int64(whole), st.Size()
	return whole > 0, nil
}

// Report is what the whole lines tell: what Read gives of them. nil = there is no
// line yet.
func (f *Follower) Report() *reporter.Report {
	if f.journal.rec == nil {
		return nil
	}
	return f.journal.report()
}

// newestFor is for how long a value stands that newer samples lack: longer than the
// window that they need (collector.MinWindow).
const newestFor = 200 * time.Millisecond

// Newest gives the newest values by column, those of the newest sample, or where its
// window was too short to be measured of one just before it; NaN = not measured. It is
// nil when no sample was taken, or the journal of an older version does not tell.
func (f *Follower) Newest() []float64 {
	var out []float64
	for _, v := range f.journal.newest {
		age := f.journal.rec.End.Mono - f.journal.rec.Start.Mono - v.at
		if v.at == 0 || age > newestFor {
			v.value = math.NaN()
		}
		out = append(out, v.value)
	}
	return out
}

// Close lets the file go.
func (f *Follower) Close() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}
