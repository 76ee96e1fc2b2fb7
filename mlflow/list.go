package mlflow

import (
	"context"
	"fmt"
	"slices"
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
			p = page[T]{list: &l, max: l.max - count}
			return p.decode(d)
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
	list  *list[T]
	max   int // items
	items [][]T
	count int
	next  string // token of the page after it; "" for the last one
}

func (p *page[T]) decode(d *decoder) error {
	return d.object(func(name string) error {
		switch name {
		case p.list.field:
			return d.array(func() error { return p.add(d) })
		case "next_page_token":
			return d.value(&p.next)
		}
		return d.skip()
	})
}

// add decodes one item.
func (p *page[T]) add(d *decoder) error {
	if p.count >= p.max {
		return tooMany(p.list.max, p.list.noun)
	}
	if p.count%chunk == 0 {
		p.items = append(p.items, nil)
	}
	item, err := p.list.item(d)
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
	return excessError(fmt.Sprintf("the answer is not MLflow's: there are more than %d %s in it", max, noun))
}
