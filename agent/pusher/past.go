package pusher

import (
	"cmp"
	"context"
	"slices"

	"github.com/perfagent/perfagent/mlflow"
)

// past is what a run has already, of a time that is asked about. The latest point of each
// metric came with the run; a metric's history is asked for once, when it is needed.
type past struct {
	client *mlflow.Client
	run    *mlflow.Run // nil = none, which has nothing
	// alone tells that of a node no other recording's points are in the run.
	alone     bool
	from, to  int64 // ms since 1970
	histories map[string]map[mlflow.Metric]bool
}

func newPast(c *mlflow.Client, run *mlflow.Run, from, to int64) *past {
	return &past{client: c, run: run, from: from, to: to, histories: make(map[string]map[mlflow.Metric]bool)}
}

// latest is a metric's point of the highest step.
func (p *past) latest(key string) (m mlflow.Metric, there bool) {
	if p.run == nil {
		return m, false
	}
	m, there = p.run.Metrics[key]
	return m, there
}

// has tells whether the run has a point.
func (p *past) has(ctx context.Context, m mlflow.Metric) (bool, error) {
	latest, there := p.latest(m.Key)
	if !there || latest == m {
		return there, nil
	}
	history, err := p.history(ctx, m.Key)
	return history[m], err
}

// history is what the run has of a metric within the time.
func (p *past) history(ctx context.Context, key string) (map[mlflow.Metric]bool, error) {
	if history, asked := p.histories[key]; asked {
		return history, nil
	}
	points, err := p.client.MetricHistory(ctx, p.run.ID, key)
	if err != nil {
		return nil, err
	}
	history := make(map[mlflow.Metric]bool)
	for _, m := range points {
		if p.from <= m.Timestamp && m.Timestamp <= p.to {
			history[m] = true
		}
	}
	p.histories[key] = history
	return history, nil
}

// lastPoint is the time of the last point of a recording that the run has; −1 = none.
//
// Moments are sent in the order of time. Other recordings of the node may have points in
// the same series, and some of these may be, by chance, at the same millisecond and of the
// same value. So the run must have a point of each moment up to the last one, and all
// points of that. Where it has not, all points of each are looked for.
func (p *past) lastPoint(ctx context.Context, t track, all []moment) (int64, error) {
	switch last := len(all) - 1; {
	case last < 0:
		return -1, nil
	case t.thinned:
		return p.lastOfThinned(ctx, t, all)
	case p.alone && p.isLatest(all[last]):
		return all[last].at, nil
	}
	n, err := p.anchored(ctx, all)
	if err != nil || n == 0 {
		return -1, err
	}
	if whole, err := p.hasAll(ctx, all[n-1].points); err != nil || whole {
		return all[n-1].at, err
	}
	until := int64(-1)
	for _, m := range all[:n] {
		if whole, err := p.hasAll(ctx, m.points); err != nil || !whole {
			return until, err
		}
		until = m.at
	}
	return until, nil
}

// isLatest tells whether the latest points of the run are those of a moment.
func (p *past) isLatest(m moment) bool {
	return !slices.ContainsFunc(m.points, func(q mlflow.Metric) bool {
		latest, there := p.latest(q.Key)
		return !there || latest != q
	})
}

// anchored counts the moments, up to the first of which the run has no anchor.
func (p *past) anchored(ctx context.Context, all []moment) (int, error) {
	keys := anchors(all)
	for i, m := range all {
		k := slices.IndexFunc(m.points, func(q mlflow.Metric) bool { return slices.Contains(keys, q.Key) })
		if has, err := p.has(ctx, m.points[k]); err != nil || !has {
			return i, err
		}
	}
	return len(all), nil
}

func (p *past) hasAll(ctx context.Context, points []mlflow.Metric) (bool, error) {
	for _, m := range points {
		if has, err := p.has(ctx, m); err != nil || !has {
			return false, err
		}
	}
	return true, nil
}

// lastOfThinned is lastPoint of a recording that was thinned since: the points that were
// sent were finer, so that time and step of one must do.
func (p *past) lastOfThinned(ctx context.Context, t track, all []moment) (int64, error) {
	until := int64(-1)
	for _, key := range anchors(all) {
		latest, there := p.latest(key)
		switch {
		case !there:
		case t.made(latest, all):
			until = max(until, latest.Timestamp)
		default:
			history, err := p.history(ctx, key)
			if err != nil {
				return 0, err
			}
			for m := range history {
				if t.made(m, all) {
					until = max(until, m.Timestamp)
				}
			}
		}
	}
	return until, nil
}

// made tells whether a point may be one that was sent of a thinned track.
func (t track) made(m mlflow.Metric, all []moment) bool {
	if m.Timestamp < all[0].at || m.Timestamp > all[len(all)-1].at {
		return false
	}
	if m.Step == (m.Timestamp-t.start)/Window.Milliseconds() {
		return true
	}
	i, found := slices.BinarySearchFunc(all, m.Timestamp, func(a moment, at int64) int { return cmp.Compare(a.at, at) })
	return found && slices.Contains(all[i].points, m)
}

// anchors are the fewest series that have a point in every moment.
func anchors(all []moment) []string {
	var keys []string
	for rest := all; len(rest) > 0; {
		key := rest[0].points[len(rest[0].points)-1].Key
		keys = append(keys, key)
		var without []moment
		for _, m := range rest {
			if !m.has(key) {
				without = append(without, m)
			}
		}
		rest = without
	}
	return keys
}

// has tells whether a moment has a point in a series.
func (m moment) has(key string) bool {
	return slices.ContainsFunc(m.points, func(p mlflow.Metric) bool { return p.Key == key })
}
