package pusher

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

const (
	// ownRunAfter is how many windows the job's own run is waited for before one of
	// our own is made; other nodes than 0 wait one more, for node 0's.
	ownRunAfter = 3
	// liveMoments and liveBuckets are how much is handed over at once: more follows
	// next time, so that catching up is no burden to the sampling goroutine.
	liveMoments = 100
	liveBuckets = 4000
	// liveTimeout bounds one request, and so how long a server that hangs is waited for.
	liveTimeout = 10 * time.Second
	// longestRest is the longest pause after failures that will not pass by themselves.
	longestRest = 5 * time.Minute
)

// Live pushes the series of one node while its run goes on. Nothing waits for it: a
// server that is slow or gone makes it fall behind, and it catches up later, from
// the Recording's ring. Once the run is known it asks once per window.
type Live struct {
	about   journal.Head
	dest    Destination
	connect func() (*mlflow.Client, error)

	// Between the sampling goroutine and ours: at most one hand-over is under way.
	handed chan handover
	ready  atomic.Bool
	makes  atomic.Bool  // a run is being made, or may have been
	sent   atomic.Int64 // ms since 1970 of the last point that the server has

	step int64 // of the sampling goroutine: of the newest sample

	// Of our own goroutine.
	client  *mlflow.Client
	run     *mlflow.Run
	unsure  bool // a request failed half-way: the server may have its points
	resting time.Duration
}

// handover is what is to be sent; all the later is known then, too.
type handover struct {
	id      identity
	moments []moment
	start   int64
	thinned bool
}

// NewLive prepares the pushing of a run, of which about tells the start. connect is
// called once the first window is full, in the goroutine of Run.
func NewLive(about journal.Head, d Destination, connect func() (*mlflow.Client, error)) *Live {
	l := &Live{about: about, dest: d, connect: connect, handed: make(chan handover, 1)}
	l.ready.Store(true)
	return l
}

// Observe looks at the Recording after each sample, in the sampling goroutine. It
// hands over what is to be sent when a window is full and nothing else is under way.
func (l *Live) Observe(rec *collector.Recording) {
	step := int64((rec.End.Boot - rec.Start.Boot) / Window)
	if step == l.step || !l.ready.CompareAndSwap(true, false) {
		return
	}
	l.step = step
	t := liveTrack(rec, nodeName(l.about.Node), l.sent.Load())
	t.most = liveMoments
	all := t.moments()
	if len(all) == 0 {
		l.ready.Store(true)
		return
	}
	id := identity{runID: l.about.Run.ID, invocation: l.dest.Invocation, start: l.about.Run.Start.Time,
		end: rec.Start.Wall.Add(rec.End.Boot - rec.Start.Boot), nodes: []string{nodeName(l.about.Node)},
		recordings: map[string]string{nodeName(l.about.Node): recording(l.about.Run.ID, nodeName(l.about.Node), t.start)}}
	l.handed <- handover{id: id, moments: all, start: t.start, thinned: t.thinned} // there is room: ready was ours
}

// liveTrack is the part of a Recording's ring that comes after a time, or its first
// buckets where there are many.
func liveTrack(rec *collector.Recording, node string, after int64) track {
	t := track{node: node, start: rec.Start.Wall.UnixMilli(), thinned: rec.Ring.Stride() > 1, goesOn: true}
	t.from = t.start
	lo, hi := 0, rec.Ring.Len()
	for lo < hi { // the first bucket that ends later
		mid := (lo + hi) / 2
		if end := bucketEnd(rec, mid); end > after {
			hi = mid
		} else {
			lo, t.from = mid+1, end
		}
	}
	hi = min(rec.Ring.Len(), lo+liveBuckets)
	t.samples, t.envelope = reporter.NewSeries(rec, lo, hi)
	for _, g := range rec.GPUs {
		t.gpus = append(t.gpus, device{float64(g.MemoryMB), float64(g.PowerLimitWatts)})
	}
	return t
}

func nodeName(node int) string { return strconv.Itoa(node) }

func bucketEnd(rec *collector.Recording, i int) int64 {
	return int64(rec.Ring.Bucket(i).Stats[collector.Timestamp].Max*1000 + 0.5)
}

