package mlflow

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
)

// Limits on lists.
const (
	maxItems      = 2_000_000 // items in a list without a limit
	maxPages      = 10_000
	maxEmptyPages = 100 // total number, even with other pages in between
)

// A list describes a paged list on the server.
type list[T any] struct {
	noun  string // name of the items in errors
	limit int    // maximum number of items: fetch stops there, and fails if a page exceeds it; 0 means all items

	maxPages int  // more pages are an error
	memory   int  // maximum bytes of all pages
	small    bool // items are small: maxItems bounds the list, and memory limits each page instead of all pages

	items   func(*page) []T
	request func(token string, have int) *call // for the page with token; have is the number of items so far
}

// A page is one page of a list.
type page struct {
	Runs        array[runJSON]    `json:"runs"`
	Experiments array[Experiment] `json:"experiments"`
	Metrics     array[metricJSON] `json:"metrics"`
	Next        string            `json:"next_page_token"` // "" on the last page
}

// fetch requests all pages of a list, one after the other.
func fetch[T any](ctx context.Context, c *Client, l list[T]) ([]T, error) {
	var all []T
	token, empty, used := "", 0, 0
	for pages := 1; ; pages++ {
		q := l.request(token, len(all))
		q.before, q.maxMemory = used, l.memory
		var p page
		q.out = &p
		if err := c.do(ctx, q); err != nil {
			return nil, err
		}

		if !l.small {
			used = q.memory
		}
		items := l.items(&p)
		all = append(all, items...)
		if len(items) == 0 {
			empty++
		}
		why := "" // why the list does not end; "" if it may still end
		switch most := cmp.Or(l.limit, maxItems); {
		case len(all) > most:
			return nil, q.failed(0, tooMany(fmt.Sprintf("%d %s", most, l.noun)))
		case p.Next == "" || l.limit > 0 && len(all) == l.limit:
			return all, nil
		case p.Next == token: // MLflow 3.10 sent such pages
			why = "one page names itself as the next"
		case empty >= maxEmptyPages:
			why = fmt.Sprintf("%d of them are empty", empty)
		case pages >= l.maxPages:
			why = fmt.Sprintf("there are more than %d", l.maxPages)
		}
		if why != "" {
			return nil, q.failed(0, "the server's list of pages does not end: "+why)
		}
		token = p.Next
	}
}

// historyPage is the number of points per request, which is MLflow's maximum. If the request does not set the number,
// MLflow 3.10 responds with empty pages forever. MLflow 2.x servers send all points in one page.
const historyPage = 25000

// MetricHistory returns all points of a run's metric in the server's order, by time and then by step. An empty history
// is not an error. A history of more than 2,000,000 points is an error.
func (c *Client) MetricHistory(ctx context.Context, runID, key string) ([]Metric, error) {
	op := "get history of " + quote(key) + " of run " + quote(runID)
	return fetch(ctx, c, list[Metric]{
		noun: "points", maxPages: maxPages, memory: maxListMemory, small: true,
		items: func(p *page) (out []Metric) {
			for _, m := range p.Metrics {
				if m.Key == key {
					m.Key = key // all points share one string
				}
				out = append(out, m.metric())
			}
			return out
		},
		request: func(token string, _ int) *call {
			query := url.Values{"run_id": {runID}, "metric_key": {key}, "max_results": {strconv.Itoa(historyPage)}}
			if token != "" {
				query.Set("page_token", token)
			}
			return c.newGet(op, "metrics/get-history", query, nil)
		},
	})
}
