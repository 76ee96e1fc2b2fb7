package mlflow

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// adviceNotMLflow is for answers that no MLflow server would give.
const adviceNotMLflow = "is this an MLflow server? check host, port and path of MLFLOW_TRACKING_URI"

// refusal returns the error for an answer whose status is not 2xx.
func (c *Client) refusal(q *call, resp *http.Response, body []byte) *Error {
	var answer struct {
		Code    text   `json:"error_code"`
		Message text   `json:"message"`
		Detail  string `json:"detail"` // of gateways in front of the server
	}
	message, isMLflow := "", false
	if json.Unmarshal(body, &answer) == nil {
		message, isMLflow = string(answer.Message), answer.Code != "" || answer.Message != ""
		if message == "" {
			message = answer.Detail
		}
	} else {
		message = c.pageText(body)
	}

	e := &Error{Op: q.op, URL: q.url, Status: resp.StatusCode}
	e.RetryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	e.Code = shorten(c.clean(string(answer.Code)), 60)
	e.Message = c.clean(message)
	if e.Message == "" && e.Code == "" {
		e.Message = http.StatusText(e.Status)
	}
	e.advice = c.adviceOn(e.Status, q, message, isMLflow)
	// It will say so until it is started in another way.
	disabled := strings.Contains(message, "disabled due to the mlflow server running")
	e.final = disabled && e.Status == http.StatusServiceUnavailable
	return e
}

// adviceOn returns what to do about a refusal. message is the server's, with all its secrets.
func (c *Client) adviceOn(status int, q *call, message string, isMLflow bool) string {
	says := func(words string) bool { return strings.Contains(message, words) }
	switch {
	case says("Invalid Host header"):
		return "start the server with --allowed-hosts or MLFLOW_SERVER_ALLOWED_HOSTS naming " + c.base.Host
	case status == http.StatusUnauthorized:
		return c.adviceOnCredentials(q)
	case says("HTTP request to an HTTPS server"), says("plain HTTP request was sent to HTTPS"):
		return "use https:// in MLFLOW_TRACKING_URI"
	case (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) && !isMLflow:
		return adviceNotMLflow
	}
	return ""
}

// adviceOnCredentials returns what to do about a 401.
func (c *Client) adviceOnCredentials(q *call) string {
	switch {
	case q.foreign:
		return "credentials are sent to the tracking server's own host and port only"
	case c.config.basic():
		return "it does not accept the user name and password of MLFLOW_TRACKING_USERNAME and" +
			" MLFLOW_TRACKING_PASSWORD (or of the URI or ~/.mlflow/credentials)"
	case c.config.Token != "":
		return "it does not accept the token of MLFLOW_TRACKING_TOKEN"
	}
	return "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
}

// clean makes a text of unknown origin fit for an error.
func (c *Client) clean(text string) string { return c.redactor.clean(text) }

// pageText returns the text of an answer that is not MLflow's. Secrets are hidden before its tags
// are cut, because a < in a password would begin one.
func (c *Client) pageText(body []byte) string { return pageText(c.redactor.hide(string(body))) }

// notMLflow returns the error for an answer with status 2xx that is not JSON: a proxy's login page,
// another service. It is final, because such an answer rarely goes away by itself.
func (c *Client) notMLflow(q *call, resp *http.Response, body []byte) *Error {
	e := &Error{Op: q.op, URL: q.url, Status: resp.StatusCode, final: true, advice: adviceNotMLflow}
	e.Message = "the answer is not MLflow's"
	if what := c.clean(c.pageText(body)); what != "" {
		e.Message = shorten(e.Message+": "+what, maxMessage)
	}
	return e
}

// missingField returns the error for an answer without a field that every server puts into it.
func (c *Client) missingField(op, path, field string) *Error {
	return &Error{
		Op:      op,
		URL:     c.config.URI + apiPath + path,
		Status:  http.StatusOK,
		Message: "the answer has no " + field,
		advice:  adviceNotMLflow,
		final:   true,
	}
}

