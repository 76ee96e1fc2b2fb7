package exporter

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// listenDial connects to address. The connection is closed when the test ends.
func listenDial(t testing.TB, address string) net.Conn {
	t.Helper()
	c := check.Value(net.Dial("tcp", address))(t)
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	return c
}

// prompt requests /healthz on a new connection.
func prompt(t testing.TB, address string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}
	answer := check.Value(client.Get("http://" + address + "/healthz"))(t)
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "ok\n" {
		t.Fatalf("GET /healthz: body %q, error %v; want \"ok\\n\"", body, err)
	}
}

// hungUp reports whether the other side closes a connection within the given time.
func hungUp(c net.Conn, within time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(within))
	for {
		if _, err := c.Read(make([]byte, 4096)); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// A hundred connections that occasionally send a byte do not block other connections. Some of them are closed
// immediately, and the others at headerTimeout.
func TestServer_SlowSendersBlockNoOthers(t *testing.T) {
	t.Parallel()
	f := sampledFeed(time.Hour, 1) // its headerTimeout is longer than the test
	address := listenServe(t, f.Exporter)
	slow := slowSenders(t, address)
	for range 10 {
		prompt(t, address)
	}
	closed := make(chan bool, len(slow))
	for _, c := range slow {
		go func() { closed <- hungUp(c, time.Minute) }()
	}
	for i := range len(slow) - connections {
		if !<-closed {
			t.Fatalf("%d of %d slow connections closed immediately, want at least %d", i, len(slow), len(slow)-connections)
		}
	}

	s := New(f.options)
	if s.server.ReadHeaderTimeout != headerTimeout {
		t.Errorf("ReadHeaderTimeout %v, want %v", s.server.ReadHeaderTimeout, headerTimeout)
	}
	if testing.Short() {
		s.server.ReadHeaderTimeout = time.Second
	}
	for i, c := range slowSenders(t, listenServe(t, s)) {
		if !hungUp(c, time.Minute) {
			t.Errorf("slow connection %d is still open after a minute, want it closed", i)
			break
		}
	}
}

// slowSenders opens a hundred connections that occasionally send a byte.
func slowSenders(t *testing.T, address string) (slow []net.Conn) {
	t.Helper()
	for range 100 {
		c := listenDial(t, address)
		check.Value(io.WriteString(c, "G"))(t)
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

// Each connection above the limit closes exactly one connection, even if the closed connection is still active.
func TestConnLimit_ClosesLeastRecentlyActiveConnection(t *testing.T) {
	c := &connLimit{max: 2, active: make(map[net.Conn]time.Time)}
	var conns []net.Conn
	for range 3 {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close(); there.Close() })
		c.changed(here, http.StateNew)
		conns = append(conns, here)
	}
	c.changed(conns[0], http.StateActive) // its goroutine has not noticed yet that it is closed
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
		t.Errorf("connections %v are closed, want [0 2], the ones that changed least recently", got)
	}
	here.Close()
}

func TestServer_RefusesHugeHeaders(t *testing.T) {
	t.Parallel()
	f := sampledFeed(time.Hour, 1)
	address := listenServe(t, f.Exporter)
	for name, head := range map[string]string{
		"long line":  "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"many lines": "GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: y\r\n", 1<<18) + "\r\n",
		"long path":  "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		c := listenDial(t, address)
		go func() { _, _ = io.WriteString(c, head) }() // the server does not read all of it
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
		answer := check.Value(http.DefaultTransport.RoundTrip(request))(t)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%d bytes of header: status %s, want %d", size, answer.Status, want)
		}
	}
}

// A malformed request gets a response or a closed connection. It never hangs, and is not logged.
func TestServer_MalformedRequestsNeverHang(t *testing.T) {
	t.Parallel()
	f := sampledFeed(time.Hour, 1)
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
			t.Errorf("%q: error %v, response %.80q; want no hang and no status 200", text, err, answer)
		}
	}
	prompt(t, address)
}

