package mlflow

import (
	"context"
	"fmt"
)

// Limits of what is believed of a server.
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
	var items []T
	token, empty := "", 0
	for page := 1; ; page++ {
		q, err := request(token, len(items))
		if err != nil {
			return nil, err
		}
		have, next := len(items), ""
		q.maxAnswer, q.memory = maxLargeAnswer, l.memory
		q.decode = func(d *decoder) (err error) {
			items, next, err = l.page(d, items[:have])
			return err
		}
		if err := c.do(ctx, q); err != nil {
			return nil, err
		}
		l.memory = q.memory

		if len(items) == have {
			empty++
		}
		if next == "" || l.enough > 0 && len(items) >= l.enough {
			return items, nil
		}
		if why := l.endless(page, empty, next == token); why != "" {
			return nil, &Error{Op: l.op, Message: "the server's pages do not end: " + why, final: true}
		}
		token = next
	}
}

// page decodes one page and appends its items to those of the pages before. next is the token of
// the page after it.
func (l *list[T]) page(d *decoder, before []T) (items []T, next string, err error) {
	items = before
	err = d.object(func(name string) error {
		switch name {
		case l.field:
			return d.array(func() error {
				if len(items) >= l.max {
					return tooMany(l.max, l.noun)
				}
				item, err := l.item(d)
				items = append(items, item)
				return err
			})
		case "next_page_token":
			return d.value(&next)
		}
		return d.skip()
	})
	return items, next, err
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
