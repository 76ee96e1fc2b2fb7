package exporter

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

func TestExporter_Answers(t *testing.T) {
	f := listenFeed(time.Hour) // every sample has a view
	f.sample()
	const text = "text/plain; charset=utf-8"
	for path, want := range map[string]struct {
		code              int
		contentType, body string
	}{
		"/":                 {200, "text/html; charset=utf-8", "<"},
		"/?x=/metrics":      {200, "text/html; charset=utf-8", "<"},
		"/metrics":          {200, "text/plain; version=0.0.4; charset=utf-8", "# HELP perfagent_"},
		"/report.json":      {200, "application/json", "{\n"},
		"/healthz":          {200, text, "ok\n"},
		"/metrics/":         {404, text, "not found: this server has"},
		"/Metrics":          {404, text, "not found: this server has"},
		"//":                {404, text, "not found: this server has"},
		"/../etc/passwd":    {404, text, "not found: this server has"},
		"/index.html":       {404, text, "not found: this server has"},
		"/healthz/%2e%2e":   {404, text, "not found: this server has"},
		"/favicon.ico":      {404, text, "not found: this server has"},
		"/node-0.json":      {404, text, "not found: this server has"},
		"/<script>":         {404, text, "not found: this server has"},
		"/metrics%00":       {404, text, "not found: this server has"},
		"/debug/pprof/heap": {404, text, "not found: this server has"},
	} {
		w := f.get(path)
		h := w.Header()
		if w.Code != want.code || h.Get("Content-Type") != want.contentType || !strings.HasPrefix(w.Body.String(), want.body) {
			t.Errorf("%s: %d %q %.60q", path, w.Code, h.Get("Content-Type"), w.Body)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
			t.Errorf("%s: headers %v", path, h)
		}
		if policy := h.Get("Content-Security-Policy"); strings.HasPrefix(policy, "default-src 'none';") != (want.body == "<") {
			t.Errorf("%s: policy %q", path, policy)
		}
		head := ask(f.Exporter, http.MethodHead, path)
		if head.Code != w.Code || head.Body.Len() != 0 || head.Header().Get("Content-Length") != h.Get("Content-Length") {
			t.Errorf("HEAD %s: %d, %d bytes, %v", path, head.Code, head.Body.Len(), head.Header())
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"} {
			if w := ask(f.Exporter, method, path); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, allowed %q", method, path, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

func TestExporter_ReportIsWhole(t *testing.T) {
	f := listenFeed(time.Hour)
	f.sample()
	f.sample()
	var r reporter.Report
	if err := json.Unmarshal(f.get("/report.json").Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if n := r.Nodes["3"]; r.Run.Incomplete == "" || n == nil || n.Sampling.Samples != 2 || n.Samples.Len() != 2 {
		t.Errorf("%+v", r)
	}
}

func TestExporter_Gzip(t *testing.T) {
	f := listenFeed(time.Hour)
	f.sample()
	plain := f.get("/report.json")
	for value, zipped := range map[string]bool{"gzip": true, "deflate, gzip, br": true, "GZIP;q=0.5": true, "gzip; q=1.0": true,
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.000": false, "identity": false, "xgzip": false, ",;,=": false} {
		w := f.get("/report.json", "Accept-Encoding: "+value)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != zipped || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: zipped %v", value, got)
		}
		if !zipped {
			continue
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != plain.Body.String() {
			t.Errorf("%q: %v, %d bytes, want %d", value, err, len(text), plain.Body.Len())
		}
	}
	if w := f.get("/metrics", "Accept-Encoding: gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("/metrics is zipped: that costs more than it saves")
	}
}

// On a loopback address the name in the Host header may belong to an attacker's page that resolves to this address.
func TestExporter_HostHeaderOnLoopback(t *testing.T) {
	f := listenFeed(time.Hour)
	f.sample()
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
					t.Errorf("%s of %q, checked %v: %d, want %d", path, host, checks, w.Code, want)
				}
			}
		}
	}
}

func TestExporter_NoSampleYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Second)
		begin := time.Now()
		for path, code := range map[string]int{"/": 503, "/report.json": 503, "/metrics": 200, "/healthz": 200} {
			w := f.get(path)
			page := w.Header().Get("Content-Type") == "text/html; charset=utf-8" && strings.Contains(w.Body.String(), `<meta http-equiv="refresh" content="2">`)
			if page != (path == "/") || code == 503 && !strings.Contains(w.Body.String(), "no sample has been taken yet") {
				t.Errorf("%s: %q", path, w.Body)
			}
			if w.Code != code || (w.Header().Get("Retry-After") == "2") != (code == 503) {
				t.Errorf("%s: %d, %v", path, w.Code, w.Header())
			}
		}
		if waited := time.Since(begin); waited != 3*maxAge { // /healthz does not wait
			t.Errorf("the requests waited for %v", waited)
		}
	})
}

// If the first sample is far away, requests do not wait for it: the page of the run so far comes immediately, also for
// requests from before the start of the run.
func TestExporter_NoSampleForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Hour)
		early := make(chan *httptest.ResponseRecorder)
		go func() { early <- f.get("/") }()
		synctest.Wait()
		begin := time.Now()
		f.Begin(f.rec)
		for _, w := range []*httptest.ResponseRecorder{<-early, f.get("/")} {
			if w.Code != 200 || !strings.Contains(w.Body.String(), "<dd>r-1</dd>") || !strings.Contains(w.Body.String(), "running for 0 s") {
				t.Errorf("/: %d %.80q", w.Code, w.Body)
			}
		}
		if w := f.get("/report.json"); w.Code != 503 || w.Body.String() != "no sample has been taken yet\n" || w.Header().Get("Retry-After") != "30" {
			t.Errorf("/report.json: %d %q %v", w.Code, w.Body, w.Header())
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("they waited for %v", waited)
		}
		f.sample()
		if n := samplesOf(t, f.get("/report.json")); n != 1 {
			t.Errorf("%d samples", n)
		}
	})
}

