package mlflow

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Error is what the server answered when it refused something, or what kept it from answering.
type Error struct {
	// Op is what was asked: "create run", "log batch to run 3f…".
	Op string

	// URL is whom, without query.
	URL string

	// Status is that of the HTTP answer, 0 when there was none.
	Status int

	// Code is MLflow's error code (RESOURCE_DOES_NOT_EXIST), "" when the answer has none. Message is what is wrong:
	// the server's words or ours, at most 300 characters of one line, without secrets.
	Code, Message string

	// RetryAfter is how long the server asks to wait, 0 when it does not.
	RetryAfter time.Duration

	// Err is the failure under it, or nil.
	Err error

	advice    string // what to do about it
	tries     int    // how often it was tried in vain; 0 counts as once
	retryable bool   // worth trying again, also where the status does not say so
	final     bool   // not worth it, although the status says so
}

// Error says what was asked of whom, what went wrong, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	for _, s := range []string{e.Op, e.URL} {
		if s != "" {
			b.WriteString(s + ": ")
		}
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, "HTTP status %d", e.Status)
		if e.Code != "" {
			b.WriteString(" " + e.Code)
		}
		if e.Message != "" {
			b.WriteString(": ")
		}
	}
	b.WriteString(e.Message)
	if e.tries > 1 {
		fmt.Fprintf(&b, " (tried %d times)", e.tries)
	}
	if e.advice != "" {
		b.WriteString(": " + e.advice)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// temporary tells whether the same request may succeed later.
func (e *Error) temporary() bool {
	return !e.final && (e.retryable || retryStatus(e.Status))
}

// heard tells whether the server may have done what was asked.
func (e *Error) heard() bool {
	var op *net.OpError
	return e.Status != http.StatusTooManyRequests && e.Status != http.StatusServiceUnavailable &&
		!(errors.As(e.Err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"))
}

// retryStatus lists the answers after which MLflow's Python client tries again.
func retryStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// NotFound tells whether the server says that what was asked for does not exist. A 404 of a server that knows no such
// URL, and thus is no MLflow server or an old one, is not meant.
func NotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && isWord(e.Code, "RESOURCE_DOES_NOT_EXIST", "NOT_FOUND")
}

// AlreadyExists tells whether the server says that what was to be made exists.
func AlreadyExists(err error) bool {
	var e *Error
	return errors.As(err, &e) && isWord(e.Code, "RESOURCE_ALREADY_EXISTS", "ALREADY_EXISTS")
}

// Temporary tells whether an error of this package may pass by itself, so that the same call is worth making later:
// the statuses 408, 429, 500, 502, 503 and 504, a name that does not resolve, a connection that is refused or breaks
// off, an answer that ends in its middle, no answer in time, a context that ended. Not: every other status, a
// certificate that is not accepted (ours or the server's), an answer that is not MLflow's, a redirect to elsewhere, a
// file that the store does not take, a batch that breaks a limit.
func Temporary(err error) bool {
	var artifact *ArtifactError
	if errors.As(err, &artifact) {
		return false
	}
	var e *Error
	return errors.As(err, &e) && e.temporary()
}

// RetryAfter is how long the server asks to wait before the next try, 0 when it does not.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}
