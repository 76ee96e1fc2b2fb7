package mlflow

import (
	"fmt"
	"strconv"
)

const (
	pageSize = 1000 // of searches; what MLflow has by default

	// How long a server that always names a next page is believed.
	maxPages        = 10_000
	experimentPages = 100
	emptyPages      = 100 // of an answer, among others that are not
)

// pager follows the tokens of an answer in pages.
type pager struct {
	token string // of the page to ask for; "": the first
	most  int    // pages; 0: maxPages
	pages int
	empty int // of them
}

// next takes the token of the next page, as an answer with so many items names it, and tells whether there is one. MLflow
// 3.10 had answers that named themselves as their next page.
func (p *pager) next(op, token string, items int) (more bool, err error) {
	p.pages++
	if items == 0 {
		p.empty++
	}
	most := p.most
	if most == 0 {
		most = maxPages
	}
	endless := func(why string) (bool, error) {
		return false, &Error{Op: op, Message: "the server's pages do not end: " + why, final: true}
	}
	switch {
	case token == "":
		return false, nil
	case token == p.token:
		return endless("one names itself as the next")
	case p.empty >= emptyPages:
		return endless(fmt.Sprintf("%d of them are empty", p.empty))
	case p.pages >= most:
		return endless(fmt.Sprintf("there are more than %d", most))
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