// noAnswer returns the error for a request that got no answer or only a part of one.
func (c *Client) noAnswer(q *call, err error) *Error {
	e := &Error{Op: q.op, URL: q.url, Err: err, retryable: true}
	switch {
	case errors.Is(err, errBadURL):
		e.Message, e.retryable = err.Error(), false
	case e.explainTLS(err):
		e.retryable = false
	default:
		e.explainConnection(err, c.config.Timeout)
	}

	e.Message = c.clean(e.Message)
	if text := err.Error(); c.clean(text) != shorten(oneLine(text), maxMessage) {
		e.Err = errors.New(e.Message) // it has a secret in it
	}
	return e
}

// explainTLS explains a failure to agree on an encrypted connection. Such a failure is permanent.
// It reports whether err is one.
func (e *Error) explainTLS(err error) bool {
	says := func(words string) bool { return strings.Contains(err.Error(), words) }
	remote, _ := errors.AsType[*net.OpError](err)
	switch {
	case is[x509.UnknownAuthorityError](err):
		e.Message = "the server's certificate is signed by an authority that this host does not know"
		e.advice = "set MLFLOW_TRACKING_SERVER_CERT_PATH to the authority's certificate," +
			" or MLFLOW_TRACKING_INSECURE_TLS=true to check nothing"
	case is[x509.HostnameError](err):
		e.Message = "the server's certificate is for another host name"
		e.advice = "use the name that it is for, or MLFLOW_TRACKING_INSECURE_TLS=true to check nothing"
	case is[x509.CertificateInvalidError](err), is[*tls.CertificateVerificationError](err):
		e.Message = "the server's certificate is not valid: " + err.Error()
		e.advice = "have it renewed, and check this host's clock"
	case is[tls.RecordHeaderError](err), says("server gave HTTP response to HTTPS client"):
		e.Message = "the server does not speak TLS"
		e.advice = "use http:// in MLFLOW_TRACKING_URI, or another port"
	case says("malformed HTTP response"):
		e.Message = "the server does not speak HTTP"
		e.advice = "use https:// in MLFLOW_TRACKING_URI, or another port"
	case remote != nil && remote.Op == "remote error":
		e.Message = "the server ended the TLS handshake: " + remote.Err.Error()
		e.advice = "does it want a certificate of ours? set MLFLOW_TRACKING_CLIENT_CERT_PATH"
	default:
		return false
	}

	return true
}

// explainConnection explains why there is no connection, or no longer one.
func (e *Error) explainConnection(err error, timeout time.Duration) {
	op, _ := errors.AsType[*net.OpError](err)
	network, _ := errors.AsType[net.Error](err)
	dns, _ := errors.AsType[*net.DNSError](err)

	switch {
	case op != nil && op.Op == "proxyconnect":
		e.Message = "the proxy can't be reached: " + op.Err.Error()
		e.advice = "check HTTP_PROXY and HTTPS_PROXY; NO_PROXY names the hosts that need none"
	case dns != nil:
		e.Message = "the host name does not resolve: " + dns.Err
		e.advice = "check MLFLOW_TRACKING_URI and this host's name service"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = "the connection is refused"
		e.advice = "is the server running, and are host and port of MLFLOW_TRACKING_URI right?"
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = fmt.Sprintf("no answer within %v", timeout)
		e.advice = "is the server overloaded? MLFLOW_HTTP_REQUEST_TIMEOUT sets how long to wait"
	case network != nil && network.Timeout():
		e.Message = "no connection in time"
		e.advice = "does a firewall block the connection, or are host and port of MLFLOW_TRACKING_URI wrong?"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		e.Message = "the server closed the connection"
	default:
		e.Message = "the connection failed: " + err.Error()
	}
}

// is reports whether an error of type T is in the tree of err.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