// Clients that request a report and never read it occupy only their connections. Other clients are served, and Close
// does not wait.
func TestServer_ClientsThatNeverReadBlockNoOthers(t *testing.T) {
	t.Parallel()
	f := sampledFeed(time.Hour, 1000) // a report too large for the kernel's buffers
	address := listenServe(t, f.Exporter)
	var clients []net.Conn
	for range 2 * connections {
		c := listenDial(t, address)
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		_, _ = io.WriteString(c, strings.Repeat("GET /report.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 20))
		clients = append(clients, c)
	}
	for range 5 {
		prompt(t, address)
	}
	slices.Reverse(clients)
	if !slices.ContainsFunc(clients, func(c net.Conn) bool { // a connected client has an unread response
		_, err := c.Read(make([]byte, 1))
		return err == nil
	}) {
		t.Fatal("no client received a byte of a response, want at least one with an unfinished response")
	}
	begin := time.Now()
	f.Close()
	if took := time.Since(begin); took > time.Minute { // without waiting for unread responses
		t.Errorf("Close took %v, want at most a minute", took)
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
	l := check.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	if err := f.Serve(l, ""); err != http.ErrServerClosed {
		t.Errorf("Serve after Close: %v, want %v", err, http.ErrServerClosed)
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Errorf("%s accepts a connection after Close, want it refused", l.Addr())
	}
}

func TestExporter_ServesOnlyKnownPaths(t *testing.T) {
	f := listenFeed(time.Hour) // every sample has a view
	f.sample()
	const text = "text/plain; charset=utf-8"
	type answer struct {
		code              int
		contentType, body string
	}
	answers := map[string]answer{
		"/":            {200, "text/html; charset=utf-8", "<"},
		"/?x=/metrics": {200, "text/html; charset=utf-8", "<"},
		"/metrics":     {200, "text/plain; version=0.0.4; charset=utf-8", "# HELP perfagent_"},
		"/report.json": {200, "application/json", "{\n"},
		"/healthz":     {200, text, "ok\n"},
	}
	for _, path := range []string{"/metrics/", "/Metrics", "//", "/../etc/passwd", "/index.html", "/healthz/%2e%2e",
		"/favicon.ico", "/node-0.json", "/<script>", "/metrics%00", "/debug/pprof/heap"} {
		answers[path] = answer{404, text, "not found: this server has"}
	}
	for path, want := range answers {
		w := f.get(path)
		h := w.Header()
		if w.Code != want.code || h.Get("Content-Type") != want.contentType || !strings.HasPrefix(w.Body.String(), want.body) {
			t.Errorf("%s: status %d, type %q, body %.60q; want %+v", path, w.Code, h.Get("Content-Type"), w.Body, want)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
			t.Errorf("%s: headers %v, want nosniff, no-store and a length of %d", path, h, w.Body.Len())
		}
		if policy := h.Get("Content-Security-Policy"); strings.HasPrefix(policy, "default-src 'none';") != (want.body == "<") {
			t.Errorf("%s: Content-Security-Policy %q, want \"default-src 'none'; ...\" for pages only", path, policy)
		}
		head := ask(f.Exporter, http.MethodHead, path)
		if head.Code != w.Code || head.Body.Len() != 0 || head.Header().Get("Content-Length") != h.Get("Content-Length") {
			t.Errorf("HEAD %s: status %d, %d bytes, headers %v; want %d, 0, the length of GET",
				path, head.Code, head.Body.Len(), head.Header(), w.Code)
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"} {
			if w := ask(f.Exporter, method, path); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: status %d, Allow %q; want 405, \"GET, HEAD\"", method, path, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

func TestExporter_CompressesIfClientAcceptsGzip(t *testing.T) {
	f := sampledFeed(time.Hour, 1)
	plain := f.get("/report.json")
	for accepted, zipped := range map[string]bool{"gzip": true, "deflate, gzip, br": true, "GZIP;q=0.5": true, "gzip; q=1.0": true,
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.000": false, "identity": false, "xgzip": false, ",;,=": false} {
		w := f.get("/report.json", "Accept-Encoding: "+accepted)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != zipped || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: compressed %v, want %v; Vary %q, want Accept-Encoding",
				accepted, got, zipped, w.Header().Get("Vary"))
		}
		if !zipped {
			continue
		}
		z := check.Value(gzip.NewReader(w.Body))(t)
		if text, err := io.ReadAll(z); err != nil || string(text) != plain.Body.String() {
			t.Errorf("Accept-Encoding %q: error %v, %d bytes; want the %d bytes of the plain report",
				accepted, err, len(text), plain.Body.Len())
		}
	}
	if w := f.get("/metrics", "Accept-Encoding: gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("/metrics is compressed, want it plain: compression costs more than it saves")
	}
}

// On a loopback address, the Host header may be the name of an attacker's page, which resolves to this address.
func TestExporter_RefusesForeignHostOnLoopback(t *testing.T) {
	f := sampledFeed(time.Hour, 1)
	f.local = "Node-17"
	for host, allowed := range map[string]bool{"127.0.0.1": true, "127.0.0.1:9100": true, "[::1]:9100": true, "[::1]": true, "10.1.2.3:80": true,
		"localhost": true, "LOCALHOST:9100": true, "localhost.:9100": true, "": true, "node-17:9100": true, "node-17": true,
		"evil.example": false, "evil.example:9100": false, "localhost.evil.example": false, "127.0.0.1.evil.example:9100": false, "node-1": false,
		"127.0.0.1@evil": false, "[::1].evil": false} {
		for _, checks := range []bool{true, false} {
			f.checks = checks
			want := 200
			if checks && !allowed {
				want = 403
			}
			for _, path := range []string{"/", "/metrics", "/report.json", "/healthz"} {
				if w := f.get(path, "Host: "+host); w.Code != want {
					t.Errorf("%s with Host %q, checked %v: status %d, want %d", path, host, checks, w.Code, want)
				}
			}
		}
	}
}

func TestExporter_Responds503BeforeFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, begin := listenFeed(time.Second), time.Now()
		for path, code := range map[string]int{"/": 503, "/report.json": 503, "/metrics": 200, "/healthz": 200} {
			w := f.get(path)
			page := w.Header().Get("Content-Type") == "text/html; charset=utf-8" && strings.Contains(w.Body.String(), `<meta http-equiv="refresh" content="2">`)
			if page != (path == "/") || code == 503 && !strings.Contains(w.Body.String(), "no sample has been taken yet") {
				t.Errorf("%s: %q, want a page that reloads for / only, and \"no sample has been taken yet\" with 503", path, w.Body)
			}
			if w.Code != code || (w.Header().Get("Retry-After") == "2") != (code == 503) {
				t.Errorf("%s: status %d, headers %v; want %d, Retry-After 2 with 503 only", path, w.Code, w.Header(), code)
			}
		}
		if waited := time.Since(begin); waited != 3*maxAge { // /healthz does not wait
			t.Errorf("the requests waited for %v, want %v", waited, 3*maxAge)
		}
	})
}

// If the first sample is far in the future, requests do not wait for it. The page of the run so far is served
// immediately, even to requests from before the start of the run.
func TestExporter_LongIntervalServesEmptyRunImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Hour)
		early := make(chan *httptest.ResponseRecorder)
		go func() { early <- f.get("/") }()
		synctest.Wait()
		begin := time.Now()
		f.Begin(f.rec)
		for _, w := range []*httptest.ResponseRecorder{<-early, f.get("/")} {
			if w.Code != 200 || !strings.Contains(w.Body.String(), "run <b>r-1</b>") || !strings.Contains(w.Body.String(), `<em class="live">Running</em> for 0`) {
				t.Errorf("/: status %d, body %.80q; want 200 and a page of r-1, running for 0 s", w.Code, w.Body)
			}
		}
		if w := f.get("/report.json"); w.Code != 503 || w.Body.String() != "no sample has been taken yet\n" || w.Header().Get("Retry-After") != "30" {
			t.Errorf("/report.json: status %d, body %q, headers %v; want 503, no sample yet, Retry-After 30",
				w.Code, w.Body, w.Header())
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the requests waited for %v, want no wait", waited)
		}
		f.sample()
		f.wantSamples(t, 1)
	})
}

