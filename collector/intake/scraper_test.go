package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

func init() { maxScrape = time.Minute } // however slow the machine is

// scraping returns an Intake that scrapes the endpoints once per interval. The Intake is closed at the end of the test.
func scraping(t testing.TB, interval time.Duration, endpoints ...string) *Intake {
	t.Helper()
	o := Options{ScrapeInterval: interval}
	for _, e := range endpoints {
		u := check.Value(ParseEndpoint(e))(t)
		o.Endpoints = append(o.Endpoints, u)
	}
	in := check.Value(Open(o))(t)
	t.Cleanup(func() { in.Close() })

	return in
}

// wait polls until the operations of an Intake satisfy wanted, for at most two minutes.
func wait(t testing.TB, in *Intake, what string, wanted func(aggregate.Operations) bool) aggregate.Operations {
	t.Helper()
	for began := time.Now(); time.Since(began) < 2*time.Minute; {
		if ops := in.CopyAggregator().Operations(time.Now()); wanted(ops) {
			return ops
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("no %s within 2 minutes; operations %+v", what, in.CopyAggregator().Operations(time.Now()))
	return aggregate.Operations{}
}

// scrapes returns a condition for wait: the first source had at least n scrapes.
func scrapes(n int64) func(aggregate.Operations) bool {
	return func(ops aggregate.Operations) bool { return *ops.Sources[0].Scrapes >= n }
}

func TestScraper_RequestsTextAndHidesCredentials(t *testing.T) {
	var got atomic.Pointer[http.Request]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r)
		fmt.Fprint(w, "# TYPE a counter\na 5\ng 1\n")
	}))
	defer server.Close()
	in := scraping(t, time.Hour, strings.Replace(server.URL, "http://", "http://user:secret@", 1)+"/metrics?token=hidden#x")
	in.Start(time.Now().Add(-time.Second)) // the first scrape finds a server, so it may be older than the job
	ops := wait(t, in, "scrape", scrapes(1))

	r := got.Load()
	user, password, _ := r.BasicAuth()
	if r.Header.Get("Accept") != "text/plain;version=0.0.4" || r.Header.Get("Accept-Encoding") != "" || user != "user" || password != "secret" ||
		r.URL.Query().Get("token") != "hidden" {
		t.Errorf("request for %v with header %v, want the token, the user and password, and uncompressed text", r.URL, r.Header)
	}
	if s := ops.Sources[0]; s.Address != server.URL+"/metrics" || s.Kind != "scrape" || s.Events != 2 || s.SecondsBeforeEnd == nil || s.Datagrams != nil {
		t.Errorf("source %+v, want address %s/metrics, kind scrape, 2 events, SecondsBeforeEnd and no datagrams", s,
			server.URL)
	}
	if ops.Counters["a"] != 0 || ops.Gauges["g"].Last != 1 {
		t.Errorf("operations of a server older than the job = %+v, want counter a 0 and gauge g 1", ops)
	}
}

// The counters of a server that starts after the job count from 0. ScrapeNow scrapes without waiting for the interval.
func TestScraper_CountsNewServerFromZero(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	in := scraping(t, time.Hour, "http://"+address)
	in.Start(time.Now())
	ops := wait(t, in, "failure", scrapes(1))
	if s := ops.Sources[0]; s.Failures != 1 || !strings.Contains(s.Why, "connection refused") || strings.Contains(s.Why, "http://") {
		t.Errorf("source %+v, want one failure with \"connection refused\" and without the URL", s)
	}

	listener := check.Value(net.Listen("tcp", address))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "# TYPE a counter\na 5\n") })}
	go server.Serve(listener)
	defer server.Close()
	in.ScrapeNow()
	in.ScrapeNow()
	if ops := wait(t, in, "scrape", scrapes(2)); ops.Counters["a"] != 5 || ops.Sources[0].Failures != 1 {
		t.Errorf("operations of a new server = %+v, want counter a 5 and one failure", ops)
	}
}

func TestScraper_ScrapesEveryInterval(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "process_start_time_seconds 9e9\n# TYPE a counter\na %d\n", n.Add(1))
	}))
	defer server.Close()
	in := scraping(t, 20*time.Millisecond, server.URL)
	in.Start(time.Now())
	wait(t, in, "third count", func(ops aggregate.Operations) bool { return ops.Counters["a"] >= 3 })
	ops := closed(t, in)
	if taken := *ops.Sources[0].Scrapes; ops.Counters["a"] < 3 || ops.Counters["a"] > float64(n.Load()) || taken < 3 {
		t.Errorf("counters %v after %d scrapes, want a from 3 to %d and at least 3 scrapes", ops.Counters, taken, n.Load())
	}
}

