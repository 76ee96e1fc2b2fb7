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

// Some servers limit the number of metric names in a run, and reject a whole request if it exceeds the limit. Azure
// ML's limit is 50.
const (
	maxRunNames = 50
	endNames    = 21  // reserved for the report: the 18 metrics that perf.py also has, and three of the job
	fewItems    = 200 // points in one request to such a server

	// maxRefused is how many names the server must refuse, each sent alone, before we consider the run full. A single
	// name may be refused for another reason.
	maxRefused = 2
)

// LimitsMetricNames reports whether the server at uri is known to limit the number of metric names in a run. lookup
// returns environment variables: jobs of Azure ML have AZUREML_RUN_ID.
func LimitsMetricNames(uri string, lookup func(string) (string, bool)) bool {
	if id, _ := lookup("AZUREML_RUN_ID"); id != "" {
		return true
	}
	u, err := url.Parse(strings.TrimSpace(uri))
	return err == nil && strings.HasSuffix(strings.ToLower(u.Hostname()), ".azureml.ms")
}

// refused reports whether err means that the server rejected the content of a request, but may accept a part of it.
func refused(err error) bool {
	e, ok := errors.AsType[*mlflow.Error](err)
	return ok && e.Status == http.StatusBadRequest && e.Code == "INVALID_PARAMETER_VALUE"
}

// A nameProbe determines which metric names a run accepts, by sending the first point of each metric.
type nameProbe struct {
	send     func([]mlflow.Metric) error
	admitted map[string]bool
	failures int // number of names that were refused when sent alone
}

// sendWithinLimit sends the metrics of the rejected batches as far as the run accepts their names, the most important
// first. A note names the metrics that are left out. why is the server's error.
func (p *Plan) sendWithinLimit(ctx context.Context, batches []mlflow.Batch, why error) error {
	var all mlflow.Batch
	for _, b := range batches {
		all.Metrics, all.Tags = append(all.Metrics, b.Metrics...), append(all.Tags, b.Tags...)
	}
	for _, b := range mlflow.Split(mlflow.Batch{Tags: all.Tags}) {
		if err := logBatch(ctx, p.client, p.Run.ID, b); err != nil {
			return err
		}
	}

	run, err := p.client.Run(ctx, p.Run.ID)
	if err != nil {
		return err
	}
	s := &nameProbe{admitted: make(map[string]bool), send: func(points []mlflow.Metric) error {
		return logBatch(ctx, p.client, p.Run.ID, mlflow.Batch{Metrics: points})
	}}
	for key := range run.Metrics {
		s.admitted[key] = true
	}
	firsts := firstPoints(all.Metrics, run.Metrics)
	together := why
	if len(firsts) == 1 { // something other than the name may be the reason
		together = nil
	}
	if err := s.probe(firsts, together); err != nil {
		return err
	}
	if len(s.admitted) == 0 { // the names are not the reason
		return why
	}
	for part := range slices.Chunk(p.unsentPoints(s, all.Metrics, firsts), fewItems) {
		if err := s.send(part); err != nil {
			return err
		}
	}
	return nil
}

// unsentPoints returns the points in all that remain to be sent, after s has probed firsts, the first point of each new
// name. It adds a note about the names that are left out.
func (p *Plan) unsentPoints(s *nameProbe, all, firsts []mlflow.Metric) (rest []mlflow.Metric) {
	var leftOut []string
	sent := make(map[mlflow.Metric]bool)
	for _, m := range firsts {
		if sent[m] = s.admitted[m.Key]; !sent[m] {
			leftOut = append(leftOut, m.Key)
		}
	}
	if len(leftOut) > 0 {
		p.Notes = append(p.Notes, noteOf(leftOut))
	}

	for _, m := range all {
		switch {
		case sent[m]:
		case s.admitted[m.Key]:
			rest = append(rest, m)
		case strings.HasPrefix(m.Key, seriesPrefix):
			p.Points--
		default:
			p.Metrics--
		}
	}
	return rest
}

// firstPoints returns the first point of each name that is not in has (the metrics of the run), the most important
// first.
func firstPoints(points []mlflow.Metric, has map[string]mlflow.Metric) []mlflow.Metric {
	var out []mlflow.Metric
	seen := make(map[string]bool)
	for _, m := range points {
		if _, there := has[m.Key]; !there && !seen[m.Key] {
			seen[m.Key] = true
			out = append(out, m)
		}
	}

	order := importance()
	slices.SortStableFunc(out, func(a, b mlflow.Metric) int { return order(a.Key) - order(b.Key) })
	return out
}

// importance returns a function that ranks names of metrics. In order of importance: the 18 metrics that perf.py also
// has, the metrics of the job, the other metrics of the node, names with a folder (such as phase/…), and series.
func importance() func(key string) int {
	ranks := map[string]int{MetricExitCode: 1}
	for _, m := range reporter.Metrics() {
		switch {
		case m.PerfPy:
			ranks[m.Name] = 0
		case m.Name == reporter.MetricWall, strings.Contains(m.Name, "job_"): // includes max_t_job_…
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

// probe sends points, all with different names. If the server refuses them, it bisects: it probes each half. why, if
// not nil, is the error with which the server has already refused them together.
func (s *nameProbe) probe(points []mlflow.Metric, why error) error {
	if len(points) == 0 || s.failures >= maxRefused {
		return nil
	}
	if why == nil {
		why = s.send(points)
	}

	switch {
	case why == nil:
		for _, m := range points {
			s.admitted[m.Key] = true
		}
		return nil
	case !refused(why):
		return why
	case len(points) == 1:
		s.failures++
		return nil
	}
	half := (len(points) + 1) / 2
	if err := s.probe(points[:half], nil); err != nil {
		return err
	}
	return s.probe(points[half:], nil)
}

// noteOf returns a note about the names in leftOut.
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

	return "left out, because the server accepts no more metric names in the run: " + strings.Join(parts, ", ")
}

// A nameBudget limits how many new names of series a live push creates in a run.
type nameBudget struct {
	left  int
	names map[string]bool // names that may be sent
}

// newNameBudget returns the budget of one of the given number of nodes: an equal share of the names that run still
// accepts beyond those reserved for the end.
func newNameBudget(run *mlflow.Run, nodes int) *nameBudget {
	r := &nameBudget{left: max(0, maxRunNames-endNames-len(run.Metrics)) / max(1, nodes), names: make(map[string]bool)}
	for key := range run.Metrics {
		r.names[key] = true
	}
	return r
}

// keep returns windows without the series that exceed the budget. The job's series use the budget first. Windows
// without points are left out.
func (r *nameBudget) keep(windows []window) []window {
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
