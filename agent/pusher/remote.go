package pusher

import (
	"cmp"
	"context"
	"slices"

	"github.com/perfagent/perfagent/mlflow"
)

// A remoteState holds the points of an MLflow run in a period. The run includes the latest point of each metric. The
// history of a metric is requested only if it is needed, and then cached.
type remoteState struct {
	client *mlflow.Client
	run    *mlflow.Run

	exclusive bool  // no other recording of the node has points in the run
	from, to  int64 // the period, in ms since 1970
	histories map[string]map[mlflow.Metric]bool
}

// newRemoteState returns the state of run in the given period, in ms since 1970. A nil run has no points.
func newRemoteState(c *mlflow.Client, run *mlflow.Run, from, to int64) *remoteState {
	return &remoteState{client: c, run: cmp.Or(run, &mlflow.Run{}), from: from, to: to,
		histories: make(map[string]map[mlflow.Metric]bool)}
}

// has reports whether the run has the point m.
func (r *remoteState) has(ctx context.Context, m mlflow.Metric) (bool, error) {
	latest, ok := r.run.Metrics[m.Key]
	if !ok || latest == m {
		return ok, nil
	}
	history, err := r.history(ctx, m.Key)
	return history[m], err
}

// history returns the points of the metric key in the period.
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

// lastPoint returns the time of the recording's last point that is already in the run, or −1 if there is none.
//
// Windows are sent whole and in the order of time. Other recordings of the node may have points in the same series, and
// some may by chance have the same millisecond and value. So unless the run is exclusive, lastPoint counts the windows
// up to the first one without its anchor in the run. If the run has all points of the last counted window, the result
// is the time of that window. Otherwise, lastPoint checks all points of each window.
func (r *remoteState) lastPoint(ctx context.Context, s nodeSeries, all []window) (int64, error) {
	switch {
	case len(all) == 0:
		return -1, nil
	case s.thinned:
		return r.lastOfThinned(ctx, s, all)
	}
	for _, w := range slices.Backward(all) {
		if r.exclusive && r.isLatest(w) {
			return w.end, nil
		}
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

// isLatest reports whether each point of w is the latest one of its series in the run.
func (r *remoteState) isLatest(w window) bool {
	return !slices.ContainsFunc(w.points, func(m mlflow.Metric) bool {
		latest, ok := r.run.Metrics[m.Key]
		return !ok || latest != m
	})
}

// anchored returns the number of windows before the first one that has no anchor in the run.
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

// hasAll reports whether the run has all the given points.
func (r *remoteState) hasAll(ctx context.Context, points []mlflow.Metric) (bool, error) {
	for _, m := range points {
		if has, err := r.has(ctx, m); err != nil || !has {
			return false, err
		}
	}
	return true, nil
}

// lastOfThinned is lastPoint for a recording that was thinned after points were sent. The sent points are finer than
// the points of s, so time and step must suffice to recognize one.
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

// mayHaveSent reports whether m may be a point of s from before s was thinned.
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

// anchors returns the keys of a few series such that each window has a point in at least one of them.
func anchors(all []window) []string {
	var keys []string
	for rest := all; len(rest) > 0; {
		key := rest[0].points[len(rest[0].points)-1].Key
		keys = append(keys, key)

		rest = slices.DeleteFunc(slices.Clone(rest), func(w window) bool { return w.has(key) })
	}
	return keys
}

// has reports whether w has a point in the series key.
func (w window) has(key string) bool {
	return slices.ContainsFunc(w.points, func(m mlflow.Metric) bool { return m.Key == key })
}
