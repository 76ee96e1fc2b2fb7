package mlflow

import (
	"context"
	"net/url"
	"slices"
	"strconv"
)

// historyPage is how many points of a metric are asked for at once: MLflow's own most. Without a number, MLflow 3.10
// answers with empty pages for ever.
const historyPage = 25000

// MetricHistory gets all points of a run's metric, in the server's order (time, then step); none is no error, more
// than 2,000,000 are one.
func (c *Client) MetricHistory(ctx context.Context, runID, key string) ([]Metric, error) {
	op := "get history of " + quote(key) + " of run " + quote(runID)
	var points [][]Metric
	count := 0
	var pages pager
	left := int64(keepHistory)
	for {
		query := url.Values{"run_id": {runID}, "metric_key": {key}, "max_results": {strconv.Itoa(historyPage)}}
		if pages.token != "" {
			query.Set("page_token", pages.token)
		}
		page := pointList{key: key, most: maxPoints - count}
		q := c.newGet(op, "metrics/get-history", query, &page)
		q.keep = left
		if err := c.do(ctx, q); err != nil {
			return nil, err
		}
		left -= q.kept
		points, count = append(points, page.points...), count+page.count
		more, err := pages.next(op, page.next, page.count)
		if err != nil {
			return nil, err
		}
		if !more {
			return slices.Concat(points...), nil
		}
	}
}
