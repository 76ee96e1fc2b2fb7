package exporter

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// What one client can take of us.
const (
	headerTimeout = 5 * time.Second  // to send the head of a request
	readTimeout   = 10 * time.Second // to send all of it
	writeTimeout  = 30 * time.Second // to take the answer, from the end of the head on
	idleTimeout   = 2 * time.Minute  // between two requests; Prometheus asks each minute
	headerBytes   = 16 << 10         // of the head of a request
	connections   = 64               // of all clients together
)

// newServer makes the server of an Exporter.
func newServer(e *Exporter) *http.Server {
	c := &crowd{most: connections, heard: make(map[net.Conn]time.Time)}
	return &http.Server{
		Handler:           e,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes:               headerBytes - 4096, // net/http adds that much
		DisableGeneralOptionsHandler: true,
		ConnState:                    c.changed,
		ErrorLog:                     log.New(io.Discard, "", 0), // stderr is the job's
	}
}

// Serve answers who connects to l, until Close. name is by which name it may be called,
// beside localhost, where l is on a loopback address. It is called once.
func (e *Exporter) Serve(l net.Listener, name string) error {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		e.checks, e.local = a.IP.IsLoopback(), name
	}
	return e.server.Serve(l)
}

// Close ends Serve and all connections at once, also those in the middle of an answer.
func (e *Exporter) Close() { _ = e.server.Close() }

// crowd bounds the open connections. One too many closes the one of which nothing was
// heard for longest, so that those who send a byte a second, or never read, keep
// nobody out.
type crowd struct {
	most  int
	mu    sync.Mutex
	heard map[net.Conn]time.Time
}

// changed sees a connection begin, begin a request, end one, and end.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.heard, conn)
		return
	}

	if _, open := c.heard[conn]; !open && state != http.StateNew {
		return // closed for being one too many: its goroutine has yet to see it
	}

	c.heard[conn] = time.Now()
	if len(c.heard) <= c.most {
		return
	}

	oldest := conn
	for other, at := range c.heard {
		if at.Before(c.heard[oldest]) {
			oldest = other
		}
	}

	delete(c.heard, oldest)
	_ = oldest.Close()
}
