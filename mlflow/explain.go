package mlflow

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// refused is the error for an answer with another status than 2xx.
func (c *Client) refused(q *call, resp *http.Response, body []byte) *Error {
	e := &Error{Op: q.op, URL: q.url, Status: resp.StatusCode}
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	var answer struct {
		Code    text   `json:"error_code"`
		Message text   `json:"message"`
		Detail  string `json:"detail"` // of gateways in front of it
	}
	message, isJSON := c.plain(body), false
	if json.Unmarshal(body, &answer) == nil {
		isJSON = answer.Code != "" || answer.Message != ""
		message = string(answer.Message)
		if message == "" {
			message = answer.Detail
		}
	}
	e.Code = shorten(c.clean(string(answer.Code)), 60)
	e.Message = c.clean(message)
	if e.Message == "" && e.Code == "" {
		e.Message = http.StatusText(e.Status)
	}
	c.advise(e, q, message, isJSON)
	return e
}

// advise adds what to do about a refusal. The message is the whole of what the server said.
func (c *Client) advise(e *Error, q *call, message string, isJSON bool) {
	switch {
	case strings.Contains(message, "Invalid Host header"):
		e.advice = "start the server with --allowed-hosts or MLFLOW_SERVER_ALLOWED_HOSTS naming " + c.base.Host
	case e.Status == http.StatusUnauthorized && q.foreign:
		e.advice = "credentials are sent to the tracking server's own host and port only"
	case e.Status == http.StatusUnauthorized && !c.config.basic() && c.config.Token == "":
		e.advice = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
	case e.Status == http.StatusUnauthorized && c.config.basic():
		e.advice = "it does not accept the user name and password of MLFLOW_TRACKING_USERNAME and" +
			" MLFLOW_TRACKING_PASSWORD (or of the URI or ~/.mlflow/credentials)"
	case e.Status == http.StatusUnauthorized:
		e.advice = "it does not accept the token of MLFLOW_TRACKING_TOKEN"
	case strings.Contains(message, "HTTP request to an HTTPS server"), strings.Contains(message, "plain HTTP request was sent to HTTPS"):
		e.advice = "use https:// in MLFLOW_TRACKING_URI"
	case (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) && !isJSON:
		e.advice = "is this an MLflow server? check host, port and path of MLFLOW_TRACKING_URI"
	case e.Status == http.StatusServiceUnavailable && disabled(message):
		e.final = true // it will say so until it is started in another way
	}
}

// disabled tells whether a server says that the way it was started excludes what was asked: a 503 in MLflow.
func disabled(message string) bool {
	return strings.Contains(message, "disabled due to the mlflow server running")
}

// notMLflow is the error for a page that came with status 200 where JSON is due: of a proxy's login, of another
// service. It is final; that such a page goes away by itself is rare.
func (c *Client) notMLflow(e *Error, resp *http.Response, body []byte) *Error {
	e.final = true
	e.Message = "the answer is not MLflow's"
	if what := c.clean(c.plain(body[:min(len(body), errorAnswer)])); what != "" {
		e.Message = shorten(e.Message+": "+what, maxMessage)
	}
	e.advice = "is this an MLflow server? check host, port and path of MLFLOW_TRACKING_URI"
	return e
}

// noAnswer is the error for a request that got no answer, or a part of one.
func (c *Client) noAnswer(q *call, err error) *Error {
	e := &Error{Op: q.op, URL: q.url, Err: err, retryable: true}
	switch {
	case errors.Is(err, errBadURL):
		e.Message, e.retryable = err.Error(), false
	case !e.aboutTLS(err):
		e.aboutConnection(err, c.config.Timeout)
	}
	e.Message = c.clean(e.Message)
	if text := err.Error(); c.clean(text) != shorten(oneLine(text), maxMessage) {
		e.Err = errors.New(e.Message) // it has a secret in it
	}
	return e
}

// aboutTLS explains an error in agreeing on an encrypted connection. None of them passes by itself.
func (e *Error) aboutTLS(err error) bool {
	var (
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		verify  *tls.CertificateVerificationError
		remote  *net.OpError
	)
	switch {
	case errors.As(err, &unknown):
		e.Message = "the server's certificate is of an authority that is not known here"
		e.advice = "set MLFLOW_TRACKING_SERVER_CERT_PATH to the authority's certificate," +
			" or MLFLOW_TRACKING_INSECURE_TLS=true to check nothing"
	case errors.As(err, &host):
		e.Message = "the server's certificate is for another host name"
		e.advice = "use the name that it is for, or MLFLOW_TRACKING_INSECURE_TLS=true to check nothing"
	case errors.As(err, &invalid), errors.As(err, &verify):
		e.Message = "the server's certificate is not valid: " + err.Error()
		e.advice = "have it renewed, and check this host's clock"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Message = "the server does not speak TLS"
		e.advice = "use http:// in MLFLOW_TRACKING_URI, or another port"
	case strings.Contains(err.Error(), "malformed HTTP response"):
		e.Message = "the server does not speak HTTP"
		e.advice = "use https:// in MLFLOW_TRACKING_URI, or another port"
	case errors.As(err, &remote) && remote.Op == "remote error":
		e.Message = "the server ended the TLS handshake: " + remote.Err.Error()
		e.advice = "does it want a certificate of ours? set MLFLOW_TRACKING_CLIENT_CERT_PATH"
	default:
		return false
	}
	e.retryable = false
	return true
}

// aboutConnection explains why there is no connection, or no more.
func (e *Error) aboutConnection(err error, timeout time.Duration) {
	var dns *net.DNSError
	var network net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		e.Message = "the proxy can't be reached: " + op.Err.Error()
		e.advice = "check HTTP_PROXY and HTTPS_PROXY; NO_PROXY names the hosts that need none"
	case errors.As(err, &dns):
		e.Message = "the host name does not resolve: " + dns.Err
		e.advice = "check MLFLOW_TRACKING_URI and this host's name service"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = "the connection is refused"
		e.advice = "is the server running, and are host and port of MLFLOW_TRACKING_URI right?"
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = "no answer within " + timeout.String()
		e.advice = "is the server overloaded? MLFLOW_HTTP_REQUEST_TIMEOUT sets how long to wait"
	case errors.As(err, &network) && network.Timeout():
		e.Message = "no connection in time"
		e.advice = "is there a firewall on the way, or are host and port of MLFLOW_TRACKING_URI wrong?"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		e.Message = "the server closed the connection"
	default:
		e.Message = "the connection failed: " + err.Error()
	}
}

// reason is Error without operation, address and advice.
func (e *Error) reason() string {
	short := Error{Status: e.Status, Code: e.Code, Message: e.Message, tries: e.tries}
	return short.Error()
}