// A page without requests for some seconds is dropped; the next request gets the next sample.
func TestExporter_DropsForgottenPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Second)
		second := func() { time.Sleep(time.Second); f.sample() }
		go second()
		samplesOf(t, f.get("/report.json"))
		for n := range 12 {
			synctest.Wait()
			if v := f.view.Load(); (v != nil) != (n <= 10) {
				t.Errorf("%d s after it was asked for: there is %v", n, v)
			}
			second()
		}
		go second()
		if n := samplesOf(t, f.get("/report.json")); n != 14 {
			t.Errorf("a report of %d samples", n)
		}
		for range 12 {
			second()
		}
		if w := f.get("/"); w.Code != 503 || !strings.Contains(w.Body.String(), "no sample came in time") { // the sampling hangs
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}

// Fifty concurrent clients get the next sample, and a single report is made for all.
func TestExporter_ManyClientsOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Second)
		answers := make([]*httptest.ResponseRecorder, 50)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = f.get([]string{"/", "/report.json"}[i%2]) })
		}
		synctest.Wait() // all wait for a sample
		f.sample()
		all.Wait()
		for i, w := range answers {
			if w.Code != 200 || w.Body.String() != answers[i%2].Body.String() {
				t.Errorf("client %d: %d", i, w.Code)
			}
		}
		if f.reports != 1 {
			t.Errorf("%d reports were made", f.reports)
		}
	})
}

// samplesOf returns the number of samples in the report of a response.
func samplesOf(t *testing.T, w *httptest.ResponseRecorder) int64 {
	t.Helper()
	var r reporter.Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatalf("%d %.80q: %v", w.Code, w.Body, err)
	}
	return r.Nodes["3"].Sampling.Samples
}

// A page is never older than 2 s and one interval, is made at most every 2 s, and nothing is copied without requests.
func TestExporter_FreshPages(t *testing.T) {
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
			t.Error("the Recording was copied though nobody asked")
		}
		for i := range 100 { // a client with ten requests per second
			before := f.snapshot.Load().samples
			if got := samplesOf(t, f.get("/report.json")); got < before-2 {
				t.Fatalf("request %d: a report of %d samples while there are %d", i, got, before)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if f.reports > 6 {
			t.Errorf("%d reports in 10 s", f.reports)
		}
		close(stop)
		<-done
	})
}

// With an interval of an hour, requests do not wait for the next sample.
func TestExporter_LongInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Hour)
		f.sample()
		begin := time.Now()
		for range 3 {
			if n := samplesOf(t, f.get("/report.json")); n != 1 {
				t.Errorf("%d samples", n)
			}
			time.Sleep(10 * time.Minute)
		}
		if f.reports != 1 || time.Since(begin) != 30*time.Minute {
			t.Errorf("%d reports in %v", f.reports, time.Since(begin))
		}
		f.sample()
		if n := samplesOf(t, f.get("/report.json")); n != 2 {
			t.Errorf("%d samples", n)
		}
	})
}

// If the sampling hangs, the newest page is shown, after a wait for a newer one.
func TestExporter_SamplingThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listenFeed(time.Second)
		go func() { time.Sleep(time.Second); f.sample() }()
		if n := samplesOf(t, f.get("/report.json")); n != 1 {
			t.Fatalf("%d samples", n)
		}
		f.sample() // not copied, because there is no request
		time.Sleep(time.Hour)
		begin := time.Now()
		if n := samplesOf(t, f.get("/report.json")); n != 1 || time.Since(begin) != maxAge {
			t.Errorf("%d samples after %v", n, time.Since(begin))
		}
	})
}

// A failure to render is a response with status 500, and the next one may succeed.
func TestExporter_Panic(t *testing.T) {
	f := listenFeed(time.Hour)
	good := f.options.Report
	f.options.Report = func(*collector.Recording) *reporter.Report { panic("ouch") }
	f.sample()
	for _, path := range []string{"/", "/report.json", "/"} {
		if w := f.get(path); w.Code != 500 || !strings.Contains(w.Body.String(), "ouch") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
	f.options.Report = func(*collector.Recording) *reporter.Report { return nil } // rendering the page panics
	f.sample()
	if w := f.get("/"); w.Code != 500 {
		t.Errorf("of no report: %d %q", w.Code, w.Body)
	}
	f.options.Report = good
	f.sample()
	if w := f.get("/report.json"); w.Code != 200 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestExporter_LivePageAsksAgainInTime(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{10 * time.Millisecond: 2 * time.Second, time.Second: 2 * time.Second,
		5 * time.Second: 5 * time.Second, time.Hour: 30 * time.Second} {
		if got := listenFeed(every).refreshInterval(); got != want {
			t.Errorf("interval %v: %v, want %v", every, got, want)
		}
	}
}

func TestExporter_AsksForTheToken(t *testing.T) {
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
				t.Errorf("%q: %d, want %d", header, w.Code, want)
			}
			if schemes := w.Header().Values("WWW-Authenticate"); (len(schemes) == 2) != (want == 401) {
				t.Errorf("%q: WWW-Authenticate %q", header, schemes)
			}
		}
	}
}

func TestExporter_AsksForTheTokenEverywhere(t *testing.T) {
	e := New(Options{Token: "x"})
	for _, path := range []string{"/", "/metrics", "/report.json", "/healthz", "/other"} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			if w := ask(e, method, path); w.Code != 401 {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
}