// Run pushes what Observe hands over, until ctx ends.
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
		case h := <-l.handed:
			err := l.push(ctx, h)
			if !l.rest(ctx, err) {
				return
			}
			l.ready.Store(true)
		}
	}
}

// RunID is the run that Run found or made, once Run has ended; "" = none yet.
func (l *Live) RunID() string {
	if l.run == nil {
		return ""
	}
	return l.run.ID
}

// MayHaveMade tells whether a run may have been made of which Run does not know.
func (l *Live) MayHaveMade() bool { return l.makes.Load() }

// sentUntil is the time of the last point that was sent to a run, in ms since 1970; −1 =
// none was. It is not sure where the answer to a later request was lost. Once Run has ended.
func (l *Live) sentUntil(runID string) (until int64, sure bool) {
	if l.RunID() != runID || l.sent.Load() == 0 {
		return -1, false
	}
	return l.sent.Load(), !l.unsure
}

// rest waits after a failure: as long as the server asks for, and ever longer where
// it will not pass by itself, so that a wrong password does not lock an account.
func (l *Live) rest(ctx context.Context, err error) bool {
	if err == nil {
		l.resting = 0
		return true
	}
	pause := min(mlflow.RetryAfter(err), longestRest)
	if !mlflow.Temporary(err) {
		l.resting = min(max(2*l.resting, Window), longestRest)
		pause = max(pause, l.resting)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// push sends moments, once the run is known.
func (l *Live) push(ctx context.Context, h handover) error {
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
		if err := l.findRun(ctx, h); err != nil || l.run == nil {
			return err
		}
	}
	// In a given run there may be other recordings, of which it would take many questions to
	// tell our points. There they are sent again: databases keep them once.
	if l.unsure && (l.dest.RunID == "" || h.thinned) {
		if err := l.askHowFar(ctx, h); err != nil {
			return err
		}
	}
	return l.send(ctx, h.moments)
}

// askHowFar asks for the last point that the server has, where the answer to a request was
// lost.
func (l *Live) askHowFar(ctx context.Context, h handover) error {
	run, err := l.client.Run(ctx, l.run.ID)
	if err != nil {
		return err
	}
	there := newPast(l.client, run, h.moments[0].at, h.moments[len(h.moments)-1].at)
	there.alone = l.dest.RunID == ""
	until, err := there.lastPoint(ctx, track{start: h.start, thinned: h.thinned}, h.moments)
	if err != nil {
		return err
	}
	l.sent.Store(max(l.sent.Load(), until))
	return nil
}

func (l *Live) send(ctx context.Context, moments []moment) error {
	sent := l.sent.Load()
	for len(moments) > 0 && moments[0].at <= sent {
		moments = moments[1:]
	}
	for _, b := range pack(nil, nil, moments) {
		if err := logBatch(ctx, l.client, l.run.ID, b); err != nil {
			l.unsure = true
			return err
		}
		l.sent.Store(b.Metrics[len(b.Metrics)-1].Timestamp)
	}
	l.unsure = false
	return nil
}

// findRun finds the run, or makes one when the job's own was waited for long enough.
func (l *Live) findRun(ctx context.Context, h handover) error {
	if l.dest.RunID != "" {
		run, err := l.client.Run(ctx, l.dest.RunID)
		if err == nil {
			err = active(run)
		}
		if err == nil {
			l.run = run
		}
		return err
	}
	f, err := h.id.search(ctx, l.client, l.dest)
	if err != nil || f.run != nil && !f.others {
		l.run = f.run
		return err
	}
	patience := int64(ownRunAfter)
	if !h.id.first() {
		patience++
	}
	if h.moments[len(h.moments)-1].step+1 < patience {
		return nil
	}
	if f.run != nil { // another node's job made it, and ours none so far
		l.run = f.run
		return nil
	}
	report := &reporter.Report{Run: l.about.Run}
	l.makes.Store(true)
	l.run, err = h.id.create(ctx, l.client, l.dest, f.experiments, runName(report))
	l.makes.Store(err != nil)
	return err
}
