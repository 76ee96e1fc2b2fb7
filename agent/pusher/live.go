package pusher

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/retry"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

const (
	// ownRunAfter is how many windows perfagent waits for the job to create a run before it creates one. Nodes that are
	// not meant to create the run wait one more window.
	ownRunAfter = 3

	// maxLiveWindows and maxLiveBuckets limit one batch, so that catching up does not delay the sampling goroutine. The
	// rest goes into the next batch.
	maxLiveWindows = 100
	maxLiveBuckets = 4000

	// liveTimeout limits one push, and therefore the wait for a server that hangs.
	liveTimeout = 10 * time.Second

	// maxRest limits the pause after a failure.
	maxRest = 5 * time.Minute
)

// Live pushes the series of one node during its run. It never blocks the sampling: if the server is slow or
// unreachable, Live falls behind, and catches up later from the Recording's ring. Once the run is known, it sends one
// request per window.
type Live struct {
	about   journal.Head
	dest    Destination
	connect func() (*mlflow.Client, error)

	// Shared by the sampling goroutine and Run's goroutine. At most one batch is in progress.
	batches     chan liveBatch
	ready       atomic.Bool
	creatingRun atomic.Bool  // a run is being created, or may have been created
	sent        atomic.Int64 // time of the last point on the server, in ms since 1970

	step int64 // the window or slot of the last batch (see due); used only by the sampling goroutine

	filter seriesFilter // selects the series to push

	// Used only by Run's goroutine.
	client     *mlflow.Client
	run        *mlflow.Run
	nameBudget *nameBudget // nil unless the server limits the names of metrics
	unsure     bool        // the last request failed, but the server may have stored its points
	rest       time.Duration
}

// A liveBatch is one batch of windows for Run's goroutine, with the state of the Recording at that time.
type liveBatch struct {
	id      runIdentity
	windows []window
	start   int64
	thinned bool
	pace    pace
	at      time.Time // earliest time to send; zero means immediately
}

// NewLive prepares the push of a run. about describes the start of the run. Run calls connect once the first window is
// full.
func NewLive(about journal.Head, d Destination, connect func() (*mlflow.Client, error)) *Live {
	l := &Live{about: about, dest: d, connect: connect, batches: make(chan liveBatch, 1)}
	l.ready.Store(true)
	return l
}

// SetHostOnly makes the push leave out the job's series, because they cover only one of several ranks. The job's series
// of all ranks are sent when the ranks have ended. Call it before Observe.
func (l *Live) SetHostOnly() { l.filter = hostOnly }

// Observe hands over new windows to Run, if a window is full and no batch is in progress. The sampling goroutine calls
// it after each sample.
func (l *Live) Observe(rec *collector.Recording) {
	p := newPace(l.about.Identity, rec.Host.Hostname)
	step, at := l.due(p, rec)
	if step == l.step || !l.ready.CompareAndSwap(true, false) {
		return
	}
	l.step = step

	node := NodeName(strconv.Itoa(l.about.Node), l.about.Identity, rec.Host.Hostname)
	s := newLiveSeries(rec, node, l.sent.Load())
	s.maxWindows, s.filter = maxLiveWindows, l.filter
	windows := s.windows()
	if len(windows) == 0 {
		l.ready.Store(true)
		return
	}
	id := runIdentity{
		runID:      l.about.Run.ID,
		invocation: l.dest.Invocation,
		start:      l.about.Run.Start.Time,
		end:        rec.Start.Wall.Add(rec.End.Boot - rec.Start.Boot),
		nodes:      []string{node},
		createsRun: createsRun(l.about.Node, l.about.Identity),
		recordings: map[string]string{node: recordingID(l.about.Run.ID, node, s.start)},
	}
	// The channel has room, because this goroutine holds ready.
	l.batches <- liveBatch{id: id, windows: windows, start: s.start, thinned: s.thinned, pace: p, at: at}
}

// due returns the number of the newest window or slot, and the earliest time to send a batch for it. A node without
// peers sends the window of the newest sample immediately. A node with peers sends in its slot, even between two
// samples.
func (l *Live) due(p pace, rec *collector.Recording) (step int64, at time.Time) {
	if !p.hasPeers() {
		return int64((rec.End.Boot - rec.Start.Boot) / windowLength), at
	}

	now := time.Now()
	step = p.slot(now.Add(rec.Interval))

	return step, p.begin(min(step, p.slot(now)+1))
}

// newLiveSeries returns at most maxLiveBuckets buckets of rec's ring, which end later than after (in ms since 1970).
func newLiveSeries(rec *collector.Recording, node string, after int64) nodeSeries {
	first := sort.Search(rec.Ring.Len(), func(i int) bool { return bucketEnd(rec, i) > after })
	s := nodeSeries{
		node:    node,
		start:   rec.Start.Wall.UnixMilli(),
		thinned: rec.Ring.Stride() > 1,
		running: true,
	}
	s.from = s.start
	if first > 0 {
		s.from = bucketEnd(rec, first-1)
	}

	s.samples, s.envelope = reporter.NewSeries(rec, first, min(rec.Ring.Len(), first+maxLiveBuckets))
	s.job = recordingJobSeries(rec)
	for _, g := range rec.GPUs {
		s.gpus = append(s.gpus, reporter.GPU{MemoryMB: g.MemoryMB, PowerLimitWatts: g.PowerLimitWatts})
	}
	return s
}

