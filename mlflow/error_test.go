package mlflow

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/check"
)

func TestError_ExplainsRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status                      int
		body, code, message, advice string
	}{
		"MLflow error": {404, `{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"Run 'r1' not found"}`, "RESOURCE_DOES_NOT_EXIST",
			"Run 'r1' not found", ""},
		"already exists": {400, `{"error_code":"RESOURCE_ALREADY_EXISTS","message":"x"}`, "RESOURCE_ALREADY_EXISTS", "x", ""},
		"404 page of Flask": {404, "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>", "",
			"404 Not Found", "is this an MLflow server?"},
		"404 of FastAPI": {404, `{"detail":"Not Found"}`, "", "Not Found", "is this an MLflow server?"},
		"page without title": {502,
			"<html><head><style>x{}</style></head><body><h1>Oh  no</h1><script>alert(1)</script>&lt;b&gt;</body>",
			"", "Oh no <b>", ""},
		"rejected Host header": {403, "Invalid Host header - possible DNS rebinding attack detected", "",
			"Invalid Host header - possible DNS rebinding attack detected", "--allowed-hosts"},
		"not authenticated": {401, "You are not authenticated.", "", "You are not authenticated.", "MLFLOW_TRACKING_USERNAME"},
		"http request to https server": {400, "Client sent an HTTP request to an HTTPS server.\n", "",
			"Client sent an HTTP request to an HTTPS server.", "https://"},
		"control characters": {400, "a\x1b[31mb\x00\r\nc\u202e\xff", "", "a [31mb c", ""},
		"empty body":         {418, "", "", "I'm a teapot", ""},
		"numeric code":       {400, `{"error_code":1000,"message":"m"}`, "1000", "m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answering(t, tt.status, tt.body)
			err := getRun(c)
			e := wantText(t, err, `get run "r1"`, c.URI()+"/api/2.0/mlflow/runs/get", tt.message, tt.advice)
			if e.Status != tt.status || e.Code != tt.code || e.Message != tt.message || tt.advice == "" && e.advice != "" {
				t.Errorf("error %+v, want status %d, code %q, message %q, advice %q", *e, tt.status, tt.code, tt.message, tt.advice)
			}
			if NotFound(err) != (name == "MLflow error") || alreadyExists(err) != (name == "already exists") {
				t.Errorf("NotFound %v, alreadyExists %v; want them only for the two codes", NotFound(err), alreadyExists(err))
			}
		})
	}
}

func TestError_IsShort(t *testing.T) {
	t.Parallel()
	for _, body := range []string{strings.Repeat("é", 1000), "<p>" + strings.Repeat("x ", 1<<20),
		`{"error_code":"` + strings.Repeat("X", 999) + `","message":"` + strings.Repeat("日", 9999) + `"}`} {
		e := wantText(t, getRun(answering(t, 400, body)))
		if n := utf8.RuneCountInString(e.Message); n > 300 || !utf8.ValidString(e.Message) || len(e.Code) > 70 {
			t.Errorf("code of %d bytes, message of %d characters: %q; want at most 70 and 300", len(e.Code), n, e.Message)
		}
	}
}

func TestError_ExplainsResponsesOfOtherServices(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "OK", "<html><title>Sign in</title>", "[]", `"x"`, "5", "{}", `{"run":{}}`} {
		err := getRun(answering(t, 200, body))
		if err == nil || Temporary(err) || !strings.Contains(err.Error(), "is this an MLflow server?") ||
			strings.Contains(body, "title") && !strings.Contains(err.Error(), "Sign in") {
			t.Errorf("response %q: %v, want a permanent error that asks whether this is an MLflow server", body, err)
		}
	}
	c := answering(t, 200, "<html><title>Sign in</title>")
	wantText(t, c.LogBatch(context.Background(), "r", Batch{Tags: []Tag{{"k", "v"}}}), "is this an MLflow server?")
}

func TestError_ExplainsConnectionFailures(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	closed := server.URL
	server.Close()
	err := getRun(client(t, Config{URI: closed}))
	if wantText(t, err, "refused", "is the server running"); !Temporary(err) {
		t.Errorf("Temporary(%v) = false, want true", err)
	}

	c := client(t, Config{URI: "http://h"})
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}, "does not resolve"},
		{&net.OpError{Op: "dial", Err: timeoutError{}}, "firewall"},
		{&net.OpError{Op: "proxyconnect", Err: errors.New("x")}, "HTTP_PROXY"},
		{errors.New("strange thing"), "strange thing"},
	} {
		c.transport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, tt.err })
		err := getRun(c)
		if wantText(t, err, tt.want); !Temporary(err) || !errors.Is(err, tt.err) {
			t.Errorf("%v: temporary %v, want true, and %v wrapped", err, Temporary(err), tt.err)
		}
	}
	c.transport = roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New(strings.Repeat("x", 5000))
	})
	if e := wantText(t, getRun(c), "xxx"); len(e.Error())+len(e.Err.Error()) > 3*maxMessage {
		t.Errorf("the error is %v and wraps %v, want short texts", e, e.Err)
	}
	c.transport = roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("net/http: HTTP/1.x transport connection broken: malformed HTTP response \"\\x15\"")
	})
	if err := getRun(c); Temporary(err) {
		t.Errorf("Temporary(%v) = true, want false", err)
	}
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

