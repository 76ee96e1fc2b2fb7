package exporter

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// listenDial connects; the connection is closed when the test ends.
func listenDial(t testing.TB, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	return c
}

// prompt requests /healthz on a new connection, and returns the time until the response.
func prompt(t testing.TB, address string) time.Duration {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}
	begin := time.Now()
	answer, err := client.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "ok\n" {
		t.Fatalf("GET /healthz: body %q, error %v; want \"ok\\n\"", body, err)
	}
	return time.Since(begin)
}

// hungUp reports whether the other side closes a connection within a time.
func hungUp(c net.Conn, within time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(within))
	for {
		if _, err := c.Read(make([]byte, 4096)); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// A hundred connections that send a byte now and then do not block others, are not all kept open, and end at
// headerTimeout.
func TestServer_SlowSendersBlockNoOthers(t *testing.T) {
	t.Parallel()
	f := listenFeed(time.Hour)
	f.sample()
	limit := headerTimeout
	if f.server.ReadHeaderTimeout != limit {
		t.Errorf("ReadHeaderTimeout %v, want %v", f.server.ReadHeaderTimeout, limit)
	}
	if testing.Short() {
		limit = time.Second
		f.server.ReadHeaderTimeout = limit
	}
	address := listenServe(t, f.Exporter)
	// Responses before the timeout of the slow senders did not wait for them.
	var slow []net.Conn
	for trial, took := 1, limit; took >= limit; trial++ {
		if trial > 5 {
			t.Fatalf("ten answers took %v or more in each of 5 trials, want less in one", limit)
		}
		begin := time.Now()
		slow = slowSenders(t, address)
		for range 10 {
			prompt(t, address)
		}
		took = time.Since(begin)
	}
	var closed atomic.Int64
	var all sync.WaitGroup
	for _, c := range slow { // concurrently, because a Read may start late
		all.Go(func() {
			if hungUp(c, 500*time.Millisecond) {
				closed.Add(1)
			}
		})
	}
	all.Wait()
	if n := closed.Load(); n < int64(len(slow)-connections) {
		t.Errorf("%d of %d slow connections closed at once, want at least %d", n, len(slow), len(slow)-connections)
	}
	for i, c := range slow {
		if !hungUp(c, time.Minute) {
			t.Errorf("slow connection %d is still open after a minute, want it closed", i)
			break
		}
	}
}

// slowSenders opens a hundred connections that send a byte now and then.
func slowSenders(t *testing.T, address string) (slow []net.Conn) {
	t.Helper()
	for range 100 {
		c := listenDial(t, address)
		if _, err := io.WriteString(c, "G"); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	go func() {
		for range 40 {
			time.Sleep(200 * time.Millisecond)
			for _, c := range slow {
				_, _ = io.WriteString(c, "E")
			}
		}
	}()
	return slow
}

// One connection too many closes exactly one, even if the closed one is still active.
func TestConnLimit_ClosesConnectionIdleLongest(t *testing.T) {
	c := &connLimit{max: 2, active: make(map[net.Conn]time.Time)}
	var conns []net.Conn
	for range 3 {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close(); there.Close() })
		c.changed(here, http.StateNew)
		conns = append(conns, here)
	}
	c.changed(conns[0], http.StateActive) // its goroutine has yet to see that it is closed
	closed := func() (out []int) {
		for i, conn := range conns {
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				out = append(out, i)
			}
		}
		return out
	}
	if got := closed(); !slices.Equal(got, []int{0}) {
		t.Errorf("connections %v are closed, want [0]", got)
	}
	c.changed(conns[0], http.StateClosed)
	c.changed(conns[1], http.StateActive)
	here, there := net.Pipe()
	defer there.Close()
	c.changed(here, http.StateNew)
	if got := closed(); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("connections %v are closed, want [0 2], which changed least recently", got)
	}
	here.Close()
}

func TestServer_RefusesHugeHeaders(t *testing.T) {
	t.Parallel()
	f := listenFeed(time.Hour)
	f.sample()
	address := listenServe(t, f.Exporter)
	for name, head := range map[string]string{
		"one line":   "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"many lines": "GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: y\r\n", 1<<18) + "\r\n",
		"a path":     "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		c := listenDial(t, address)
		go func() { _, _ = io.WriteString(c, head) }() // it is not all read
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: no response: %v, want status 431", name, err)
		} else if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: status %s, want 431", name, answer.Status)
		}
	}
	// The largest usual header of a browser is accepted.
	for size, want := range map[int]int{8 << 10: 200, headerBytes + 4096: 431} {
		request, _ := http.NewRequest("GET", "http://"+address+"/healthz", nil)
		request.Header.Set("Cookie", strings.Repeat("x", size))
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%d bytes of header: status %s, want %d", size, answer.Status, want)
		}
	}
}

// Garbage gets a response or a closed connection, never a hang, and is not logged.
func TestServer_GarbageNeverHangs(t *testing.T) {
	t.Parallel()
	f := listenFeed(time.Hour)
	f.sample()
	address := listenServe(t, f.Exporter)
	for _, text := range []string{"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1", "\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"} {
		c := listenDial(t, address)
		if _, err := io.WriteString(c, text); err != nil {
			t.Error(err)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(c)
		if strings.HasPrefix(string(answer), "HTTP/1.1 200") && !strings.Contains(text, "zz") || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: error %v, answer %.80q; want no hang and no status 200", text, err, answer)
		}
	}
	prompt(t, address)
}

// Clients that request a report and never read it only occupy their connections: others are served, and Close does not
// wait for them.
func TestServer_ClientsThatNeverReadBlockNoOthers(t *testing.T) {
	t.Parallel()
	f := listenFeed(time.Hour)
	for range 1000 { // a report too large for the kernel's buffers
		f.sample()
	}
	address := listenServe(t, f.Exporter)
	var clients []net.Conn
	for range 2 * connections {
		c := listenDial(t, address)
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		_, _ = io.WriteString(c, strings.Repeat("GET /report.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 20))
		clients = append(clients, c)
	}
	for range 5 {
		if took := prompt(t, address); took > writeTimeout/2 { // waiting for them would take all of it
			t.Errorf("GET took %v beside clients that never read, want at most %v", took, writeTimeout/2)
		}
	}
	slices.Reverse(clients)
	if !slices.ContainsFunc(clients, func(c net.Conn) bool { // a remaining one is in its responses
		_, err := c.Read(make([]byte, 1))
		return err == nil
	}) {
		t.Fatal("no client gets a byte of an answer, want one in the midst of its responses")
	}
	begin := time.Now()
	f.Close()
	if took := time.Since(begin); took > writeTimeout/3 { // without waiting for unread responses
		t.Errorf("Close took %v, want at most %v", took, writeTimeout/3)
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Errorf("%s accepts a connection after Close, want it refused", address)
	}
}

// An Exporter closed before Serve serves nothing.
func TestExporter_ClosedBeforeServeServesNothing(t *testing.T) {
	f := listenFeed(time.Second)
	f.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Serve(l, ""); err != http.ErrServerClosed {
		t.Errorf("Serve after Close: %v, want %v", err, http.ErrServerClosed)
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Errorf("%s accepts a connection after Close, want it refused", l.Addr())
	}
}
