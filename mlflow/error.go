package mlflow

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/internal/retry"
)

// An Error describes a failed request and, if known, a remedy.
type Error struct {
	// Op describes the request: "create run", "log batch to run 3f…".
	Op string

	// URL is the address of the request, without the query.
	URL string

	// Status is the HTTP status, or 0 without a response.
	Status int

	// Code is MLflow's error code (RESOURCE_DOES_NOT_EXIST), or "" if the response has none. Message describes the
	// failure, as reported by the server or by this package, in one line of at most 300 characters, without secrets.
	Code, Message string

	// RetryAfter is how long the server asks the client to wait, or 0.
	RetryAfter time.Duration

	// Err is the underlying failure, or nil.
	Err error

	advice    string // a remedy
	tries     int    // number of failed tries; 0 counts as one
	retryable bool   // may be retried, whatever the status
	permanent bool   // must not be retried, whatever the status
}

// Error returns the request, its address, the failure, and the remedy.
func (e *Error) Error() string { return joinParts(e.Op, e.URL, e.reason(), e.advice) }

// reason returns the text of the error without operation, address and advice.
func (e *Error) reason() string {
	status := ""
	if e.Status != 0 {
		status = strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", e.Status, e.Code))
	}
	text := joinParts(status, e.Message)
	if e.tries > 1 {
		text += fmt.Sprintf(" (tried %d times)", e.tries)
	}
	return text
}

// joinParts joins the parts that are not empty.
func joinParts(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// temporary reports whether the same request may succeed later.
func (e *Error) temporary() bool {
	return !e.permanent && (e.retryable || retryStatus(e.Status))
}

// maybeDone reports whether the server may have executed the request.
func (e *Error) maybeDone() bool {
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		return false
	}
	op, ok := errors.AsType[*net.OpError](e.Err)
	return !ok || op.Op != "dial" && op.Op != "proxyconnect"
}

// retryStatus reports whether MLflow's Python client retries after the given HTTP status.
func retryStatus(status int) bool {
	return slices.Contains([]int{408, 429, 500, 502, 503, 504}, status)
}

// NotFound reports whether the server responded that the requested object does not exist. NotFound returns false for a
// 404 for an unknown URL, which comes from an old MLflow server or from another kind of server.
func NotFound(err error) bool { return hasCode(err, "RESOURCE_DOES_NOT_EXIST", "NOT_FOUND") }

// alreadyExists reports whether the server responded that the object to be created already exists.
func alreadyExists(err error) bool { return hasCode(err, "RESOURCE_ALREADY_EXISTS", "ALREADY_EXISTS") }

// hasCode reports whether err has one of codes, which are MLflow's error codes.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(codes, e.Code)
}

// Temporary reports whether err, an error of this package, is temporary, so that the same call may succeed later. The
// statuses 408, 429, 500, 502, 503 and 504 are temporary, as are a name that does not resolve, a connection that is
// refused or breaks off, a truncated response, no response in time, and a context that ended. Every other error is
// permanent, such as any other status, a certificate that is not accepted (the client's or the server's), a response
// that is not MLflow's, a redirect to another server, or a batch beyond a limit. An *ArtifactError is also permanent.
func Temporary(err error) bool {
	if _, ok := errors.AsType[*ArtifactError](err); ok {
		return false
	}
	e, ok := errors.AsType[*Error](err)
	return ok && e.temporary()
}

// RetryAfter returns how long the server asks the client to wait before the next try, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// adviceNotMLflow is the advice about responses that no MLflow server would send.
const adviceNotMLflow = "is this an MLflow server? check host, port and path of MLFLOW_TRACKING_URI"

// failed returns a permanent error for the call. status is 0 if there was no response.
func (q *call) failed(status int, message string) *Error {
	return &Error{Op: q.op, URL: q.url, Status: status, Message: message}
}

// statusError returns the error for a response with a status other than 2xx.
func (c *Client) statusError(q *call, resp *http.Response, body []byte) *Error {
	var answer struct {
		Code    flexString `json:"error_code"`
		Message flexString `json:"message"`
		Detail  string     `json:"detail"` // set by gateways in front of the server
	}
	message, isMLflow := "", false
	if json.Unmarshal(body, &answer) == nil {
		message = cmp.Or(string(answer.Message), answer.Detail)
		isMLflow = answer.Code != "" || answer.Message != ""
	} else {
		message = c.pageText(body)
	}

	e := &Error{Op: q.op, URL: q.url, Status: resp.StatusCode}
	e.RetryAfter = retry.After(resp.Header)
	e.Code = shorten(c.clean(string(answer.Code)), 60)
	e.Message = c.clean(message)
	if e.Message == "" && e.Code == "" {
		e.Message = http.StatusText(e.Status)
	}
	e.advice = c.adviceOn(e.Status, q, message, isMLflow)
	// Only restarting the server with different options changes this.
	e.permanent = e.Status == http.StatusServiceUnavailable &&
		strings.Contains(message, "disabled due to the mlflow server running")
	return e
}

