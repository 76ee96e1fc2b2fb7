package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plainjson"
	"github.com/perfagent/perfagent/reporter"
)

// Schema is the format of the journal file.
const Schema = "perfagent.journal/1"

const (
	// syncAfter is how long a line may wait for fsync: below the 5 s within
	// which every sample is promised to be on disk.
	syncAfter = 3 * time.Second
	// maxGrowth is how many bytes of lines are appended before the journal is
	// rewritten from the ring and the summaries.
	maxGrowth = 384 << 10
	// maxSize is what a journal of the default --max-length never exceeds.
	maxSize = 2 << 20
	// retryAfter is how long a journal that could not be written rests.
	retryAfter = 5 * time.Second
	// queueLength is how many samples may wait for a slow disk.
	queueLength = 64
)

// Head is the first line of a journal: what is known at the start.
type Head struct {
	Journal string         `json:"journal"` // Schema
	Run     reporter.Run   `json:"run"`
	Node    int            `json:"node"`
	Agent   reporter.Agent `json:"agent"`
	// Interval and MaxLength are those of the sampling.
	Interval  time.Duration `json:"interval_ns"`
	MaxLength int           `json:"max_length"`
	// Columns are the keys of the values of each sample, in their order.
	Columns []string `json:"columns"`
	// Push is where the report is to be pushed.
	Push reporter.PushState `json:"push,omitzero"`
	// Cost tells the CPU seconds that the agent itself has used so far. It is asked
	// once a sample, in the sampling goroutine; nil = not known.
	Cost func() float64 `json:"-"`
}

// Journal keeps the samples of a run on disk while it goes on, as JSON Lines
// beside the report to come. It never makes the sampling wait: lines go through
// a short queue to a goroutine of its own, and what a slow or full disk does not
// take is made up for by a rewrite later, for which the Recording has everything.
type Journal struct {
	path, reportPath string
	head             []byte
	cost             func() float64
	queue            chan entry
	signals          chan collector.Signal // never closed
	done             chan struct{}
	// wantSnapshot asks the sampling goroutine for a copy of the Recording.
	wantSnapshot atomic.Bool
	written      metaKey // of the sampling goroutine: what the last line told
	w            writer
}

// entry is a line to append, or a Recording to rewrite the file from.
type entry struct {
	line     []byte
	snapshot *collector.Recording
	newest   newestSample // of the snapshot
}

// Create claims the name of a recording in dir, which must exist:
// node-N, or node-N.2 and so on when a recording of that node is there already.
// The journal itself is the claim; two agents at once get two names.
func Create(dir string, head Head) (*Journal, error) {
	head.Journal, head.Columns = Schema, keysOf(firstColumns())
	line, err := plainjson.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("create journal in %s: %w", dir, err)
	}

	f, reportPath, err := claim(dir, head.Node)
	if err != nil {
		return nil, fmt.Errorf("create journal in %s: %w", dir, err)
	}

	j := &Journal{path: f.Name(), reportPath: reportPath, head: append(line, '\n'), cost: head.Cost,
		queue: make(chan entry, queueLength), signals: make(chan collector.Signal, queueLength),
		done: make(chan struct{})}
	j.w = writer{journal: j, file: f, bound: maxGrowth}
	if err := j.w.write(j.head); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, fmt.Errorf("create journal %s: %w", j.path, err)
	}

	go j.w.run()
	return j, nil
}

// claim creates the first free journal of a node and names its report.
func claim(dir string, node int) (*os.File, string, error) {
	for k := 1; ; k++ {
		base := filepath.Join(dir, "node-"+strconv.Itoa(node))
		if k > 1 {
			base += "." + strconv.Itoa(k)
		}
		if exists(base+".json") || exists(base+".html") {
			continue
		}
		f, err := os.OpenFile(base+".jsonl", os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if exists(base + ".json") { // written, and its journal removed, in between
			f.Close()
			os.Remove(f.Name())
			continue
		}
		hold(f)
		return f, base + ".json", nil
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Path is the journal's file; ReportPath is the claimed name of the report.
func (j *Journal) Path() string       { return j.path }
func (j *Journal) ReportPath() string { return j.reportPath }

// Observe takes one sample. It is called in the sampling goroutine, by
// collector.Options.Observe, and never waits for the disk.
func (j *Journal) Observe(s *collector.Sample, rec *collector.Recording) {
	var e entry
	if j.wantSnapshot.CompareAndSwap(true, false) {
		values := reporter.Numbers(pick(s.Values[:], columnsOf(rec)))
		e.snapshot, e.newest = rec.Clone(), newestSample{values, j.ownCPU()}
	} else {
		e.line = j.line(s, rec)
	}
	select {
	case j.queue <- e:
	default: // the disk is behind: start anew from a snapshot when it recovers
		j.wantSnapshot.Store(true)
	}
}

// Stop ends the writing, for at most the given time: a disk that hangs must not
// keep the job's exit waiting. It returns what was wrong with the journal, if
// anything was.
func (j *Journal) Stop(patience time.Duration) error {
	close(j.queue)
	select {
	case <-j.done:
		return j.w.firstErr
	case <-time.After(patience):
		return fmt.Errorf("write journal %s: the disk did not answer within %v", j.path, patience)
	}
}

// Keep makes a stopped journal durable, for when no report takes its place.
func (j *Journal) Keep() error {
	return j.w.file.Sync()
}

// Remove deletes a stopped journal: its report is safely in place.
func (j *Journal) Remove() error {
	return errors.Join(j.w.file.Close(), os.Remove(j.path))
}