func TestScraper_RecordsReasonOfFailure(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "stolen 1\n") }))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		why    string
	}{
		"status":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "the response has status 503"},
		"web page":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>\n") }, `line 1: "<html>" is not the name of a metric`},
		"cut body":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a 1\nb") }, "line 2: the last line has no end"},
		"OpenMetrics": {openMetrics, "it responds in the OpenMetrics format, although Prometheus' text format was requested"},
		"another host": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) },
			"it redirects to another host, " + strings.TrimPrefix(elsewhere, "http://")},
		"redirect loop": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, "it redirects too often"},
		"no response": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-block:
			case <-r.Context().Done():
			}
		}, "no complete response within 100ms"},
		"body too long": {endless, "the response is longer than 8 MiB"},
		"connection closed early": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "a 1\n")
		}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			interval := time.Minute
			if name == "no response" {
				interval = 100 * time.Millisecond
			}
			in := scraping(t, interval, strings.Replace(server.URL, "http://", "http://user:secret@", 1))
			in.Start(time.Now())
			ops := wait(t, in, "scrape", scrapes(1))
			if s := ops.Sources[0]; s.Failures != *s.Scrapes || s.Why != tt.why || s.Events != 0 || len(ops.Gauges) != 0 {
				t.Errorf("source %+v, %d gauges; want only failures %q, no events and no gauges", s, len(ops.Gauges), tt.why)
			}
		})
	}
}

func openMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
	fmt.Fprint(w, "# EOF\n")
}

func endless(w http.ResponseWriter, _ *http.Request) {
	line := []byte("# " + strings.Repeat("a", 1<<14) + "\n")
	for range 2 * maxBody / len(line) {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

// A redirect to the same host is followed with the credentials.
func TestScraper_FollowsRedirectToSameHost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/metrics", http.StatusMovedPermanently)
			return
		}
		user, _, _ := r.BasicAuth()
		fmt.Fprintf(w, "a{user=%q} 1\n", user)
	}))
	defer server.Close()
	in := scraping(t, time.Hour, strings.Replace(server.URL, "http://", "http://joe:secret@", 1))
	in.Start(time.Now())
	if ops := wait(t, in, "scrape", scrapes(1)); ops.Gauges[`a{user="joe"}`].Count != 1 {
		t.Errorf("operations after a redirect = %+v, want the gauge with the user joe", ops)
	}
}

// Counters count from 0 only if the server was missing at the start of the job. A slow server may have counted earlier.
func TestScraper_SlowServerCountsFromFirstScrape(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "# TYPE a counter\na %d\n", 7000)
	}))
	defer server.Close()
	in := scraping(t, 100*time.Millisecond, server.URL)
	in.Start(time.Now())
	success := func(ops aggregate.Operations) bool { return *ops.Sources[0].Scrapes > ops.Sources[0].Failures }
	if ops := wait(t, in, "success", success); ops.Sources[0].Failures == 0 || ops.Counters["a"] != 0 {
		t.Errorf("operations of a slow server = %+v, want a failure and counter a 0", ops)
	}
}

func TestIsUnreachable_OnlyIfServerIsMissing(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for err, want := range map[error]bool{
		refused: true, fmt.Errorf("ask: %w", refused): true,
		&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}:                true,
		&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}:                         false,
		&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}:   false,
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}: false,
		errors.New("the response has status 503"):                                     false,
	} {
		if isUnreachable(err) != want {
			t.Errorf("isUnreachable(%v) = %t, want %t", err, !want, want)
		}
	}
}

func TestSameHost_NeverLeavesHTTPS(t *testing.T) {
	from, to := &http.Request{URL: &url.URL{Scheme: "https", Host: "a:1"}}, &http.Request{URL: &url.URL{Scheme: "http", Host: "a:1"}}
	if sameHost(to, []*http.Request{from}) == nil || sameHost(from, []*http.Request{to}) != nil {
		t.Errorf("sameHost from https to http: %v, from http to https: %v; want an error, nil",
			sameHost(to, []*http.Request{from}), sameHost(from, []*http.Request{to}))
	}
}

// An endpoint that does not respond does not delay Close, and a later response is ignored.
func TestScraper_CloseDoesNotWaitForResponse(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-release
	}))
	defer server.Close()
	defer close(release)
	in := scraping(t, time.Hour, server.URL)
	in.Start(time.Now())
	<-asked
	began, ops := time.Now(), closed(t, in)
	if took := time.Since(began); took > maxScrape*4/5 || *ops.Sources[0].Scrapes != 0 { // a scrape that was not ended would take all of maxScrape
		t.Errorf("Close took %v with %d scrapes, want at most %v and no scrapes", took, *ops.Sources[0].Scrapes, maxScrape*4/5)
	}
}

