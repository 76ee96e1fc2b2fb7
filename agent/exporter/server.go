package exporter

import (
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits for each client, except that connections is for all clients.
const (
	headerTimeout = 5 * time.Second  // to send the header of a request
	readTimeout   = 10 * time.Second // to send a whole request
	writeTimeout  = 30 * time.Second // to receive the response, counted from the end of the request's header
	idleTimeout   = 2 * time.Minute  // between two requests; Prometheus scrapes every minute
	headerBytes   = 16 << 10         // of the header of a request
	connections   = 64               // of all clients together
)

// newServer returns the server of an Exporter.
func newServer(e *Exporter) *http.Server {
	c := &connLimit{max: connections, active: make(map[net.Conn]time.Time)}
	return &http.Server{
		Handler:                      e,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               headerBytes - 4096, // net/http adds 4096 bytes
		DisableGeneralOptionsHandler: true,
		ConnState:                    c.changed,
		ErrorLog:                     log.New(io.Discard, "", 0), // stderr belongs to the job
	}
}

// Serve accepts connections on l until Close. If l listens on a loopback address, the Host header of requests must be
// name, localhost, an IP address or empty. Serve must be called only once.
func (e *Exporter) Serve(l net.Listener, name string) error {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		e.checks, e.local = a.IP.IsLoopback(), name
	}
	return e.server.Serve(l)
}

// Close ends Serve and closes all connections immediately, even in the middle of a response.
func (e *Exporter) Close() { _ = e.server.Close() }

// A connLimit caps the number of open connections. At the limit, it closes the connection with the oldest change of
// state, so that clients that send a byte a second, or never read, do not block other clients.
type connLimit struct {
	max    int
	mu     sync.Mutex
	active map[net.Conn]time.Time
}

// changed is called when a connection opens, begins a request, ends a request, or closes.
func (c *connLimit) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.active, conn)
		return
	}

	if _, open := c.active[conn]; !open && state != http.StateNew {
		return // closed because of the limit, but its goroutine has not noticed yet
	}

	c.active[conn] = time.Now()
	if len(c.active) <= c.max {
		return
	}

	oldest := conn
	for other, at := range c.active {
		if at.Before(c.active[oldest]) {
			oldest = other
		}
	}

	delete(c.active, oldest)
	_ = oldest.Close()
}

// ServeHTTP serves GET and HEAD requests for /, /metrics, /report.json and /healthz.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case e.checks && !hostAllowed(r.Host, e.local):
		sendText(w, r, http.StatusForbidden,
			"this server answers only to localhost and to IP addresses, not to the name in the Host header\n")
	case !e.isAuthorized(r):
		h.Add("WWW-Authenticate", `Bearer realm="perfagent"`)
		h.Add("WWW-Authenticate", `Basic realm="perfagent", charset="UTF-8"`)
		sendText(w, r, http.StatusUnauthorized,
			"this server needs its token: Authorization: Bearer TOKEN, or any user with TOKEN as the password\n")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		sendText(w, r, http.StatusMethodNotAllowed, "only GET and HEAD are allowed\n")
	case r.URL.Path == "/healthz":
		sendText(w, r, http.StatusOK, "ok\n")
	case r.URL.Path == "/metrics":
		await(r.Context(), e.begun) // for a few milliseconds, so that the first response has all counters
		send(w, r, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", e.metrics())
	case r.URL.Path == "/":
		// The page contains its script and style, and makes requests only to this server.
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "+
			"img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		e.serveDocument(w, r, func(v *view) document { return v.page() }, e.noPage)
	case r.URL.Path == "/report.json":
		e.serveDocument(w, r, func(v *view) document { return v.report() }, e.noReport)
	default:
		sendText(w, r, http.StatusNotFound, "not found: this server has /, /metrics, /report.json and /healthz\n")
	}
}

// isAuthorized reports whether the request has the token, as a bearer token (RFC 6750) or as a password (RFC 7617), for
// which a browser prompts the user. The comparison takes constant time.
func (e *Exporter) isAuthorized(r *http.Request) bool {
	if e.options.Token == "" {
		return true
	}

	_, given, ok := r.BasicAuth()
	if !ok {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given, ok = strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
	}
	want, got := sha256.Sum256([]byte(e.options.Token)), sha256.Sum256([]byte(given))

	return subtle.ConstantTimeCompare(want[:], got[:]) == 1 && ok
}

// noSample returns the reason why there is no view.
func (e *Exporter) noSample() string {
	if e.snapshot.Load().samples > 0 {
		return "no sample came in time"
	}
	return "no sample has been taken yet"
}

// noPage responds to a request for / if there is no view. Browsers ignore Retry-After, so the page itself makes them
// reload.
func (e *Exporter) noPage(w http.ResponseWriter, r *http.Request) {
	again := strconv.Itoa(int(maxAge.Seconds()))
	w.Header().Set("Retry-After", again)
	send(w, r, http.StatusServiceUnavailable, "text/html; charset=utf-8", []byte(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="`+again+`">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>perfagent</title>
<p>perfagent: `+e.noSample()+`; this page reloads every `+again+` s.</p></html>
`))
}

func (e *Exporter) noReport(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", strconv.Itoa(int(e.refreshInterval().Seconds())))
	sendText(w, r, http.StatusServiceUnavailable, e.noSample()+"\n")
}

// serveDocument sends a document of the current view, as returned by of. If there is no view, it calls the function
// none.
func (e *Exporter) serveDocument(w http.ResponseWriter, r *http.Request, of func(*view) document,
	none http.HandlerFunc) {
	v := e.current(r.Context())
	if v == nil || v.samples == 0 && r.URL.Path != "/" {
		none(w, r)
		return
	}

	d := of(v)
	if d.err != nil {
		sendText(w, r, http.StatusInternalServerError, "cannot render this document: "+d.err.Error()+"\n")
		return
	}

	w.Header().Set("Vary", "Accept-Encoding")
	body := d.plain
	if takesGzip(r.Header.Values("Accept-Encoding")) {
		w.Header().Set("Content-Encoding", "gzip")
		body = d.zipped
	}

	send(w, r, http.StatusOK, d.contentType, body)
}

// sendText sends a short text.
func sendText(w http.ResponseWriter, r *http.Request, code int, text string) {
	send(w, r, code, "text/plain; charset=utf-8", []byte(text))
}

// send sends a response. It leaves out the body if the request is HEAD.
func send(w http.ResponseWriter, r *http.Request, code int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may have disconnected
	}
}

// takesGzip reports whether values, the lines of the header Accept-Encoding, allow gzip (RFC 9110, 12.5.3).
func takesGzip(values []string) bool {
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, found := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			return !found || strings.Trim(q, "0.") != ""
		}
	}
	return false
}

// hostAllowed reports whether a request with this Host header is served. It protects against DNS rebinding: otherwise
// an attacker's page, with a host name that resolves to a loopback address, could read this server through the user's
// browser. In such a request, the Host header is the attacker's host name, so IP addresses, localhost and the name
// given to --listen are safe.
func hostAllowed(header, local string) bool {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "" || host == "localhost" || host == strings.ToLower(local)
}
