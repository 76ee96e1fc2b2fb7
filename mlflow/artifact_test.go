package mlflow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// upload uploads a small file.
func upload(c *Client, artifactURI, name string) error {
	run := &Run{ID: "r1", ArtifactURI: artifactURI}
	return c.UploadArtifact(context.Background(), run, name, "text/plain", []byte("data"))
}

func TestUploadArtifact_ChoosesAddressByStore(t *testing.T) {
	t.Parallel()
	const put, post = "PUT /pre/fix/api/2.0/mlflow-artifacts/artifacts/", "POST /pre/fix/ajax-api/2.0/mlflow/upload-artifact?"
	for _, tt := range []struct{ uri, name, want string }{
		{"mlflow-artifacts:/0/r1/artifacts", "a/b.txt", put + "0/r1/artifacts/a/b.txt?"},
		{"mlflow-artifacts:///0/r1/artifacts/", "x", put + "0/r1/artifacts/x?"},
		{"MLFLOW-ARTIFACTS:/", "x", put + "x?"},
		{"mlflow-artifacts:/0/r1?q#f", "x", put + "0/r1/x?"},
		{"mlflow-artifacts:/my exp/r1", "a b/#c?d%20é+&.txt", put + "my%20exp/r1/a%20b/%23c%3Fd%2520%C3%A9+&.txt?"},
		{"mlflow-artifacts:/my%20exp/100%", "x", put + "my%2520exp/100%25/x?"},
		{"s3://bucket/0/r1", "a b/c?d.txt", post + "path=a+b%2Fc%3Fd.txt&run_uuid=r1"},
		{"file:///data/r1", "x", post + "path=x&run_uuid=r1"},
		{"", "x", post + "path=x&run_uuid=r1"},
	} {
		asked := false
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked = true
			body, _ := io.ReadAll(r.Body)
			got := r.Method + " " + r.URL.EscapedPath() + "?" + r.URL.RawQuery
			if got != tt.want || string(body) != "data" || r.Header.Get("Content-Type") != "text/plain" ||
				r.Header.Get("Authorization") != "Bearer t" {
				t.Errorf("%s to %s: %s of %q with %v, want %s of data, as text/plain with the token", tt.name, tt.uri, got, body,
					r.Header, tt.want)
			}
		}))
		c := client(t, Config{URI: server.URL + "/pre/fix/", Token: "t"})
		if err := upload(c, tt.uri, tt.name); err != nil || !asked {
			t.Errorf("UploadArtifact of %s to %s: %v, request received: %v", tt.name, tt.uri, err, asked)
		}
		server.Close()
	}
}

func TestUploadArtifact_SendsNoCredentialsToAnotherHost(t *testing.T) {
	t.Parallel()
	status := 200
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/p/api/2.0/mlflow-artifacts/artifacts/0/r1/x" || r.Header.Get("Authorization") != "" {
			t.Errorf("the store received %s with %v, want the path /p/api/2.0/mlflow-artifacts/artifacts/0/r1/x without credentials", r.URL, r.Header)
		}
		w.WriteHeader(status)
	}))
	defer store.Close()
	u, _ := url.Parse(store.URL)
	c := client(t, Config{URI: "http://127.0.0.1:1/p", Username: "alice", Password: "secret"})
	artifactURI := "mlflow-artifacts://bob:pass@" + u.Host + "/0/r1"
	if err := upload(c, artifactURI, "x"); err != nil {
		t.Errorf("UploadArtifact to another host: %v", err)
	}
	status = 401
	var artifact *ArtifactError
	if err := upload(c, artifactURI, "x"); !errors.As(err, &artifact) {
		t.Errorf("UploadArtifact refused with 401 by another host: %v, want an *ArtifactError", err)
	}
	wantText(t, artifact, "only to the tracking server's host and port")
	for _, hostile := range []string{"mlflow-artifacts://h h/x", "mlflow-artifacts://h:port/x",
		"mlflow-artifacts://%zz/x", "mlflow-artifacts://[/x"} {
		if err := upload(c, hostile, "x"); !errors.As(err, &artifact) {
			t.Errorf("UploadArtifact to %s: %v, want an *ArtifactError", hostile, err)
		}
	}
}