// largeBody returns a body of 4 MB with lines in the same order as from a client library.
func largeBody() []byte {
	var out bytes.Buffer
	for k := 0; out.Len() < 4<<20; k++ {
		fmt.Fprintf(&out, "# HELP app_requests_%d_total How many.\n# TYPE app_requests_%d_total counter\n", k, k)
		for path := range 20 {
			fmt.Fprintf(&out, "app_requests_%d_total{code=\"200\",method=\"GET\",path=\"/objects/%d\"} %d\n", k, path, k)
		}
	}
	return out.Bytes()
}

// serving returns a scraper for a server that responds with body.
func serving(t testing.TB, body []byte) *scraper {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) }))
	t.Cleanup(server.Close)
	s := scraping(t, time.Hour, server.URL).scrapers[0]
	s.endpoint = aggregate.NewEndpoint(time.Now(), time.Time{})
	return s
}

// Only part of a body is in memory, however long the body is.
func TestScraper_KeepsOnlyPartOfBodyInMemory(t *testing.T) {
	body := largeBody()
	s := serving(t, body)
	s.scrape(t.Context()) // allocates the memory that later scrapes reuse

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.scrape(t.Context())
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 1<<20 { // the server allocates most of it
		t.Errorf("reading a body of %d bytes allocated %d bytes, want at most %d", len(body), made, 1<<20)
	}
	if ops := s.in.CopyAggregator().Operations(time.Now()); ops.Sources[0].Failures > 0 || ops.Sources[0].Events == 0 {
		t.Errorf("source %+v, want events and no failures", ops.Sources[0])
	}
}

// A lockedBody is an empty body that checks when the scraper holds the lock parsing.
type lockedBody struct {
	t       *testing.T
	parsing *sync.Mutex
}

func (b lockedBody) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: b}, nil
}

func (b lockedBody) Read([]byte) (int, error) {
	if !b.parsing.TryLock() {
		b.t.Fatal("the scraper holds the lock while it waits for a part of a body")
	}
	b.parsing.Unlock()
	return 0, io.EOF
}

func (b lockedBody) Close() error {
	if b.parsing.TryLock() {
		b.t.Error("the scraper does not hold the lock at the end of a body")
	}
	return nil
}

// Only one scraper parses at a time.
func TestScraper_LocksWhileItParses(t *testing.T) {
	s := serving(t, nil)
	s.client.Transport = lockedBody{t, &s.in.parsing}
	s.scrape(t.Context())
	if ops := s.in.CopyAggregator().Operations(time.Now()); *ops.Sources[0].Scrapes != 1 || ops.Sources[0].Failures != 0 {
		t.Errorf("source %+v, want one scrape without a failure", ops.Sources[0])
	}
}

// A server with an endless response does not delay scrapes of other servers.
func TestScraper_SlowBodyDoesNotDelayOthers(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a 1\n")
		w.(http.Flusher).Flush()
		close(asked)
		<-release
	}))
	defer slow.Close()
	defer close(release)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-asked
		fmt.Fprint(w, "b 1\n")
	}))
	defer other.Close()

	in := scraping(t, time.Hour, slow.URL, other.URL)
	in.Start(time.Now())
	wait(t, in, "scrape of the other one", func(ops aggregate.Operations) bool { return *ops.Sources[1].Scrapes == 1 })
	if ops := in.CopyAggregator().Operations(time.Now()); *ops.Sources[0].Scrapes != 0 || ops.Gauges["b"].Last != 1 {
		t.Errorf("operations with a slow server = %+v, want no scrape of the slow server, and gauge b 1", ops)
	}
}

// The budget is 3 ms of CPU time for a scrape of a vLLM server; the benchmark also measures the server itself. The
// large body shows the cost per byte.
func BenchmarkScraper(b *testing.B) {
	vllm := check.Value(os.ReadFile("wire/testdata/vllm.txt"))(b)
	for name, body := range map[string][]byte{"vLLM": vllm, "4 MB": largeBody()} {
		b.Run(name, func(b *testing.B) {
			s := serving(b, body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				s.scrape(b.Context())
			}
			if ops := s.in.CopyAggregator().Operations(time.Now()); ops.Sources[0].Failures > 0 {
				b.Fatal(ops.Sources[0].Why)
			}
		})
	}
}