// A page that has not been requested for some seconds is dropped. The next request gets the next sample.
func TestExporter_DropsUnrequestedPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Second)
		second := func() { time.Sleep(time.Second); f.sample() }
		go second()
		samplesOf(t, f.get("/report.json"))
		for n := range 12 {
			synctest.Wait()
			if v := f.view.Load(); (v != nil) != (n <= 10) {
				t.Errorf("%d s after the request: view %v, want a view only for 10 s", n, v)
			}
			second()
		}
		go second()
		f.wantSamples(t, 14)
		for range 12 {
			second()
		}
		if w := f.get("/"); w.Code != 503 || !strings.Contains(w.Body.String(), "no sample came in time") { // sampling hangs
			t.Errorf("/ while sampling hangs: status %d, body %q; want 503, \"no sample came in time\"", w.Code, w.Body)
		}
	})
}

// Fifty concurrent clients get the next sample, and only one report is made for all of them.
func TestExporter_ManyClientsCostOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Second)
		answers := make([]*httptest.ResponseRecorder, 50)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = f.get([]string{"/", "/report.json"}[i%2]) })
		}
		synctest.Wait() // all clients wait for a sample
		f.sample()
		all.Wait()
		for i, w := range answers {
			if w.Code != 200 || w.Body.String() != answers[i%2].Body.String() {
				t.Errorf("client %d: status %d, want 200; same body as client %d: %v, want true",
					i, w.Code, i%2, w.Body.String() == answers[i%2].Body.String())
			}
		}
		if f.reports != 1 {
			t.Errorf("%d reports made for 50 clients, want 1", f.reports)
		}
	})
}

