package pusher

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// Some servers take few names of metrics a run, and refuse a request as a whole that has one more: Azure ML takes 50.
const (
	fewNames = 50
	endNames = 21  // the first of a report: perf.py's eighteen and three of the job
	fewItems = 200 // of one request that such a server takes
)

// TakesFewNames reports whether the server at a tracking URI is known to take few names of metrics a run.
func TakesFewNames(uri string, lookup func(string) (string, bool)) bool {
	if id, _ := lookup("AZUREML_RUN_ID"); id != "" {
		return true
	}
	u, err := url.Parse(strings.TrimSpace(uri))
	return err == nil && strings.HasSuffix(strings.ToLower(u.Hostname()), ".azureml.ms")
}

// refused reports whether a server refuses what a request has, and may take a part of it.
func refused(err error) bool {
	e, ok := errors.AsType[*mlflow.Error](err)
	return ok && e.Status == http.StatusBadRequest && e.Code == "INVALID_PARAMETER_VALUE"
}

// sendWithin sends batches that were refused, and those after them, as far as a run of few names has room for the names
// of their metrics, the most important first. The rest is left out, with a note.
func (p *Plan) sendWithin(ctx context.Context, refused []mlflow.Batch) error {
	var all mlflow.Batch
	for _, b := range refused {
		all.Metrics, all.Tags = append(all.Metrics, b.Metrics...), append(all.Tags, b.Tags...)
	}
	run, err := p.client.Run(ctx, p.Run.ID)
	if err != nil {
		return err
	}

	batches := mlflow.Split(mlflow.Batch{Tags: all.Tags})
	for piece := range slices.Chunk(p.within(newRoom(run, fewNames, 1), all.Metrics), fewItems) {
		batches = append(batches, mlflow.Batch{Metrics: piece})
	}
	for _, b := range batches {
		if err := logBatch(ctx, p.client, p.Run.ID, b); err != nil {
			return err
		}
	}
	return nil
}

// within returns the points that a run has room for. It notes the names that are left out.
func (p *Plan) within(r *room, all []mlflow.Metric) []mlflow.Metric {
	var names, leftOut []string
	seen := make(map[string]bool)
	for _, m := range all {
		if !seen[m.Key] {
			seen[m.Key] = true
			names = append(names, m.Key)
		}
	}
	order := importance()
	slices.SortStableFunc(names, func(a, b string) int { return order(a) - order(b) })
	for _, name := range names {
		if !r.admit(name) {
			leftOut = append(leftOut, name)
		}
	}
	if len(leftOut) > 0 {
		p.Notes = append(p.Notes, noteOf(leftOut))
	}

	return slices.DeleteFunc(all, func(m mlflow.Metric) bool {
		switch {
		case r.names[m.Key]:
			return false
		case strings.HasPrefix(m.Key, seriesPrefix):
			p.Points--
		default:
			p.Metrics--
		}
		return true
	})
}

// importance returns a function that ranks names of metrics: perf.py's eighteen, the job's, the other metrics, what has
// a folder of its own, and series.
func importance() func(key string) int {
	ranks := map[string]int{MetricExitCode: 1}
	for _, m := range reporter.Metrics() {
		switch {
		case m.PerfPy:
			ranks[m.Name] = 0
		case m.Name == reporter.MetricWall, strings.Contains(m.Name, "job_"): // max_t_job_…, too
			ranks[m.Name] = 1
		default:
			ranks[m.Name] = 2
		}
	}

	return func(key string) int {
		if rank, ok := ranks[key]; ok {
			return rank
		}
		if strings.HasPrefix(key, seriesPrefix) {
			return 4
		}
		return 3
	}
}

// noteOf says what was left out.
func noteOf(leftOut []string) string {
	var parts []string
	series := 0
	for _, key := range leftOut {
		if strings.HasPrefix(key, seriesPrefix) {
			series++
		} else {
			parts = append(parts, key)
		}
	}
	if series > 0 {
		parts = append(parts, text.Count(series, "series", "series"))
	}

	return "left out, because the server takes no more names of metrics in the run: " + strings.Join(parts, ", ")
}

// A room is how many more names of metrics may be made in a run.
type room struct {
	left  int
	names map[string]bool // those that may be sent
}

// newRoom returns the room that a run has for the names of each of the nodes that share it, if it takes most in all.
func newRoom(run *mlflow.Run, most, nodes int) *room {
	r := &room{left: max(0, most-len(run.Metrics)) / max(1, nodes), names: make(map[string]bool)}
	for key := range run.Metrics {
		r.names[key] = true
	}
	return r
}

// admit reports whether a name may be sent.
func (r *room) admit(name string) bool {
	if !r.names[name] && r.left > 0 {
		r.names[name] = true
		r.left--
	}
	return r.names[name]
}

// keep returns windows with those series only that there is room for, the job's first. A window that has none is gone.
func (r *room) keep(windows []window) []window {
	var out []window
	for _, w := range windows {
		for _, ofJob := range []bool{true, false} {
			for _, m := range w.points {
				_, name, _ := strings.Cut(strings.TrimPrefix(m.Key, seriesPrefix), "/")
				if strings.HasPrefix(name, "job_") == ofJob {
					r.admit(m.Key)
				}
			}
		}
		w.points = slices.DeleteFunc(slices.Clone(w.points), func(m mlflow.Metric) bool { return !r.names[m.Key] })
		if len(w.points) > 0 {
			out = append(out, w)
		}
	}
	return out
}
