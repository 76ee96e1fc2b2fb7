package mlflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/retry"
)

const apiPath = "/api/2.0/mlflow/"

// A call is one request and the destination of its response.
type call struct {
	op     string // for errors: "create run in experiment 1"
	method string
	url    string // without query
	query  url.Values

	body        []byte
	contentType string

	out any // where the response's JSON is decoded to; nil if the response has no content

	// creates means that a second execution would create a second object, so the call is not repeated if the server may
	// have executed it.
	creates bool

	// maxTries, if positive, limits the tries while the server responds with status 500.
	maxTries int

	// Memory in bytes: before is the memory of the earlier pages of a list, maxMemory is the limit for these pages and
	// the response together, and memory is the approximate total after decoding.
	before, maxMemory, memory int

	// foreign means that the call goes to a host other than the tracking server, and so has no credentials.
	foreign bool
}

// newGet returns a call that reads a resource below apiPath.
func (c *Client) newGet(op, path string, query url.Values, out any) *call {
	return &call{op: op, method: http.MethodGet, url: c.config.URI + apiPath + path, query: query, out: out}
}

// newPost returns a call that sends in as JSON to a resource below apiPath. If out is nil, any JSON object is accepted
// as the response.
func (c *Client) newPost(op, path string, in, out any) *call {
	if out == nil {
		out = new(struct{})
	}
	q := c.newGet(op, path, nil, out)
	q.method, q.contentType = http.MethodPost, "application/json"
	q.body, _ = json.Marshal(in) // fails only if a number is not finite
	return q
}

// post sends in as JSON to a resource below apiPath, and decodes the response into out.
func (c *Client) post(ctx context.Context, op, path string, in, out any) error {
	return c.do(ctx, c.newPost(op, path, in, out))
}

// longWait is how long a request waits for its response before Config.OnWait is called.
const longWait = 5 * time.Second

// try sends q without retries and follows redirects, all within Config.Timeout.
func (c *Client) try(ctx context.Context, q *call) *Error {
	ctx, stop := context.WithTimeout(ctx, c.config.Timeout)
	defer stop()
	if c.config.OnWait != nil {
		waiting := time.AfterFunc(longWait, func() { c.config.OnWait(q.op, c.config.Timeout) })
		defer waiting.Stop()
	}

	req, err := c.newRequest(ctx, q)
	if err != nil {
		return q.failed(0, "the address is malformed") // err would quote the address
	}
	client := http.Client{Transport: roundTrip(c.send), CheckRedirect: func(req *http.Request, via []*http.Request) error {
		return c.checkRedirect(q, req, via)
	}}
	sent := time.Now()
	resp, err := client.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused
	}
	if err != nil {
		return c.transportError(q, err)
	}
	defer resp.Body.Close()
	if !q.foreign {
		c.clock.note(sent, time.Now(), resp.Header)
	}
	if slices.Contains([]int{301, 302, 303, 307, 308}, resp.StatusCode) {
		return q.failed(resp.StatusCode, "a redirect to nowhere") // the response has no Location
	}
	return c.readResponse(q, resp)
}

// A roundTrip is a function that implements http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// send sends req without following redirects. It removes a Location that is not an address, because http.Client would
// quote it in an error, and it may contain a secret.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if to, err := req.URL.Parse(resp.Header.Get("Location")); err != nil || to.Host == "" {
		resp.Header.Del("Location")
	}
	return resp, nil
}

// newRequest returns the HTTP request of q.
func (c *Client) newRequest(ctx context.Context, q *call) (*http.Request, error) {
	target := q.url
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
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
	case c.config.usesBasicAuth():
		req.SetBasicAuth(c.config.Username, c.config.Password)
	case c.config.Token != "":
		set("Authorization", "Bearer "+c.config.Token)
	}
	return req, nil
}

// maxRedirects limits the requests of one try. The last request must not be redirected.
const maxRedirects = 10

// checkRedirect returns an error if the call must not be redirected to req. A redirect with a different method from the
// call's would lose the body.
func (c *Client) checkRedirect(q *call, req *http.Request, via []*http.Request) error {
	old, to, status := via[len(via)-1].URL, *req.URL, req.Response.StatusCode
	if len(via) == maxRedirects {
		return q.failed(0, "too many redirects")
	}
	if !c.config.NoRedirects && req.Method == q.method && status != http.StatusSeeOther && sameServer(old, req.URL) {
		return nil
	}

	to.User, to.Fragment, to.RawFragment = nil, "", ""
	e := q.failed(status, c.clean("the server redirects to "+PublicURI(to.String())))
	if old.Scheme == "https" && to.Scheme == "http" {
		e.advice = "which is not encrypted, and not followed: a proxy in front of it may not know that it serves https"
		return e
	}
	base := c.clean(movedBase(q.url, c.config.URI, &to))
	e.advice = "if that is where the tracking server is, set MLFLOW_TRACKING_URI to " + base
	return e
}

// sameServer reports whether credentials for the URL from may be sent to the URL to. Both must have the same scheme,
// host and port. A change from http to https, each on its default port, is also allowed, because the certificate proves
// the host's name.
func sameServer(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == to.Scheme {
		return portOf(from) == portOf(to)
	}
	return from.Scheme == "http" && to.Scheme == "https" && portOf(from) == "80" && portOf(to) == "443"
}

// portOf returns the port of u, or the default port of its scheme.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80")
}

// movedBase returns the tracking URI that corresponds to the target of a redirect: it is to without the part that
// asked, the request's URL, has in addition to base, the tracking URI.
func movedBase(asked, base string, to *url.URL) string {
	added := strings.TrimPrefix(asked, base)
	return strings.TrimRight(strings.TrimSuffix(PublicURI(to.String()), added), "/")
}