// samplesOf returns the number of samples in the report of a response.
func samplesOf(t *testing.T, w *httptest.ResponseRecorder) int64 {
	t.Helper()
	var r reporter.Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || r.Run.Incomplete == "" {
		t.Fatalf("status %d, body %.80q: %v, want a report of an incomplete run", w.Code, w.Body, err)
	}
	return r.Nodes["3"].Sampling.Samples
}

// wantSamples checks the number of samples in the current report.
func (f *feed) wantSamples(t *testing.T, want int64) {
	t.Helper()
	if n := samplesOf(t, f.get("/report.json")); n != want {
		t.Errorf("%d samples in the report, want %d", n, want)
	}
}

// A page is never older than 2 s plus one interval, and is made at most every 2 s. Nothing is copied without requests.
func TestExporter_PagesAreFreshAndMadeAtMostEvery2s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Second)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					f.sample()
				case <-stop:
					return
				}
			}
		}()
		time.Sleep(10*time.Second + time.Millisecond)
		if f.view.Load() != nil {
			t.Error("there is a view before the first request, want no copy of the Recording")
		}
		for i := range 100 { // a client with ten requests per second
			before := f.snapshot.Load().samples
			if got := samplesOf(t, f.get("/report.json")); got < before-2 {
				t.Fatalf("request %d: %d samples in the report, want at least %d - 2", i, got, before)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if f.reports > 6 {
			t.Errorf("%d reports made in 10 s, want at most 6", f.reports)
		}
		close(stop)
		<-done
	})
}