// adviceOn returns a remedy for the given error status. message is the server's, and may contain secrets.
func (c *Client) adviceOn(status int, q *call, message string, isMLflow bool) string {
	says := func(words string) bool { return strings.Contains(message, words) }
	switch refused := status == http.StatusUnauthorized; {
	case says("Invalid Host header"):
		return "start the server with --allowed-hosts or MLFLOW_SERVER_ALLOWED_HOSTS naming " + c.base.Host
	case refused && q.foreign:
		return "credentials are sent only to the tracking server's host and port"
	case refused && c.config.usesBasicAuth():
		return "it does not accept the user name and password of MLFLOW_TRACKING_USERNAME and" +
			" MLFLOW_TRACKING_PASSWORD (or of the URI or ~/.mlflow/credentials)"
	case refused && c.config.Token != "":
		return "it does not accept the token of MLFLOW_TRACKING_TOKEN"
	case refused:
		return "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
	case says("HTTP request to an HTTPS server"), says("plain HTTP request was sent to HTTPS"):
		return "use https:// in MLFLOW_TRACKING_URI"
	case (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) && !isMLflow:
		return adviceNotMLflow
	}
	return ""
}

// clean makes a text of unknown origin safe for an error: one short line without secrets.
func (c *Client) clean(text string) string { return c.redactor.clean(text) }

// pageText returns the text of body, a response that is not MLflow's. Secrets are hidden before the tags are removed,
// because a < in a password would look like the beginning of a tag.
func (c *Client) pageText(body []byte) string { return pageText(c.redactor.hide(string(body))) }

// notMLflow returns the error for a response with status 2xx that is not JSON, such as a proxy's login page or a page
// of another service. The error is permanent, because it rarely disappears without a change.
func (c *Client) notMLflow(q *call, resp *http.Response, body []byte) *Error {
	e := q.failed(resp.StatusCode, "the response is not from MLflow")
	e.advice = adviceNotMLflow
	if what := c.clean(c.pageText(body)); what != "" {
		e.Message = shorten(e.Message+": "+what, maxMessage)
	}
	return e
}

// missingField returns the error for a response that lacks field, which every MLflow server sends.
func (c *Client) missingField(q *call, field string) *Error {
	e := q.failed(http.StatusOK, "the response has no "+field)
	e.advice = adviceNotMLflow
	return e
}

// transportError returns the error for a request without a complete response.
func (c *Client) transportError(q *call, err error) *Error {
	e := &Error{Op: q.op, URL: q.url, Err: err}
	if e.Message, e.advice = explainTLS(err); e.Message == "" {
		e.retryable = true
		e.Message, e.advice = explainConnection(err, c.config.Timeout)
	}

	e.Message = c.clean(e.Message)
	if text := err.Error(); c.clean(text) != text {
		e.Err = errors.New(e.Message)
	}
	return e
}

// explainTLS returns why a TLS connection failed, and a remedy. Such a failure is permanent. The message is "" if err
// is not a failure of TLS.
func explainTLS(err error) (message, advice string) {
	says := func(words string) bool { return strings.Contains(err.Error(), words) }
	remote, _ := errors.AsType[*net.OpError](err)
	switch {
	case is[x509.UnknownAuthorityError](err):
		return "the server's certificate is signed by an authority that this host does not trust",
			"set MLFLOW_TRACKING_SERVER_CERT_PATH to the authority's certificate," +
				" or MLFLOW_TRACKING_INSECURE_TLS=true to skip the check"
	case is[x509.HostnameError](err):
		return "the server's certificate is for another host name",
			"use the name that it is for, or MLFLOW_TRACKING_INSECURE_TLS=true to skip the check"
	case is[x509.CertificateInvalidError](err), is[*tls.CertificateVerificationError](err):
		return "the server's certificate is not valid: " + err.Error(), "have it renewed, and check this host's clock"
	case is[tls.RecordHeaderError](err), says("server gave HTTP response to HTTPS client"):
		return "the server does not speak TLS", "use http:// in MLFLOW_TRACKING_URI, or another port"
	case says("malformed HTTP response"):
		return "the server does not speak HTTP", "use https:// in MLFLOW_TRACKING_URI, or another port"
	case remote != nil && remote.Op == "remote error":
		return "the server ended the TLS handshake: " + remote.Err.Error(),
			"does it require a client certificate? set MLFLOW_TRACKING_CLIENT_CERT_PATH"
	}
	return "", ""
}

// explainConnection returns why a connection failed or broke off, and a remedy.
func explainConnection(err error, timeout time.Duration) (message, advice string) {
	op, _ := errors.AsType[*net.OpError](err)
	network, _ := errors.AsType[net.Error](err)
	dns, _ := errors.AsType[*net.DNSError](err)
	switch {
	case op != nil && op.Op == "proxyconnect":
		return "the proxy cannot be reached: " + op.Err.Error(),
			"check HTTP_PROXY and HTTPS_PROXY; NO_PROXY lists the hosts that need none"
	case dns != nil:
		return "the host name does not resolve: " + dns.Err, "check MLFLOW_TRACKING_URI and this host's DNS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused", "is the server running, and are the host and port of MLFLOW_TRACKING_URI right?"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no response within %v", timeout),
			"is the server overloaded? MLFLOW_HTTP_REQUEST_TIMEOUT sets how long to wait"
	case network != nil && network.Timeout():
		return "no connection in time",
			"does a firewall block the connection, or are the host and port of MLFLOW_TRACKING_URI wrong?"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return "the server closed the connection", ""
	}
	return "the connection failed: " + err.Error(), ""
}

// is reports whether an error of type T is in the tree of err.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
