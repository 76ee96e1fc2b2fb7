package mlflow

import (
	"context"
	"net/url"
	"strconv"
)

const (
	// historyPage is how many points are requested at once, which is MLflow's maximum. Without a
	// number, MLflow 3.10 answers with empty pages for ever.
	historyPage = 25000

	// maxPoints limits a metric's history. Servers of 2.x send all of it at once.
	maxPoints = 2_000_000
)

// MetricHistory returns all points of a run's metric in the server's order, by time and then by
// step. No points are no error; more than 2,000,000 are one.
func (c *Client) MetricHistory(ctx context.Context, runID, key string) ([]Metric, error) {
	points := list[Metric]{
		op:       "get history of " + quote(key) + " of run " + quote(runID),
		field:    "metrics",
		noun:     "points",
		item:     func(d *decoder) (Metric, error) { return d.point(key) },
		max:      maxPoints,
		maxPages: maxPages,
		memory:   memory{limit: maxHistoryMemory},
	}
	return fetch(ctx, c, points, func(token string, _ int) (*call, error) {
		query := url.Values{"run_id": {runID}, "metric_key": {key}, "max_results": {strconv.Itoa(historyPage)}}
		if token != "" {
			query.Set("page_token", token)
		}
		return c.newGet(points.op, "metrics/get-history", query, nil), nil
	})
}

// point decodes a point of the metric called key.
func (d *decoder) point(key string) (Metric, error) {
	var a metricAnswer
	if err := d.value(&a); err != nil {
		return Metric{}, err
	}
	if a.Key == key {
		a.Key = key // one text for all of them
		return a.metric(), d.memory.take(pointCost)
	}
	return a.metric(), d.memory.take(pointCost, a.Key)
}