// With an interval of an hour, requests do not wait for the next sample.
func TestExporter_LongIntervalServesLastSampleImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, begin := sampledFeed(time.Hour, 1), time.Now()
		for range 3 {
			f.wantSamples(t, 1)
			time.Sleep(10 * time.Minute)
		}
		if f.reports != 1 || time.Since(begin) != 30*time.Minute {
			t.Errorf("%d reports built in %v, want 1 in 30m (requests must not wait for a sample)", f.reports, time.Since(begin))
		}
		f.sample()
		f.wantSamples(t, 2)
	})
}

// If sampling hangs, the newest page is served, after a wait for a newer page.
func TestExporter_ServesTheNewestPageWhenSamplingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Second)
		go func() { time.Sleep(time.Second); f.sample() }()
		f.wantSamples(t, 1)
		f.sample() // not copied, because there is no request
		time.Sleep(time.Hour)
		begin := time.Now()
		if n := samplesOf(t, f.get("/report.json")); n != 1 || time.Since(begin) != maxAge {
			t.Errorf("%d samples in the report after a wait of %v; want 1 after %v", n, time.Since(begin), maxAge)
		}
	})
}

// If rendering fails, the response has status 500. The next request may succeed.
func TestExporter_Responds500AfterPanic(t *testing.T) {
	f := listenFeed(time.Hour)
	good := f.options.Report
	f.options.Report = func(*collector.Recording) *reporter.Report { panic("ouch") }
	f.sample()
	for _, path := range []string{"/", "/report.json", "/"} {
		if w := f.get(path); w.Code != 500 || !strings.Contains(w.Body.String(), "ouch") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s after a panic: status %d, body %q; want 500, a text with \"ouch\"", path, w.Code, w.Body)
		}
	}
	f.options.Report = func(*collector.Recording) *reporter.Report { return nil } // rendering the page panics
	f.sample()
	if w := f.get("/"); w.Code != 500 {
		t.Errorf("/ without a report: status %d, body %q; want 500", w.Code, w.Body)
	}
	f.options.Report = good
	f.sample()
	if w := f.get("/report.json"); w.Code != 200 {
		t.Errorf("/report.json after the panics: status %d, body %q; want 200", w.Code, w.Body)
	}
}

func TestExporter_RefreshIntervalFollowsInterval(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{10 * time.Millisecond: 2 * time.Second, time.Second: 2 * time.Second,
		5 * time.Second: 5 * time.Second, time.Hour: 30 * time.Second} {
		if got := listenFeed(every).refreshInterval(); got != want {
			t.Errorf("interval %v: the page refreshes every %v, want %v", every, got, want)
		}
	}
}

func TestExporter_RequiresToken(t *testing.T) {
	const token = "t0k en:ü"
	e := New(Options{Token: token, RunID: "r"})
	basic := func(user, password string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}

	for header, want := range map[string]int{
		"Bearer " + token: 200, "bearer  " + token: 200, basic("anybody", token): 200, basic("", token): 200,
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer " + token + "x": 401, "Bearer t0k": 401, token: 401,
		"Digest " + token: 401, basic(token, ""): 401, basic("anybody", "x"): 401, "Basic " + token: 401,
	} {
		for _, path := range []string{"/healthz", "/healthz?token=" + url.QueryEscape(token)} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			if header != "" {
				r.Header.Set("Authorization", header)
			}
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("Authorization %q: status %d, want %d", header, w.Code, want)
			}
			if schemes := w.Header().Values("WWW-Authenticate"); (len(schemes) == 2) != (want == 401) {
				t.Errorf("Authorization %q: WWW-Authenticate %q, want two schemes with 401 only", header, schemes)
			}
		}
	}
}

func TestExporter_RequiresTokenForEveryPath(t *testing.T) {
	e := New(Options{Token: "x"})
	for _, path := range []string{"/", "/metrics", "/report.json", "/healthz", "/other"} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			if w := ask(e, method, path); w.Code != 401 {
				t.Errorf("%s %s without the token: status %d, want 401", method, path, w.Code)
			}
		}
	}
}
