package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Schema is the format of the journal file.
const Schema = "perfagent.journal/1"

const (
	// syncAfter is the longest time that a line waits for fsync: less than the 5 s within which every sample is
	// promised to be on disk. If a line arrives when the oldest one has waited for syncWithLine, both are synced
	// together, which saves a wake-up.
	syncAfter    = 4500 * time.Millisecond
	syncWithLine = 3500 * time.Millisecond
	// maxGrowth is the number of appended bytes after which the journal is rewritten from the ring and the summaries.
	maxGrowth = 384 << 10
	// maxSize is the maximum size of a journal with the default --max-length.
	maxSize = 2 << 20
	// retryAfter is the pause after a failure to write the journal.
	retryAfter = 5 * time.Second
	// queueLength is the number of samples that may wait for a slow disk.
	queueLength = 64
)

// A Head is the first line of a journal, written at the start.
type Head struct {
	Journal string       `json:"journal"` // Schema
	Run     reporter.Run `json:"run"`
	Node    int          `json:"node"`
	// Identity is the job, node and rank of the process; nil if only the host is known.
	Identity *reporter.Identity `json:"identity,omitempty"`
	// Name is the name of the journal and the report, without extension: see BaseName. "" means the name for Node
	// alone.
	Name string `json:"-"`
	// Rank is the rank of the job, as decimal text; "" if the job seems to be the only one on its node.
	Rank  string         `json:"rank,omitempty"`
	Agent reporter.Agent `json:"agent"`
	// Interval and MaxLength are the options of the sampling.
	Interval  time.Duration `json:"interval_ns"`
	MaxLength int           `json:"max_length"`
	// Columns are the keys of the values of each sample, in order.
	Columns []string `json:"columns"`
	// Counters are the keys of the counters since boot in each line, in order.
	Counters []string `json:"counters,omitempty"`
	// Operations reports whether operations are recorded.
	Operations bool `json:"operations,omitzero"`
	// CopyAggregator returns a copy of the Aggregator if its Changes differ from changes, and nil otherwise. The
	// journal's goroutine calls it. CopyAggregator is nil without operations.
	CopyAggregator func(changes uint64) *aggregate.Aggregator `json:"-"`
	// Push is the destination of the report.
	Push reporter.PushState `json:"push,omitzero"`
	// AgentCPUSeconds returns the CPU seconds that the agent has used so far. The sampling goroutine calls it once per
	// sample. nil means unknown.
	AgentCPUSeconds func() float64 `json:"-"`
}

// A Journal keeps the samples of an active run on disk, as JSON lines in the directory of the future report. It never
// blocks sampling: lines go through a short queue to another goroutine. If the disk is slow or full, a later rewrite
// restores the lines that were not written, because the Recording contains everything.
type Journal struct {
	path, reportPath string
	head             []byte
	agentCPUSeconds  func() float64
	queue            chan entry
	signals          chan collector.Signal // never closed
	done             chan struct{}
	// wantSnapshot asks the sampling goroutine for a copy of the Recording.
	wantSnapshot atomic.Bool
	lastStateKey stateKey        // of the last line; used only by the sampling goroutine
	lastMarks    marksLine       // in the last line with marks; used only by the sampling goroutine
	table        writtenTable    // used only by the sampling goroutine
	deaths       *process.Deaths // in the last line; used only by the sampling goroutine
	w            writer

	copyAggregator func(changes uint64) *aggregate.Aggregator // of operations; nil if they are not recorded
	timelineCount  int                                        // named so far; used only by the sampling goroutine
}

// An entry is a line to append, or a Recording to rewrite the file from.
type entry struct {
	line     []byte
	snapshot *collector.Recording
	newest   newestSample // of the snapshot
}

// Create creates a journal in dir, which must exist. The journal claims the name of a recording: head.Name, followed by
// .2 and so on if a recording already has that name. Two agents that start at the same time get different names,
// because only one of them can create the file.
func Create(dir string, head Head) (*Journal, error) {
	columns := firstColumns()
	head.Journal, head.Columns, head.Counters = Schema, keysOf(columns), keysOf(countersOf(columns))
	head.Operations = head.CopyAggregator != nil
	line, err := text.JSON(&head)
	if err != nil {
		return nil, fmt.Errorf("create journal in %s: %w", dir, err)
	}

	f, reportPath, err := claim(filepath.Join(dir, cmp.Or(head.Name, BaseName(head.Node, "", ""))))
	if err != nil {
		return nil, fmt.Errorf("create journal in %s: %w", dir, err)
	}

	j := &Journal{
		path: f.Name(), reportPath: reportPath, head: append(line, '\n'), agentCPUSeconds: head.AgentCPUSeconds,
		queue: make(chan entry, queueLength), signals: make(chan collector.Signal, queueLength),
		done: make(chan struct{}), copyAggregator: head.CopyAggregator,
	}
	j.w = writer{journal: j, file: f, bound: maxGrowth}
	if err := j.w.write(j.head); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, fmt.Errorf("create journal %s: %w", j.path, err)
	}

	go j.w.run()
	return j, nil
}

// BaseName returns the name of a node's first journal and report, without extensions: node-0. Without an index, the
// name contains the host name instead, and for one of several ranks it also contains the rank: node-gpu7.rank-3.
func BaseName(node int, host, rank string) string {
	name := "node-" + cmp.Or(host, strconv.Itoa(node))
	if rank != "" {
		name += ".rank-" + rank
	}

	return name
}

// IsNameTaken reports whether any recording has the given path, without extension.
func IsNameTaken(path string) bool {
	return exists(path+".json") || exists(path+".html") || exists(path+".jsonl")
}

// claim creates the journal with the first free name: name, name.2 and so on. It returns the journal with the path of
// its report.
func claim(name string) (*os.File, string, error) {
	for k := 1; ; k++ {
		base := name
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
		if exists(base + ".json") { // another agent wrote the report and removed its journal
			f.Close()
			os.Remove(f.Name())
			continue
		}
		lockShared(f)
		return f, base + ".json", nil
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Path returns the path of the journal.
func (j *Journal) Path() string { return j.path }

// ReportPath returns the claimed path of the report.
func (j *Journal) ReportPath() string { return j.reportPath }

// Observe queues one sample for the journal. The sampling goroutine calls it through collector.Options.Observe. It
// never waits for the disk.
func (j *Journal) Observe(s *collector.Sample, rec *collector.Recording) {
	var e entry
	if j.wantSnapshot.CompareAndSwap(true, false) {
		values := reporter.Numbers(pick(s.Values[:], columnsOf(rec)))
		e.snapshot, e.newest = rec.Clone(), newestSample{values, j.ownCPU()}
		j.deaths = rec.Deaths
	} else {
		e.line = j.line(s, rec)
	}

	select {
	case j.queue <- e:
	default: // the disk is slow: continue with a snapshot when it recovers
		j.wantSnapshot.Store(true)
	}
}

// Stop stops writing. It waits no longer than timeout, because a blocked disk must not delay the job's exit. It returns
// the first error of the journal.
func (j *Journal) Stop(timeout time.Duration) error {
	close(j.queue)
	select {
	case <-j.done:
		return j.w.firstErr
	case <-time.After(timeout):
		return fmt.Errorf("write journal %s: the disk did not answer within %v", j.path, timeout)
	}
}

// Sync makes a stopped journal durable, for a run that gets no report.
func (j *Journal) Sync() error { return j.w.file.Sync() }

// Remove deletes a stopped journal after its report was written.
func (j *Journal) Remove() error {
	return errors.Join(j.w.file.Close(), os.Remove(j.path))
}
