package mlflow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// do sends a call until it succeeds, fails for good, or runs out of retries or time. Its error is
// an *Error.
func (c *Client) do(ctx context.Context, q *call) error {
	var before *Error // what the try before returned
	for try := 1; ; try++ {
		e := c.try(ctx, q)
		if e == nil {
			return nil
		}
		e.tries = try

		if ctx.Err() != nil {
			return timeUp(ctx, e, before)
		}
		if try > c.config.MaxRetries || !q.mayRetry(e) {
			return e
		}
		wait := c.backoff(e)
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

// backoff returns how long to wait after the try that failed with e. It is urllib3's arithmetic.
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

// errNoTime reports a pause that would outlast the context.
var errNoTime = errors.New("no time left for another try")

// pause waits, unless the context ends before d has passed.
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

// timeUp turns e, the error of a try during which the context ended, into one that says so. It
// mentions the error of the try before, if there was one.
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

// maxRetryAfter limits what a server may ask for, as urllib3 does.
const maxRetryAfter = 6 * time.Hour

// parseRetryAfter parses a Retry-After header, which holds seconds or a date. It returns 0 for
// anything else and for a date that has passed.
func parseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxRetryAfter)
	}
	seconds, err := strconv.ParseUint(value, 10, 63)
	if err != nil {
		return 0
	}
	return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
}
