package exporter

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits per client, except connections.
const (
	headerTimeout = 5 * time.Second  // to send the header of a request
	readTimeout   = 10 * time.Second // to send a whole request
	writeTimeout  = 30 * time.Second // to receive the response, from the end of the request's header on
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
		MaxHeaderBytes:               headerBytes - 4096, // net/http adds as much
		DisableGeneralOptionsHandler: true,
		ConnState:                    c.changed,
		ErrorLog:                     log.New(io.Discard, "", 0), // stderr is the job's
	}
}

// Serve accepts connections on l until Close. If l listens on a loopback address, the Host header of requests may be
// name, besides localhost and IP addresses. Serve must be called only once.
func (e *Exporter) Serve(l net.Listener, name string) error {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		e.checks, e.local = a.IP.IsLoopback(), name
	}
	return e.server.Serve(l)
}

// Close ends Serve and closes all connections immediately, even in the middle of a response.
func (e *Exporter) Close() { _ = e.server.Close() }

// A connLimit caps the number of open connections. At the limit it closes the connection with the oldest change of
// state, so that clients that send a byte a second, or never read, do not keep other clients out.
type connLimit struct {
	max    int
	mu     sync.Mutex
	active map[net.Conn]time.Time
}

// changed is called when a connection opens, begins a request, ends one, and closes.
func (c *connLimit) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.active, conn)
		return
	}

	if _, open := c.active[conn]; !open && state != http.StateNew {
		return // closed because of the limit; its goroutine has yet to notice
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
