package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const apiPath = "/api/2.0/mlflow/"

// A call is one request and what becomes of its answer.
type call struct {
	op     string // for errors: "create run in experiment 1"
	method string
	url    string // without query
	query  url.Values

	body        []byte
	contentType string

	// decode reads the JSON of an answer. It starts afresh on each try. If it is nil, the answer
	// has no content.
	decode    func(*decoder) error
	maxAnswer int64  // limit in bytes of the answer that decode reads
	memory    memory // budget of decode

	// creates is set if doing it twice makes two of something. Then it is not sent again where the
	// server may have done it.
	creates bool

	// maxTries, if positive, limits how often the call is tried while the server answers with
	// status 500.
	maxTries int

	// foreign is set if the call goes to another host than the tracking server, and therefore
	// without credentials.
	foreign bool
}

// newGet returns a call that reads something below apiPath.
func (c *Client) newGet(op, path string, query url.Values, decode func(*decoder) error) *call {
	return &call{
		op:        op,
		method:    http.MethodGet,
		url:       c.config.URI + apiPath + path,
		query:     query,
		decode:    decode,
		maxAnswer: maxSmallAnswer,
	}
}

// newPost returns a call that sends in as JSON to something below apiPath.
func (c *Client) newPost(op, path string, in any, decode func(*decoder) error) (*call, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("%s: encode the request: %w", op, err)
	}

	q := c.newGet(op, path, nil, decode)
	q.method, q.body, q.contentType = http.MethodPost, body, "application/json"
	return q, nil
}

// post sends in as JSON to something below apiPath.
func (c *Client) post(ctx context.Context, op, path string, in any, decode func(*decoder) error) error {
	q, err := c.newPost(op, path, in, decode)
	if err != nil {
		return err
	}
	return c.do(ctx, q)
}

// longWait is after which time Config.OnWait is called.
const longWait = 5 * time.Second

// try sends a call once and follows redirects. Config.Timeout covers all of it.
func (c *Client) try(ctx context.Context, q *call) *Error {
	ctx, stop := context.WithTimeout(ctx, c.config.Timeout)
	defer stop()
	if c.config.OnWait != nil {
		waiting := time.AfterFunc(longWait, func() { c.config.OnWait(q.op, c.config.Timeout) })
		defer waiting.Stop()
	}

	target := q.url
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	for range maxRedirects {
		resp, err := c.send(ctx, q, target)
		if err != nil {
			return c.noAnswer(q, err)
		}
		next, e := c.redirect(q, target, resp)
		if next == "" {
			defer resp.Body.Close()
			if e == nil {
				e = c.read(q, resp)
			}
			return e
		}
		resp.Body.Close()
		target = next
	}
	return &Error{Op: q.op, URL: q.url, Message: "too many redirects", final: true}
}

// errBadURL reports that the address of an artifact store makes no sense. All other addresses are
// checked before.
var errBadURL = errors.New("the address is malformed")

// send sends one HTTP request and returns the response, whose body is still to be read.
func (c *Client) send(ctx context.Context, q *call, target string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(q.body))
	if err != nil {
		return nil, errBadURL // err quotes it
	}
	if q.body == nil {
		req.Body, req.GetBody = nil, nil
	}

	set := func(key, value string) {
		if value != "" {
			req.Header.Set(key, value)
		}
	}
	set("Content-Type", q.contentType)
	set("User-Agent", c.config.UserAgent)
	set("X-Mlflow-Workspace", c.config.Workspace)
	set("Accept", "application/json")

	switch {
	case q.foreign:
	case c.config.basic():
		req.SetBasicAuth(c.config.Username, c.config.Password)
	case c.config.Token != "":
		set("Authorization", "Bearer "+c.config.Token)
	}

	sent := time.Now()
	resp, err := c.transport.RoundTrip(req)
	if err == nil && !q.foreign {
		c.clock.note(sent, time.Now(), resp.Header)
	}

	return resp, err
}