// bucketEnd returns the time of the last sample in bucket i of the ring, in ms since 1970.
func bucketEnd(rec *collector.Recording, i int) int64 {
	return int64(rec.Ring.Bucket(i).Stats[collector.Timestamp].Max*1000 + 0.5)
}

// Run pushes the batches from Observe until ctx ends.
func (l *Live) Run(ctx context.Context) {
	defer func() {
		if l.client != nil {
			l.client.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-l.batches:
			if retry.Wait(ctx, time.Until(b.at)) != nil || !l.pause(ctx, l.push(ctx, b)) {
				return
			}
			l.ready.Store(true)
		}
	}
}

// RunID returns the ID of the run that Run found or created, or "" if there is none yet. Call it after Run has
// returned.
func (l *Live) RunID() string { return cmp.Or(l.run, &mlflow.Run{}).ID }

// MayHaveCreatedRun reports whether the server may have created a run that RunID does not return.
func (l *Live) MayHaveCreatedRun() bool { return l.creatingRun.Load() }

// sentUntil returns the time of the last point sent to run runID, in ms since 1970, or −1 if there is none. The time is
// not certain if the response to a later request was lost. Call it after Run has returned.
func (l *Live) sentUntil(runID string) (until int64, certain bool) {
	if l.RunID() != runID || l.sent.Load() == 0 {
		return -1, false
	}
	return l.sent.Load(), !l.unsure
}

// pause waits after a failure, for as long as the server asks. After permanent failures, each pause is twice as long as
// the previous one, so that a wrong password does not lock an account. It returns false if ctx ended.
func (l *Live) pause(ctx context.Context, err error) bool {
	if err == nil {
		l.rest = 0
		return true
	}

	wait := min(mlflow.RetryAfter(err), maxRest)
	if !mlflow.Temporary(err) {
		l.rest = min(max(2*l.rest, windowLength), maxRest)
		wait = max(wait, l.rest)
	}
	return retry.Wait(ctx, wait) == nil
}

// push sends a batch. While there is no run, it only looks for one, and creates it when it is due.
func (l *Live) push(ctx context.Context, b liveBatch) error {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()

	if l.client == nil {
		c, err := l.connect()
		if err != nil {
			return err
		}
		l.client = c
	}
	if l.run == nil {
		created, err := l.findRun(ctx, b)
		// A server takes seconds to return a run that has the series of many nodes. So every node finds the run before
		// any node sends.
		if err != nil || l.run == nil || b.pace.hasPeers() && !created {
			return err
		}
	}

	if l.dest.LimitsNames {
		if l.nameBudget == nil {
			l.nameBudget = newNameBudget(l.run, b.pace.nodes)
		}
		if b.windows = l.nameBudget.keep(b.windows); len(b.windows) == 0 {
			return nil
		}
	}

	// A given run may have points of other recordings, and separating them from ours would take many requests. So in a
	// given run we resend our points: databases store identical points once.
	if l.unsure && (l.dest.RunID == "" || b.thinned) {
		if err := l.updateSent(ctx, b); err != nil {
			return err
		}
	}
	return l.send(ctx, b.windows)
}

// updateSent asks the server for the last point that it has, after the response to a request was lost.
func (l *Live) updateSent(ctx context.Context, b liveBatch) error {
	run, err := l.client.Run(ctx, l.run.ID)
	if err != nil {
		return err
	}
	state := newRemoteState(l.client, run, b.windows[0].end, b.windows[len(b.windows)-1].end)
	state.exclusive = l.dest.RunID == ""
	until, err := state.lastPoint(ctx, nodeSeries{start: b.start, thinned: b.thinned}, b.windows)
	if err != nil {
		return err
	}
	l.sent.Store(max(l.sent.Load(), until))
	return nil
}

// send sends the windows that end after l.sent.
func (l *Live) send(ctx context.Context, windows []window) error {
	first, _ := slices.BinarySearchFunc(windows, l.sent.Load()+1, compareEnd)
	for _, b := range pack(nil, nil, windows[first:]) {
		if err := logBatch(ctx, l.client, l.run.ID, b); err != nil {
			l.unsure = true
			return err
		}
		l.sent.Store(b.Metrics[len(b.Metrics)-1].Timestamp)
	}
	l.unsure = false
	return nil
}

// findRun finds the run, or creates one if the windows show that the job has had enough time to do so.
func (l *Live) findRun(ctx context.Context, b liveBatch) (created bool, err error) {
	if l.dest.RunID != "" {
		run, err := l.client.Run(ctx, l.dest.RunID)
		if err == nil {
			err = checkActive(run)
		}
		if err == nil {
			l.run = run
		}
		return false, err
	}

	found, err := b.id.search(ctx, l.client, l.dest)
	if err != nil || found.run != nil && !found.otherNode {
		l.run = found.run
		return false, err
	}
	minWindows := int64(ownRunAfter)
	if !b.id.createsRun {
		minWindows++
	}
	full := b.windows[len(b.windows)-1].step + 1
	if full < minWindows {
		return false, nil
	}
	if found.run != nil { // another node's job created the run, and our job has created none so far
		l.run = found.run
		return false, nil
	}
	if !b.id.createsRun && full < minWindows+b.pace.slack() {
		return false, nil
	}

	l.creatingRun.Store(true)
	name := runName(&reporter.Report{Run: l.about.Run})
	l.run, err = b.id.create(ctx, l.client, l.dest, found.experiments, name)
	l.creatingRun.Store(err != nil)
	return err == nil, err
}
