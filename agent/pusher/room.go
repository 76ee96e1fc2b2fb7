package pusher

import (
	"context"
	"errors"
	"fmt"
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

	// maxRefused is how many names by themselves are refused before the server is taken to be full: one may be refused
	// for another reason.
	maxRefused = 2
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

// A namedMetric is all points of one name.
type namedMetric struct {
	key    string
	points []mlflow.Metric
}

// A sieve finds out which names of metrics a run takes.
type sieve struct {
	log      func(mlflow.Batch) error
	admitted map[string]bool
	leftOut  []string
	failures int // names that were refused by themselves
}

// sendWithin sends batches that were refused, and those after them, as far as the run has room for the names of their
// metrics: the eighteen and the job's first. The rest is left out, with a note.
func (p *Plan) sendWithin(ctx context.Context, batches []mlflow.Batch, why error) error {
	var all mlflow.Batch
	for _, b := range batches {
		all.Metrics, all.Tags = append(all.Metrics, b.Metrics...), append(all.Tags, b.Tags...)
	}
	s := &sieve{admitted: make(map[string]bool), log: func(b mlflow.Batch) error {
		return logBatch(ctx, p.client, p.Run.ID, b)
	}}
	if err := s.sendAll(mlflow.Split(mlflow.Batch{Tags: all.Tags})); err != nil {
		return err
	}

	run, err := p.client.Run(ctx, p.Run.ID)
	if err != nil {
		return err
	}
	var unknown []namedMetric
	for _, m := range byName(all.Metrics) {
		if _, there := run.Metrics[m.key]; there {
			s.admitted[m.key] = true
		} else {
			unknown = append(unknown, m)
		}
	}
	rest, err := s.admit(unknown, all.Metrics, why)
	switch {
	case err != nil:
		return err
	case len(run.Metrics) == 0 && len(s.admitted) == 0: // it is not for want of room
		return why
	}
	if len(s.leftOut) > 0 {
		p.Notes = append(p.Notes, s.note())
	}
	for _, m := range all.Metrics {
		switch {
		case s.admitted[m.Key]:
		case strings.HasPrefix(m.Key, seriesPrefix):
			p.Points--
		default:
			p.Metrics--
		}
	}

	return s.sendAll(rest)
}

// byName returns points by their names, the most important first.
func byName(points []mlflow.Metric) []namedMetric {
	var out []namedMetric
	places := make(map[string]int)
	for _, m := range points {
		i, ok := places[m.Key]
		if !ok {
			i = len(out)
			places[m.Key] = i
			out = append(out, namedMetric{key: m.Key})
		}
		out[i].points = append(out[i].points, m)
	}

	order := importance()
	slices.SortStableFunc(out, func(a, b namedMetric) int { return order(a.key) - order(b.key) })

	return out
}

// importance returns a function that ranks names of metrics: perf.py's eighteen, the job's, the other metrics, what has a
// folder of its own, and series.
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

// admit finds out which names the run takes, by sending the first point of each. why is their refusal together. It
// returns what is still to be sent of all points.
func (s *sieve) admit(names []namedMetric, all []mlflow.Metric, why error) (rest []mlflow.Batch, err error) {
	if len(names) == 1 { // which may not be why
		why = nil
	}
	if err := s.try(names, why); err != nil {
		return nil, err
	}

	begun := make(map[string]bool)
	for _, m := range names {
		begun[m.key] = s.admitted[m.key]
	}
	var left []mlflow.Metric
	for _, m := range all {
		switch {
		case begun[m.Key]: // its first point was sent
			begun[m.Key] = false
		case s.admitted[m.Key]:
			left = append(left, m)
		}
	}
	for piece := range slices.Chunk(left, fewItems) {
		rest = append(rest, mlflow.Batch{Metrics: piece})
	}

	return rest, nil
}

// try sends the first point of each name, or of each half if they are refused. why is not nil if it is known that they
// are refused together.
func (s *sieve) try(names []namedMetric, why error) error {
	if len(names) == 0 {
		return nil
	}
	if s.failures >= maxRefused {
		s.leaveOut(names)
		return nil
	}
	if why == nil {
		var b mlflow.Batch
		for _, m := range names {
			b.Metrics = append(b.Metrics, m.points[0])
		}
		why = s.log(b)
	}

	switch {
	case why == nil:
		for _, m := range names {
			s.admitted[m.key] = true
		}
		return nil
	case !refused(why):
		return why
	case len(names) == 1:
		s.failures++
		s.leaveOut(names)
		return nil
	}
	half := (len(names) + 1) / 2
	if err := s.try(names[:half], nil); err != nil {
		return err
	}

	return s.try(names[half:], nil)
}

func (s *sieve) leaveOut(names []namedMetric) {
	for _, m := range names {
		s.leftOut = append(s.leftOut, m.key)
	}
}

func (s *sieve) sendAll(batches []mlflow.Batch) error {
	for _, b := range batches {
		if err := s.log(b); err != nil {
			return err
		}
	}
	return nil
}

// note says what was left out.
func (s *sieve) note() string {
	var parts []string
	series := 0
	for _, key := range s.leftOut {
		if strings.HasPrefix(key, seriesPrefix) {
			series++
		} else {
			parts = append(parts, key)
		}
	}
	if series > 0 {
		parts = append(parts, text.Count(series, "series", "series"))
	}

	return fmt.Sprintf("left out, because the server takes no more names of metrics in the run: %s", strings.Join(parts, ", "))
}

// A room is how many more names of series a live push may make in a run.
type room struct {
	left  int
	names map[string]bool // those that it may send
}

// newRoom returns the room that a run has: what comes at the end has its own. Nodes share it.
func newRoom(run *mlflow.Run, nodes int) *room {
	r := &room{left: max(0, fewNames-endNames-len(run.Metrics)) / max(1, nodes), names: make(map[string]bool)}
	for key := range run.Metrics {
		r.names[key] = true
	}
	return r
}

// keep returns windows with those series only that there is room for, the job's first. A window that has none is gone.
func (r *room) keep(windows []window) []window {
	var out []window
	for _, w := range windows {
		for _, ofJob := range []bool{true, false} {
			for _, m := range w.points {
				_, name, _ := strings.Cut(strings.TrimPrefix(m.Key, seriesPrefix), "/")
				if r.left > 0 && !r.names[m.Key] && strings.HasPrefix(name, "job_") == ofJob {
					r.names[m.Key] = true
					r.left--
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
