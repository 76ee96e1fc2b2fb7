package pusher

import (
	"cmp"
	"context"
	"slices"

	"github.com/perfagent/perfagent/mlflow"
)

// A remoteState is the part of an MLflow run in a period. The run includes the latest point of each metric; the history
// of a metric is requested once, when it is needed.
type remoteState struct {
	client *mlflow.Client
	run    *mlflow.Run

	exclusive bool  // no other recording of the node has points in the run
	from, to  int64 // the period, in ms since 1970
	histories map[string]map[mlflow.Metric]bool
}

// newRemoteState returns the part of a run in a period. A nil run has no points.
func newRemoteState(c *mlflow.Client, run *mlflow.Run, from, to int64) *remoteState {
	return &remoteState{client: c, run: cmp.Or(run, &mlflow.Run{}), from: from, to: to,
		histories: make(map[string]map[mlflow.Metric]bool)}
}

// has reports whether the run has a point.
func (r *remoteState) has(ctx context.Context, m mlflow.Metric) (bool, error) {
	latest, ok := r.run.Metrics[m.Key]
	if !ok || latest == m {
		return ok, nil
	}
	history, err := r.history(ctx, m.Key)
	return history[m], err
}

// history returns the points of a metric in the period.
func (r *remoteState) history(ctx context.Context, key string) (map[mlflow.Metric]bool, error) {
	if history, ok := r.histories[key]; ok {
		return history, nil
	}

	points, err := r.client.MetricHistory(ctx, r.run.ID, key)
	if err != nil {
		return nil, err
	}
	history := make(map[mlflow.Metric]bool)
	for _, m := range points {
		if r.from <= m.Timestamp && m.Timestamp <= r.to {
			history[m] = true
		}
	}
	r.histories[key] = history
	return history, nil
}

// lastPoint returns the time of the last point of a recording that the run has, or −1 if it has none.
//
// Windows are sent in the order of time. Other recordings of the node may have points in the same series, and some may
// by chance have the same millisecond and value. So the run must have a point of each window up to the last one, and
// all points of that one. If it does not, lastPoint checks all points of each window.
func (r *remoteState) lastPoint(ctx context.Context, s nodeSeries, all []window) (int64, error) {
	switch last := len(all) - 1; {
	case last < 0:
		return -1, nil
	case s.thinned:
		return r.lastOfThinned(ctx, s, all)
	case r.exclusive && r.isLatest(all[last]):
		return all[last].end, nil
	}

	n, err := r.anchored(ctx, all)
	if err != nil || n == 0 {
		return -1, err
	}
	if whole, err := r.hasAll(ctx, all[n-1].points); err != nil || whole {
		return all[n-1].end, err
	}

	until := int64(-1)
	for _, w := range all[:n] {
		if whole, err := r.hasAll(ctx, w.points); err != nil || !whole {
			return until, err
		}
		until = w.end
	}
	return until, nil
}

// isLatest reports whether the latest points of the run are the points of w.
func (r *remoteState) isLatest(w window) bool {
	return !slices.ContainsFunc(w.points, func(m mlflow.Metric) bool {
		latest, ok := r.run.Metrics[m.Key]
		return !ok || latest != m
	})
}

// anchored returns the number of windows before the first one without its anchor in the run.
func (r *remoteState) anchored(ctx context.Context, all []window) (int, error) {
	keys := anchors(all)
	for i, w := range all {
		k := slices.IndexFunc(w.points, func(m mlflow.Metric) bool { return slices.Contains(keys, m.Key) })
		if has, err := r.has(ctx, w.points[k]); err != nil || !has {
			return i, err
		}
	}
	return len(all), nil
}

// hasAll reports whether the run has all points.
func (r *remoteState) hasAll(ctx context.Context, points []mlflow.Metric) (bool, error) {
	for _, m := range points {
		if has, err := r.has(ctx, m); err != nil || !has {
			return false, err
		}
	}
	return true, nil
}

// lastOfThinned is lastPoint for a recording that was thinned after its points were sent. Those were finer, so time and
// step must suffice to recognize one.
func (r *remoteState) lastOfThinned(ctx context.Context, s nodeSeries, all []window) (int64, error) {
	until := int64(-1)
	for _, key := range anchors(all) {
		latest, ok := r.run.Metrics[key]
		switch {
		case !ok:
		case s.mayHaveSent(latest, all):
			until = max(until, latest.Timestamp)
		default:
			history, err := r.history(ctx, key)
			if err != nil {
				return 0, err
			}
			for m := range history {
				if s.mayHaveSent(m, all) {
					until = max(until, m.Timestamp)
				}
			}
		}
	}

	return until, nil
}

// mayHaveSent reports whether a point may come from the series before it was thinned.
func (s nodeSeries) mayHaveSent(m mlflow.Metric, all []window) bool {
	if m.Timestamp < all[0].end || m.Timestamp > all[len(all)-1].end {
		return false
	}
	if m.Step == (m.Timestamp-s.start)/windowLength.Milliseconds() {
		return true
	}
	i, found := slices.BinarySearchFunc(all, m.Timestamp, compareEnd)
	return found && slices.Contains(all[i].points, m)
}

// compareEnd compares the end of a window with a time.
func compareEnd(w window, ms int64) int { return cmp.Compare(w.end, ms) }

// anchors returns a few series such that each window has a point of at least one of them.
func anchors(all []window) []string {
	var keys []string
	for rest := all; len(rest) > 0; {
		key := rest[0].points[len(rest[0].points)-1].Key
		keys = append(keys, key)

		rest = slices.DeleteFunc(slices.Clone(rest), func(w window) bool { return w.has(key) })
	}
	return keys
}

// has reports whether a window has a point in a series.
func (w window) has(key string) bool {
	return slices.ContainsFunc(w.points, func(m mlflow.Metric) bool { return m.Key == key })
}