func TestUploadArtifact_DistinguishesFileErrorsFromFailures(t *testing.T) {
	t.Parallel()
	noServe := "Endpoint: /x disabled due to the mlflow server running with `--no-serve-artifacts`." +
		" To enable artifacts server functionality, run `mlflow server` with `--serve-artifacts`"
	for name, tt := range map[string]struct {
		status    int
		body      string
		note      bool // whether the error is an *ArtifactError
		temporary bool
	}{
		"artifacts not served": {503, noServe, true, false},
		"busy":                 {503, "try later", false, true},
		"internal error":       {500, "<title>500 Internal Server Error</title>", false, true},
		"too many requests":    {429, "", false, true},
		"no such URL":          {404, "<title>404 Not Found</title>", true, false},
		"no such run":          {404, `{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"no run"}`, false, false},
		"invalid path":         {400, `{"error_code":"INVALID_PARAMETER_VALUE","message":"Invalid path"}`, true, false},
		"forbidden":            {403, `{"error_code":"PERMISSION_DENIED","message":"no"}`, true, false},
		"unauthorized":         {401, "", false, false},
		"not implemented":      {501, `{"error_code":"NOT_IMPLEMENTED","message":"no"}`, true, false},
		"method not allowed":   {405, "", true, false},
		"too large":            {413, "", true, false},
		"login page":           {200, "<html><title>Log in</title>", true, false},
	} {
		for _, uri := range []string{"mlflow-artifacts:/0/r1", "s3://bucket/r1"} {
			if tt.status == 500 && strings.HasPrefix(uri, "s3:") { // the server cannot reach its store
				tt.note, tt.temporary = true, false
			}
			err := upload(answering(t, tt.status, tt.body), uri, "plots/a.svg")
			var artifact *ArtifactError
			if errors.As(err, &artifact) != tt.note || Temporary(err) != tt.temporary || err == nil {
				t.Errorf("%s, %s: %T %v, temporary %v; want an *ArtifactError: %v, temporary %v", name, uri, err, err, Temporary(err), tt.note, tt.temporary)
			}
			if tt.note && artifact.Path != "plots/a.svg" {
				t.Errorf("%s: the error has the path %q, want plots/a.svg", name, artifact.Path)
			}
		}
	}
	wantText(t, upload(answering(t, 500, ""), "s3://u:p@bucket/r1", "x"),
		"can the server itself write to the store s3://bucket/r1?")
	err := upload(client(t, Config{URI: "http://127.0.0.1:1"}), "s3://bucket/r1", "x")
	if !Temporary(err) {
		t.Errorf("UploadArtifact without a server: %v, want a temporary error", err)
	}
}

func TestUploadArtifact_RefusesBeforeSending(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was requested, want no request", r.URL) })
	var artifact *ArtifactError
	for _, name := range []string{"", ".", "..", "/a", "a/", "a//b", "../a", "a/../b", "./a", `a\b`} {
		if err := upload(c, "mlflow-artifacts:/0", name); !errors.As(err, &artifact) {
			t.Errorf("UploadArtifact of %q: %v, want an *ArtifactError", name, err)
		}
	}
	run := &Run{ID: "r1", ArtifactURI: "s3://u:secret@bucket/r1"}
	wantText(t, c.UploadArtifact(context.Background(), run, "big", "", make([]byte, maxUpload+1)), "10485761",
		"s3://bucket/r1")
	wantText(t, c.UploadArtifact(context.Background(), run, "none", "", nil), "empty")
}

func TestUploadArtifact_SendsEveryAcceptedSize(t *testing.T) {
	t.Parallel()
	for uri, sizes := range map[string][]int{"mlflow-artifacts:/0": {0, 1, maxUpload + 1}, "gs://b/x": {1, maxUpload}} {
		for _, size := range sizes {
			c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				if n, _ := io.Copy(io.Discard, r.Body); n != int64(size) || r.ContentLength != n ||
					r.Header.Get("Content-Type") != "application/octet-stream" {
					t.Errorf("received %d bytes of %d announced, want %d; header %v", n, r.ContentLength, size, r.Header)
				}
			})
			if err := c.UploadArtifact(context.Background(), &Run{ID: "r", ArtifactURI: uri}, "f", "",
				bytes.Repeat([]byte("x"), size)); err != nil {
				t.Errorf("UploadArtifact of %d bytes to %s: %v", size, uri, err)
			}
		}
	}
}

func TestArtifactError_ClipsLongNames(t *testing.T) {
	t.Parallel()
	err := &ArtifactError{Path: strings.Repeat("x", 500), Reason: "why"}
	if wantText(t, err, "xxx", "why"); len(err.Error()) > 200 {
		t.Errorf("the error has %d bytes, want at most 200", len(err.Error()))
	}
}
