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

// LimitsMetricNames reports whether the server at uri is known to limit the number of metric names in a run: Azure ML
// accepts 50. A live push would use them up. lookup returns environment variables: jobs of Azure ML have
// AZUREML_RUN_ID.
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

// sendImportant sends the batches that a server refused with the error why, without the metrics that are neither in the
// run nor important. A server that limits the names of metrics refuses a whole request if it has one too many.
func (p *Plan) sendImportant(ctx context.Context, batches []mlflow.Batch, why error) error {
	run, err := p.client.Run(ctx, p.Run.ID)
	if err != nil {
		return err
	}

	var kept mlflow.Batch
	metrics, series := make(map[string]bool), make(map[string]bool) // names that are left out
	for _, b := range batches {
		kept.Tags = append(kept.Tags, b.Tags...)
		for _, m := range b.Metrics {
			switch _, there := run.Metrics[m.Key]; {
			case there || isImportant(m.Key):
				kept.Metrics = append(kept.Metrics, m)
			case strings.HasPrefix(m.Key, seriesPrefix):
				series[m.Key] = true
				p.Points--
			default:
				metrics[m.Key] = true
				p.Metrics--
			}
		}
	}
	if len(metrics)+len(series) == 0 { // the names are not the reason
		return why
	}

	p.Notes = append(p.Notes, fmt.Sprintf("left out, because the server refused them: %s and %d series",
		text.Count(len(metrics), "metric", "metrics"), len(series)))
	for _, b := range mlflow.Split(kept) {
		if err := logBatch(ctx, p.client, p.Run.ID, b); err != nil {
			return err
		}
	}
	return nil
}

// isImportant reports whether a metric is sent to a server that limits the names of metrics: the 18 metrics that
// perf.py also has, and four of the job.
func isImportant(key string) bool {
	switch key {
	case MetricExitCode, reporter.MetricWall, reporter.MetricJobCPU, reporter.MetricJobMemoryPeak:
		return true
	}
	return slices.ContainsFunc(reporter.Metrics(), func(m reporter.Metric) bool { return m.PerfPy && m.Name == key })
}
