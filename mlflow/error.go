package mlflow

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// An Error describes a failed request and, where known, how to fix it.
type Error struct {
	// Op is what was requested: "create run", "log batch to run 3f…".
	Op string

	// URL is the address of the request, without query.
	URL string

	// Status is the HTTP status, or 0 if there was no answer.
	Status int

	// Code is MLflow's error code (RESOURCE_DOES_NOT_EXIST), or "" if the answer has none. Message
	// says what is wrong, in the server's words or ours, in at most 300 characters of one line,
	// without secrets.
	Code, Message string

	// RetryAfter is how long the server asks to wait, or 0 if it does not ask.
	RetryAfter time.Duration

	// Err is the underlying failure, or nil.
	Err error

	advice    string // how to fix it
	tries     int    // number of tries that failed; 0 counts as one
	retryable bool   // worth trying again, even if the status does not say so
	final     bool   // not worth it, even if the status says so
}

// Error returns what was requested from whom, what went wrong, and how to fix it.
func (e *Error) Error() string {
	var b strings.Builder
	for _, s := range []string{e.Op, e.URL} {
		if s != "" {
			b.WriteString(s + ": ")
		}
	}
	b.WriteString(e.reason())
	if e.advice != "" {
		b.WriteString(": " + e.advice)
	}
	return b.String()
}

// reason returns the error without operation, address and advice.
func (e *Error) reason() string {
	var parts []string
	if e.Status != 0 {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", e.Status, e.Code)))
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	text := strings.Join(parts, ": ")
	if e.tries > 1 {
		text += fmt.Sprintf(" (tried %d times)", e.tries)
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// temporary reports whether the same request may succeed later.
func (e *Error) temporary() bool {
	return !e.final && (e.retryable || retryStatus(e.Status))
}

// maybeDone reports whether the server may have done what was requested.
func (e *Error) maybeDone() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false
	}
	op, ok := errors.AsType[*net.OpError](e.Err)
	return !ok || op.Op != "dial" && op.Op != "proxyconnect"
}

// retryStatus reports whether MLflow's Python client tries again after an HTTP status.
func retryStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// NotFound reports whether the server says that what was requested does not exist. The 404 of a
// server that does not know the URL is another matter: it is not an MLflow server, or an old one.
func NotFound(err error) bool { return hasCode(err, "RESOURCE_DOES_NOT_EXIST", "NOT_FOUND") }

// alreadyExists reports whether the server says that what was to be created exists.
func alreadyExists(err error) bool { return hasCode(err, "RESOURCE_ALREADY_EXISTS", "ALREADY_EXISTS") }

// hasCode reports whether an error has one of MLflow's error codes.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(codes, e.Code)
}

// Temporary reports whether an error of this package may pass by itself, so that the same call is
// worth repeating later: the statuses 408, 429, 500, 502, 503 and 504, a name that does not
// resolve, a connection that is refused or breaks off, an answer that ends in its middle, no answer
// in time, a context that ended. Everything else is permanent: any other status, a certificate that
// is not accepted (ours or the server's), an answer that is not MLflow's, a redirect to another
// server, a file that the store does not take, a batch that breaks a limit.
func Temporary(err error) bool {
	if _, ok := errors.AsType[*ArtifactError](err); ok {
		return false
	}
	e, ok := errors.AsType[*Error](err)
	return ok && e.temporary()
}

// RetryAfter returns how long the server asks to wait before the next try, or 0 if it does not ask.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
