package mlflow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

const (
	apiPath = "/api/2.0/mlflow/"

	smallAnswer = 4 << 20  // bytes, decompressed, of an answer about one thing
	largeAnswer = 64 << 20 // of one with a list; it is not in memory at once
	errorAnswer = 64 << 10 // of what is no answer of MLflow's; 300 characters of it are shown
)

// call is one request, and where its answer goes.
type call struct {
	op     string // for errors
	method string
	url    string // without query
	query  url.Values

	body        []byte
	contentType string

	out   any   // a pointer to what the JSON answer is decoded into, or a streamed; nil: an answer without content
	limit int64 // of the answer, in bytes
	keep  int64 // of the memory that a streamed may take, in bytes
	kept  int64 // of it taken by the answer

	// creates is true when doing it twice makes two, so that it is not sent again where the server may have done it.
	creates bool

	// tries, where not 0, limits how often a 500 is answered by trying again.
	tries int

	// foreign is true when it goes to another host than the tracking server, thus without credentials.
	foreign bool
}

// get asks for something below apiPath.
func (c *Client) get(ctx context.Context, op, path string, query url.Values, out any) error {
	return c.do(ctx, c.newGet(op, path, query, out))
}

func (c *Client) newGet(op, path string, query url.Values, out any) *call {
	return (&call{op: op, method: http.MethodGet, url: c.config.URI + apiPath + path, query: query, out: out}).bounds()
}

// bounds sets what an answer may have.
func (q *call) bounds() *call {
	q.limit, q.keep = smallAnswer, keepLists
	if _, list := q.out.(streamed); list {
		q.limit = largeAnswer
	}
	return q
}

// post sends a request's fields as JSON to something below apiPath.
func (c *Client) post(ctx context.Context, op, path string, in, out any) error {
	q, err := c.newPost(op, path, in, out)
	if err != nil {
		return err
	}
	return c.do(ctx, q)
}

func (c *Client) newPost(op, path string, in, out any) (*call, error) {
	if out == nil {
		out = new(struct{}) // what MLflow answers when there is nothing to say
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("%s: encode the request: %w", op, err)
	}
	q := &call{op: op, method: http.MethodPost, url: c.config.URI + apiPath + path, body: body,
		contentType: "application/json", out: out}
	return q.bounds(), nil
}

// do sends a request until it succeeds, fails for good, or neither tries nor time are left. The error is an *Error.
func (c *Client) do(ctx context.Context, q *call) error {
	var before *Error // of the try before
	for try := 1; ; try++ {
		e := c.try(ctx, q)
		if e == nil {
			return nil
		}
		e.tries = try
		if ctx.Err() != nil {
			return timeUp(ctx, e, before)
		}
		if !e.temporary() || try > c.config.MaxRetries || e.Status == http.StatusInternalServerError && try == q.tries || q.creates && e.heard() {
			return e
		}
		wait := c.wait(try, e)
		if c.config.OnRetry != nil && !c.config.OnRetry(e, wait) {
			return e
		}
		if err := pause(ctx, wait); err != nil {
			if ctx.Err() != nil {
				e.Err = errors.Join(ctx.Err(), e.Err)
			}
			return e
		}
		before = e
	}
}

func done(status int) bool { return status >= 200 && status < 300 }

// wait is how long to wait after try number n (1, 2, …) failed with e: urllib3's arithmetic.
func (c *Client) wait(n int, e *Error) time.Duration {
	if e.RetryAfter > 0 && !c.config.IgnoreRetryAfter {
		return e.RetryAfter
	}
	if n <= 1 {
		return 0
	}
	seconds := c.config.BackoffJitter*rand.Float64() + c.config.BackoffFactor*float64(int64(1)<<min(n-1, 40))
	if limit := c.config.MaxBackoff; seconds >= limit.Seconds() {
		return limit
	}
	return time.Duration(max(seconds, 0) * float64(time.Second))
}

