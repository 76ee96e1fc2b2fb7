package mlflowtest

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/testenv"
)

// quiet returns a logger that discards the messages of test servers.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// Status responds to every request with the given status and body.
func Status(code int, contentType, body string) Hook {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		fmt.Fprint(w, body)
		return true
	}
}

// RetryAfter responds with status 429 (too many requests) and a Retry-After header with the given number of seconds.
func RetryAfter(seconds int) Hook {
	status := Status(http.StatusTooManyRequests, "application/json",
		`{"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "Too many requests"}`)
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		return status(w, r)
	}
}

// HTML502 responds like a gateway that cannot reach its server.
func HTML502() Hook {
	return Status(http.StatusBadGateway, "text/html",
		"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"+
			"<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n")
}

// HalfJSON responds with the first half of a JSON text as if it were complete.
func HalfJSON() Hook {
	return Status(http.StatusOK, "application/json", `{"run": {"info": {"run_id": "0123`)
}

// Hang does not respond until the client disconnects.
func Hang() Hook {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
}

// Slow sends one byte per second until the client disconnects.
func Slow() Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		for {
			if _, err := w.Write([]byte(" ")); err != nil {
				return true
			}
			_ = http.NewResponseController(w).Flush() // a failure shows up in the next write
			select {
			case <-r.Context().Done():
				return true
			case <-time.After(time.Second):
			}
		}
	}
}

// Drop closes the connection without a response.
func Drop() Hook {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
		return true
	}
}

// First calls h only for the first n requests.
func First(n int, h Hook) Hook {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		return seen.Add(1) <= int64(n) && h(w, r)
	}
}

// On calls h only for requests whose URL path contains path.
func On(path string, h Hook) Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, path) && h(w, r)
	}
}

// A Listener serves a handler on loopback.
type Listener struct {
	URL string

	tb      testing.TB
	handler http.Handler
	address string
	mu      sync.Mutex
	server  *http.Server // nil if it is closed
}

// Serve starts a server that runs until the end of the test or Close.
func Serve(tb testing.TB, handler http.Handler) *Listener {
	tb.Helper()
	l := &Listener{tb: tb, handler: handler, address: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(tb))}
	l.URL = "http://" + l.address
	l.Reopen()
	tb.Cleanup(l.Close)
	return l
}

// Close ends all connections and refuses new ones.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		l.server.Close()
		l.server = nil
	}
}

// Reopen listens again on the same port.
func (l *Listener) Reopen() {
	l.tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		return
	}

	listener, err := net.Listen("tcp", l.address)
	for begin := time.Now(); err != nil && time.Since(begin) < 2*time.Minute; {
		// A process that is just starting may still hold a copy of the closed socket.
		time.Sleep(time.Millisecond)
		listener, err = net.Listen("tcp", l.address)
	}
	if err != nil {
		l.tb.Fatal(err)
	}

	server := &http.Server{Handler: l.handler, ErrorLog: quiet(), ReadHeaderTimeout: time.Minute}
	l.server = server
	go func() { _ = server.Serve(listener) }() // until it is closed
}
