package mlflow

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
)

// Limits on what a server may send.
const (
	maxPages      = 10_000
	maxEmptyPages = 100 // of a list, among others that are not empty

	maxListMemory    = 32 << 20  // bytes for what one answer has, or a list of known length
	maxHistoryMemory = 256 << 20 // bytes for all points of a history, and for a list of any length
)

// Estimates in bytes of what an item of a list takes beside its texts, with what slices and maps
// hold in reserve.
const (
	runCost        = 600
	metricCost     = 96 // in a map
	tagCost        = 64
	experimentCost = 80
	pointCost      = 96
)

// A list describes a list that the server hands out in pages.
type list[T any] struct {
	op    string // for errors: "search runs"
	field string // of an answer that has the items
	noun  string // what the items are called in errors

	item   func(*decoder) (T, error) // decodes one
	max    int                       // more items are an error
	enough int                       // with so many no further page is requested; 0: all are wanted

	maxPages int // more are an error
	memory   memory
}

// A pageRequest returns the call for the page of a token, which is "" for the first one. have is
// the number of items on the pages before.
type pageRequest func(token string, have int) (*call, error)

// fetch requests all pages of a list, one after the other.
func fetch[T any](ctx context.Context, c *Client, l list[T], request pageRequest) ([]T, error) {
	var items [][]T
	token, count, empty := "", 0, 0
	for pages := 1; ; pages++ {
		q, err := request(token, count)
		if err != nil {
			return nil, err
		}
		var p page[T]
		q.maxAnswer, q.memory = maxLargeAnswer, l.memory
		q.decode = func(d *decoder) error {
			p = page[T]{}
			return d.object(func(name string) error {
				switch name {
				case l.field:
					return d.array(func() error { return p.add(d, &l, l.max-count) })
				case "next_page_token":
					return d.value(&p.next)
				}
				return d.skip()
			})
		}
		if err := c.do(ctx, q); err != nil {
			return nil, err
		}

		l.memory = q.memory
		items, count = append(items, p.items...), count+p.count
		if p.count == 0 {
			empty++
		}
		if p.next == "" || l.enough > 0 && count >= l.enough {
			return slices.Concat(items...), nil
		}
		if why := l.endless(pages, empty, p.next == token); why != "" {
			return nil, &Error{Op: l.op, Message: "the server's pages do not end: " + why, final: true}
		}
		token = p.next
	}
}

// chunk is how many items one slice holds while it is not known how many there are. A slice that
// grows to 2,000,000 leaves several times its size to the garbage collector.
const chunk = 1 << 16

// A page is one of a list.
type page[T any] struct {
	items [][]T
	count int
	next  string // token of the page after it; "" for the last one
}

// add decodes one item, unless the page has so many.
func (p *page[T]) add(d *decoder, l *list[T], most int) error {
	if p.count >= most {
		return tooMany(l.max, l.noun)
	}
	if p.count%chunk == 0 {
		p.items = append(p.items, nil)
	}
	item, err := l.item(d)
	last := &p.items[len(p.items)-1]
	*last = append(*last, item)
	p.count++
	return err
}

// endless returns why no further page is requested although the server names one, or "". MLflow
// 3.10 had answers that named themselves as their next page.
func (l *list[T]) endless(pages, empty int, sameToken bool) string {
	switch {
	case sameToken:
		return "one names itself as the next"
	case empty >= maxEmptyPages:
		return fmt.Sprintf("%d of them are empty", empty)
	case pages >= l.maxPages:
		return fmt.Sprintf("there are more than %d", l.maxPages)
	}
	return ""
}

// tooMany returns the error for a list that is longer than any that was asked for.
func tooMany(max int, noun string) error {
	return excess("the answer is not MLflow's: there are more than %d %s in it", max, noun)
}

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
	err := d.value(&a)
	if a.Key == key {
		a.Key = key // one text for all of them
		return a.metric(), cmp.Or(err, d.memory.take(pointCost))
	}
	return a.metric(), cmp.Or(err, d.memory.take(pointCost, a.Key))
}