// errNoTime is the error of a pause that would outlast the context.
var errNoTime = errors.New("no time left for another try")

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return errNoTime
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// timeUp is the error of a request during which the context ended: what was asked, that the time was up, and what had
// gone wrong before, if anything.
func timeUp(ctx context.Context, e, before *Error) *Error {
	e.Err, e.Status, e.Code, e.advice, e.retryable, e.final = ctx.Err(), 0, "", "", true, false
	e.Message = "no answer before the time was up"
	if errors.Is(ctx.Err(), context.Canceled) {
		e.Message = "given up before there was an answer"
	}
	if cause := context.Cause(ctx); cause != ctx.Err() {
		e.Err = fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	if before != nil {
		e.advice = "before that: " + before.reason()
		e.Err = fmt.Errorf("%w; before that: %w", e.Err, before)
	}
	return e
}

// try sends a request once, following redirects. The limit of time covers all of it.
func (c *Client) try(ctx context.Context, q *call) *Error {
	ctx, stop := context.WithTimeout(ctx, c.config.Timeout)
	defer stop()
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

// errBadURL is the error of a request to an artifact store whose address is nonsense; the others are checked before.
var errBadURL = errors.New("the address is malformed")

// send sends a request and returns the head of the answer.
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
	default:
		if c.config.Token != "" {
			set("Authorization", "Bearer "+c.config.Token)
		}
	}
	return c.transport.RoundTrip(req)
}

// most is how many bytes of an answer are read, of those that it may have.
func (c *Client) most(limit int64) int64 {
	if c.config.MaxAnswer > 0 {
		return min(limit, c.config.MaxAnswer)
	}
	return limit
}

// read reads an answer and decodes it.
func (c *Client) read(q *call, resp *http.Response) *Error {
	head, limit := c.most(errorAnswer), c.most(max(q.limit, errorAnswer))
	if !done(resp.StatusCode) {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, head)) // a part of it is better than nothing
		return c.refused(q, resp, body)
	}
	body := &bounded{from: resp.Body, left: head}
	s := &stream{in: bufio.NewReader(body), keep: q.keep}
	first, _ := s.peek()
	if first != '{' || q.out == nil {
		return c.readText(q, resp, s, body)
	}
	body.more(limit - head)
	err := s.answer(q.out)
	q.kept = s.kept
	return c.undecoded(q, resp, body, limit, err)
}

// readText reads the beginning of what is no JSON object, or may be anything. That s has seen its first byte before is
// no harm: what kept it from one is still in body.
func (c *Client) readText(q *call, resp *http.Response, s *stream, body *bounded) *Error {
	text, err := io.ReadAll(s.in)
	page := bytes.HasPrefix(bytes.TrimSpace(text), []byte("<"))
	if errors.Is(err, errLonger) && (page || q.out != nil) {
		err = nil
	}
	if err != nil || q.out == nil && !page {
		return c.undecoded(q, resp, body, c.most(errorAnswer), err)
	}
	return c.notMLflow(&Error{Op: q.op, URL: q.url, Status: resp.StatusCode}, resp, text)
}

// undecoded is the error for an answer that says that all is well, and that was not read or decoded because of err;
// nil if that is nil.
func (c *Client) undecoded(q *call, resp *http.Response, body *bounded, limit int64, err error) *Error {
	e := &Error{Op: q.op, URL: q.url, Status: resp.StatusCode}
	var tooMuch excess
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooMuch):
		e.Message, e.final = string(tooMuch), true
	case errors.Is(err, errLonger):
		e.Message, e.final = fmt.Sprintf("the answer is longer than %d bytes", limit), true
	case body.err != nil && errors.Is(err, body.err):
		e = c.noAnswer(q, err)
		e.Status, e.Message = resp.StatusCode, "the answer broke off: "+e.Message
	case errors.Is(err, errMiddle):
		e.Message, e.Err, e.retryable = "the answer ends in its middle", io.ErrUnexpectedEOF, true
	default:
		e.Message = c.clean("the answer is not understood: " + err.Error())
	}
	return e
}
