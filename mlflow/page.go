package mlflow

import (
	"fmt"
	"strconv"
)

const (
	pageSize = 1000 // of searches; what MLflow has by default

	// maxPages bounds how long a server that always names a next page is believed.
	maxPages = 100_000
)

// pager follows the tokens of an answer in pages.
type pager struct {
	token string // of the page to ask for; "": the first
	pages int
}

// next takes the token of the next page, as the answer names it, and tells whether there is one. MLflow 3.10 had answers
// that named themselves as their next page.
func (p *pager) next(op, token string) (more bool, err error) {
	p.pages++
	if token == "" {
		return false, nil
	}
	if token == p.token || p.pages >= maxPages {
		return false, &Error{Op: op, Message: "the server's pages do not end", final: true}
	}
	p.token = token
	return true, nil
}

// lacks is the error for an answer without what every server puts into it.
func (c *Client) lacks(op, path, field string) *Error {
	return &Error{Op: op, URL: c.config.URI + apiPath + path, Status: 200, final: true,
		Message: fmt.Sprintf("the answer has no %s", field),
		advice:  "is this an MLflow server? check host, port and path of MLFLOW_TRACKING_URI"}
}

// quote shows a name of unknown length and contents.
func quote(name string) string { return strconv.Quote(shorten(name, 100)) }
