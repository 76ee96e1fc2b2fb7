package mlflow

import (
	"context"
	"net/url"
	"strconv"
)

// historyPage is how many points of a metric are asked for at once: MLflow's own most. Without a number, MLflow 3.10
// answers with empty pages for ever.
const historyPage = 25000

// MetricHistory gets all points of a run's metric, in the server's order (time, then step); none is no error.
func (c *Client) MetricHistory(ctx context.Context, runID, key string) ([]Metric, error) {
	op := "get history of " + quote(key) + " of run " + quote(runID)
	var points []Metric
	var pages pager
	for {
		query := url.Values{"run_id": {runID}, "metric_key": {key}, "max_results": {strconv.Itoa(historyPage)}}
		if pages.token != "" {
			query.Set("page_token", pages.token)
		}
		var out struct {
			Metrics []metricAnswer `json:"metrics"`
			Next    string         `json:"next_page_token"`
		}
		if err := c.get(ctx, op, "metrics/get-history", query, &out); err != nil {
			return nil, err
		}
		for i := range out.Metrics {
			points = append(points, out.Metrics[i].metric())
		}
		more, err := pages.next(op, out.Next)
		if err != nil || !more {
			return points, err
		}
	}
}
