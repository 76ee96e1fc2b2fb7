package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// env returns a lookup function for variables in the form NAME=VALUE.
func env(vars ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i := slices.IndexFunc(vars, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if i < 0 {
			return "", false
		}
		return vars[i][len(name)+1:], true
	}
}

// serve starts a server and returns a client that does not retry.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return client(t, Config{URI: server.URL})
}

// answering starts a server that always sends the given response, and returns a client.
func answering(t *testing.T, status int, body string) *Client {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

// client returns a client for cfg that is closed at the end of the test.
func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c := check.Value(New(cfg))(t)
	t.Cleanup(c.Close)
	return c
}

// response returns a response that does not come from a server.
func response(status int, body string, header ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// bodyOf decodes a request's JSON.
func bodyOf(t *testing.T, r *http.Request) map[string]any {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	var m map[string]any
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&m); err != nil {
		t.Errorf("%s %s: the body %q is not JSON: %v", r.Method, r.URL, body, err)
	}
	return m
}

// getRun makes a simple call and returns its error.
func getRun(c *Client) error {
	_, err := c.Run(context.Background(), "r1")
	return err
}

// wantText checks that an error contains all words. It returns the *Error in err, or nil if there is none.
func wantText(t *testing.T, err error, words ...string) *Error {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
	var e *Error
	errors.As(err, &e)
	return e
}

// wantFinal is like wantText, and checks that the error is not temporary.
func wantFinal(t *testing.T, err error, words ...string) *Error {
	t.Helper()
	if Temporary(err) {
		t.Errorf("Temporary(%v) = true, want false", err)
	}
	return wantText(t, err, words...)
}

const goodRun = `{"run":{"info":{"run_id":"r1","experiment_id":"7"}}}`
