package main

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/storetest"
	"github.com/perfagent/perfagent/reporter"
)

// A storeFault is a store that does not accept reports.
type storeFault struct {
	address string
	words   string // in the reported error
	again   bool   // the fault may be temporary, so perfagent retries until the timeout
}

// s3Faults returns the faults of an S3 server.
func s3Faults(t *testing.T) map[string]storeFault {
	t.Helper()
	server := func(answer http.HandlerFunc) string {
		s := httptest.NewServer(answer)
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		return "s3://runs?endpoint=" + s.URL
	}
	status := func(code int, body string) string {
		return server(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(code)
			io.WriteString(w, body)
		})
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)

	return map[string]storeFault{
		"S3 refused":     {"s3://runs?endpoint=http://" + storetest.FreeAddress(t), "connection refused", true},
		"S3 no host":     {"s3://runs?endpoint=http://host.invalid", "host.invalid", false},
		"S3 500":         {status(500, ""), "500 Internal Server Error", true},
		"S3 503":         {status(503, "<Error><Code>SlowDown</Code></Error>"), "503", true},
		"S3 403":         {status(403, "<Error><Code>AccessDenied</Code></Error>"), "403 AccessDenied", false},
		"S3 no bucket":   {status(404, "<Error><Code>NoSuchBucket</Code></Error>"), "404 NoSuchBucket", false},
		"S3 wrong clock": {status(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>"), "RequestTimeTooSkewed", false},
		"certificate":    {"s3://runs?endpoint=" + tls.URL, "certificate", false},
		"S3 hangs":       {server(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), "--push-timeout of 3s", true},
		"S3 excess data": {server(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(conn, "HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\nmore lines")
		}), "503", true},
		"S3 truncated": {server(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-")
			conn.Close()
		}), "EOF", true},
	}
}

// redisFaults returns the faults of a Redis server.
func redisFaults(t *testing.T) map[string]storeFault {
	t.Helper()
	server := func(answer string, pause time.Duration) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check.Must(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go answerSlowly(conn, answer, pause)
			}
		}()
		return "redis://" + l.Addr().String()
	}
	const at = time.Millisecond

	return map[string]storeFault{
		"refused":        {"redis://" + storetest.FreeAddress(t), "connection refused", true},
		"hangs":          {server("", at), "--push-timeout of 3s", true},
		"slow":           {server("+"+strings.Repeat("x", 1000), time.Second/4), "--push-timeout of 3s", true},
		"READONLY":       {server("-READONLY You can't write against a read only replica.\r\n", at), "READONLY", true},
		"OOM":            {server("-OOM command not allowed\r\n", at), "OOM", true},
		"LOADING":        {server("-LOADING Redis is loading\r\n", at), "LOADING", true},
		"MOVED":          {server("-MOVED 1 127.0.0.1:1\r\n", at), "a Redis cluster is not supported: name the node", false},
		"not Redis":      {server("HTTP/1.1 400 Bad Request\r\n\r\n", at), "not from a Redis server", false},
		"wrong password": {"redis://:wrong-s3cr3t@" + storetest.Redis(t, "--requirepass", "right-s3cr3t"), "WRONGPASS", false},
		"no password":    {"redis://" + storetest.Redis(t, "--requirepass", "right-s3cr3t"), "NOAUTH", false},
		"no database":    {"redis://" + storetest.Redis(t) + "/99", "DB index is out of range", false},
	}
}

// answerSlowly responds to each request byte by byte.
func answerSlowly(conn net.Conn, answer string, pause time.Duration) {
	defer conn.Close()
	for asked := make([]byte, 1<<16); ; {
		if _, err := conn.Read(asked); err != nil {
			return
		}
		for _, b := range []byte(answer) {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			if pause > 10*time.Millisecond {
				time.Sleep(pause)
			}
		}
	}
}

// toFaultyStore runs a job and sends its report to a store that does not accept it.
func toFaultyStore(t *testing.T, f storeFault, limit time.Duration) (o clitest.Outcome, report string, took time.Duration) {
	t.Helper()
	dir := t.TempDir()
	begun := time.Now()
	o = mustRun(t, 6, "run", "--out", dir, "--run-id", "a", "--store", f.address, "--push-timeout", limit.String(), "--no-page", "--",
		"sh", "-c", "sleep 0.1; exit 6")
	return o, filepath.Join(dir, "a/node-0.json"), time.Since(begun)
}

// Whatever a store does, the exit code and the duration of the job do not change. The push of the report is pending,
// and one line has the reason and the command for later. After a permanent fault, perfagent does not wait. No output
// has the password.
func TestStore_FaultsDoNotAffectJob(t *testing.T) {
	t.Parallel()
	faults := s3Faults(t)
	maps.Copy(faults, redisFaults(t))
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 3 * time.Second
			if !f.again { // waiting would take longer than noise
				limit = 2 * noise
			}
			o, path, took := toFaultyStore(t, f, limit)
			if !strings.Contains(o.Err, f.words) { // no answer in time
				limit = noise
				o, path, took = toFaultyStore(t, f, limit)
			}
			r := readReport(t, path)
			state := r.Nodes["0"].Push.Store
			if state.State != reporter.PushPending || !strings.Contains(state.Error, f.words) {
				t.Errorf("state %s with the error %q, want pending with %q", state.State, state.Error, f.words)
			}
			says(t, o, "the report is safe; store it with: ")
			if lines := strings.Count(o.Err, "\n"); lines > 2 { // the other line is about the end of the job
				t.Errorf("stderr has %d lines, want at most 2, for the store and the end of the job: %s", lines, o.Err)
			}

			if !f.again {
				limit = 0
			}
			if r.Run.WallSeconds > noise.Seconds() || took > limit+noise || f.again && took < 900*time.Millisecond {
				t.Errorf("the job took %v s, perfagent %v; want at most %v more than the limit of %v, and 0.9s or more "+
					"if it retries (%v)", r.Run.WallSeconds, took, noise, limit, f.again)
			}
			if all := o.Out + o.Err + clitest.Read(t, path); strings.Contains(all, "s3cr3t") {
				t.Errorf("the output or the report has the password: %s", all)
			}
			t.Logf("%-12s exit %d, job %.2f s, in all %.2f s: %s", name, o.Code, r.Run.WallSeconds, took.Seconds(), state.Error)
		})
	}
}