func TestTemporary_ClassifiesErrors(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		nil:                                      false,
		io.EOF:                                   false,
		&Error{Status: 503}:                      true,
		&Error{Status: 404}:                      false,
		&ArtifactError{Err: &Error{Status: 503}}: false,
	} {
		if Temporary(err) != want {
			t.Errorf("Temporary(%v) = %v, want %v", err, !want, want)
		}
	}
	if NotFound(nil) || alreadyExists(nil) || RetryAfter(nil) != 0 {
		t.Errorf("for nil: NotFound %v, alreadyExists %v, RetryAfter %v; want false, false, 0", NotFound(nil), alreadyExists(nil), RetryAfter(nil))
	}
}

// The limit on the size of a response applies after decompression.
func TestClient_LimitsDecompressedBytes(t *testing.T) {
	t.Parallel()
	zipped := func(write func(io.Writer)) *Client {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			write(z)
			z.Close()
		})
	}
	check.Must(t, getRun(zipped(func(w io.Writer) { io.WriteString(w, goodRun) })))
	bomb := zipped(func(w io.Writer) {
		w.Write([]byte("{"))
		spaces := bytes.Repeat([]byte(" "), 1<<20)
		for range 65 {
			w.Write(spaces)
		}
	})
	wantFinal(t, bomb.SetTag(context.Background(), "r", Tag{"k", "v"}), "longer than")
}

// However a call fails, its error contains no secrets, even if the server sends back everything that it received.
func TestClient_HidesSecretsInErrors(t *testing.T) {
	t.Parallel()
	const user, token = "alice.user", "tok_en-123/=="
	secrets := []string{user, "hunter22", "tok_en-123", "YWxpY2Uu", "x-query"}
	echo := func(status int, head, tail string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://"+user+":hunter22@other.example/x?q=x-query")
			w.WriteHeader(status)
			u, p, _ := r.BasicAuth()
			io.WriteString(w, head+strings.Join([]string{r.Header.Get("Authorization"), u, p, token,
				"http://" + user + ":hunter22@h/", u}, " ")+tail)
		}
	}
	servers := map[string]http.HandlerFunc{
		"text":  echo(400, "", ""),
		"html":  echo(500, "<p>", "</p>"),
		"title": echo(404, "<title>", "</title>"),
		"401":   echo(401, "", ""),
		"200":   echo(200, "", ""),
		"json":  echo(403, `{"error_code":"X `+token+`","message":"`, `"}`),
		"307":   echo(307, "", ""),
		"302":   echo(302, "", ""),
		"half":  echo(200, "{", ""),
		"cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, r.Header.Get("Authorization"))
		},
	}
	run := &Run{ID: "r1", ArtifactURI: "s3://" + user + ":hunter22@bucket/x?x-query"}
	for name, handler := range servers {
		server := httptest.NewServer(handler)
		defer server.Close()
		uri := strings.Replace(server.URL, "http://", "http://"+user+":hunter22%26%3C%C3%A9%20+x@", 1) + "/?x-query=1"
		for _, uri := range []string{uri, server.URL} { // first with user name and password, then with a token
			cfg := check.Value(NewConfig(uri, env("MLFLOW_TRACKING_TOKEN="+token)))(t)
			cfg.MaxRetries = 0
			c := client(t, cfg)
			_, err1 := c.Run(context.Background(), "r1")
			_, err2 := c.EnsureExperiment(context.Background(), "e")
			err3 := c.UploadArtifact(context.Background(), run, "a", "", []byte("x"))
			err4 := c.UploadArtifact(context.Background(), run, "a", "", nil)
			err5 := c.UploadArtifact(context.Background(),
				&Run{ID: "r", ArtifactURI: "mlflow-artifacts://" + user + ":hunter22@127.0.0.1:1/x"}, "a", "", nil)
			for i, err := range []error{err1, err2, err3, err4, err5} {
				// an upload accepts any response
				if err == nil && !(i == 2 && (name == "200" || name == "half")) {
					t.Errorf("%s, call %d: no error, want one", name, i+1)
				}
				for ; err != nil; err = errors.Unwrap(err) {
					for _, s := range secrets {
						if strings.Contains(err.Error(), s) {
							t.Errorf("%s, call %d: error %q contains the secret %q", name, i+1, err, s)
						}
					}
				}
			}
		}
	}
}