// do sends q until it succeeds, fails permanently, or has used up its retries or its time. The error is an *Error.
func (c *Client) do(ctx context.Context, q *call) error {
	var before *Error // error of the previous try
	for try := 1; ; try++ {
		e := c.try(ctx, q)
		if e == nil {
			return nil
		}
		e.tries = try

		if ctx.Err() != nil {
			return deadlineError(ctx, e, before)
		}
		wait := c.backoff(e)
		switch deadline, ends := ctx.Deadline(); {
		case try > c.config.MaxRetries, !q.mayRetry(e):
			return e
		case c.config.OnRetry != nil && !c.config.OnRetry(e, wait):
			return e
		case ends && time.Until(deadline) <= wait:
			return e
		}

		if err := retry.Wait(ctx, wait); err != nil {
			e.Err = errors.Join(err, e.Err)
			return e
		}
		before = e
	}
}

// mayRetry reports whether it is safe and useful to send the call again after e.
func (q *call) mayRetry(e *Error) bool {
	switch {
	case !e.temporary():
		return false
	case q.creates && e.maybeDone():
		return false
	}
	return e.Status != http.StatusInternalServerError || e.tries != q.maxTries
}

// backoff returns how long to wait after the try that failed with e, by urllib3's rules.
func (c *Client) backoff(e *Error) time.Duration {
	switch {
	case e.RetryAfter > 0 && !c.config.IgnoreRetryAfter:
		return e.RetryAfter
	case e.tries <= 1:
		return 0
	}

	doublings := float64(int64(1) << min(e.tries-1, 40))
	seconds := c.config.BackoffJitter*rand.Float64() + c.config.BackoffFactor*doublings
	if limit := c.config.MaxBackoff; seconds >= limit.Seconds() {
		return limit
	}
	return time.Duration(max(seconds, 0) * float64(time.Second))
}

// deadlineError turns e, the error of a try during which ctx ended, into an error about the end of ctx. It includes
// before, the error of the previous try, if that is not nil.
func deadlineError(ctx context.Context, e, before *Error) *Error {
	e.Err, e.Status, e.Code, e.advice, e.retryable, e.permanent = ctx.Err(), 0, "", "", true, false
	e.Message = "no response in time"
	if errors.Is(ctx.Err(), context.Canceled) {
		e.Message = "gave up before a response came"
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

// Limits, in bytes, on the size of a response after decompression, and on the memory that the decoded response takes.
const (
	maxResponse     = 64 << 20
	maxTextResponse = 64 << 10  // of a response that is not MLflow's JSON; an error shows 300 characters
	maxMemory       = 32 << 20  // of one response, or of a list with a limit
	maxListMemory   = 256 << 20 // of a list of all runs or experiments, or of a page of points
	itemMemory      = 128       // approximately, of an object or a null in an array, without its texts
)

// readResponse reads a response and decodes it into q.out. If q.out is nil, any response is accepted except an HTML
// page, which may be a login page.
func (c *Client) readResponse(q *call, resp *http.Response) *Error {
	limit := int64(maxResponse)
	if c.config.MaxResponse > 0 {
		limit = min(limit, c.config.MaxResponse)
	}
	body := http.MaxBytesReader(nil, resp.Body, limit)
	data, err := io.ReadAll(io.LimitReader(body, maxTextResponse))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.statusError(q, resp, data) // even if reading failed, because a part of the text is better than nothing
	}

	wanted := q.out != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
	if err == nil && wanted {
		var rest []byte
		rest, err = io.ReadAll(body)
		data = append(data, rest...)
	}
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err != nil && !tooLong:
		e := c.transportError(q, err)
		e.Status, e.Message = resp.StatusCode, "the response broke off: "+e.Message
		return e
	case wanted && tooLong:
		return q.failed(resp.StatusCode, fmt.Sprintf("the response is longer than %d bytes", limit))
	case wanted:
		return c.decode(q, resp, data)
	case q.out == nil && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		return nil
	}
	return c.notMLflow(q, resp, data)
}

// decode decodes data, the JSON of a response, unless that would exceed the memory limit. Objects and nulls are
// counted, because encoding/json allocates a large item for each, even if its text is short.
func (c *Client) decode(q *call, resp *http.Response, data []byte) *Error {
	most := cmp.Or(q.maxMemory, maxMemory)
	q.memory = q.before + len(data) + itemMemory*(bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("null")))
	if q.memory > most {
		return q.failed(resp.StatusCode, tooMany(fmt.Sprintf("%d MiB", most>>20)))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	err := d.Decode(q.out)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("there is more text after its end")
		}
	}
	e := &Error{Op: q.op, URL: q.url, Status: resp.StatusCode}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Message, e.Err, e.retryable = "the response is cut off", io.ErrUnexpectedEOF, true
	default:
		e.Message = c.clean("the response is malformed: " + err.Error())
	}
	return e
}

// tooMany returns the message for a response with more items than any MLflow server would send.
func tooMany(what string) string {
	return "the response is not from MLflow: it has more than " + what + " in it"
}

// An array is an array of objects or nulls in a response. Decoding stops at the first item of another kind.
// encoding/json would continue to the last item.
type array[T any] []T

func (a *array[T]) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	open, err := d.Token()
	switch {
	case err != nil || open == nil: // null
		return err
	case open != json.Delim('['):
		return errors.New("want an array")
	}
	*a = nil
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return err
		}
		*a = append(*a, item)
	}
	return nil
}
