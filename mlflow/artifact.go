package mlflow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// maxUpload is how many bytes the server takes for a store that it does not offer as a proxy.
const maxUpload = 10 << 20

// ArtifactError says that a file was not uploaded, and why: the run's store can't be reached from here, or does not take
// it. It won't pass by itself, and says nothing about the rest of the run.
type ArtifactError struct {
	Path   string // of the file
	Reason string
	Err    error // the server's refusal, or nil
}

// Error names the file and the reason.
func (e *ArtifactError) Error() string {
	return "artifact " + quote(e.Path) + " was not uploaded: " + e.Reason
}

// Unwrap returns Err.
func (e *ArtifactError) Unwrap() error { return e.Err }

// File is an artifact or a folder of artifacts. Path is from the run's root, Size is in bytes, 0 for folders.
type File struct {
	Path  string
	IsDir bool
	Size  int64
}

// ListArtifacts lists a folder of a run's artifacts; "" is the root.
func (c *Client) ListArtifacts(ctx context.Context, runID, folder string) ([]File, error) {
	op := "list artifacts of run " + quote(runID)
	var files []File
	var pages pager
	left := int64(keepLists)
	for {
		query := url.Values{"run_id": {runID}}
		if folder != "" {
			query.Set("path", folder)
		}
		if pages.token != "" {
			query.Set("page_token", pages.token)
		}
		var page fileList
		q := c.newGet(op, "artifacts/list", query, &page)
		q.keep = left
		if err := c.do(ctx, q); err != nil {
			return nil, err
		}
		left -= q.kept
		files = append(files, page.files...)
		more, err := pages.next(op, page.next, len(page.files))
		if err != nil || !more {
			return files, err
		}
	}
}

// UploadArtifact stores a file under a path (plots/cpu.svg) in a run's artifacts, replacing one that is there. The
// content type may be empty.
//
// Where the server offers its store (the run's ArtifactURI begins with mlflow-artifacts:) the file is sent there, of
// any size; if the URI names another host or port than the tracking server's, without credentials. For every other
// store (s3:, gs:, file: …), whose credentials we don't have, the server is asked to put the file there, which it does
// for 1 byte to 10 MiB.
//
// A file that can't be stored in either way is an *ArtifactError. What may pass, or concerns more than this file (a
// server that is down, credentials that are refused, a run that does not exist), is an error as of any other call.
func (c *Client) UploadArtifact(ctx context.Context, run *Run, name, contentType string, data []byte) error {
	if clean := path.Clean(name); name == "" || clean != name || clean == "." || clean == ".." ||
		strings.HasPrefix(clean, "../") || strings.HasPrefix(clean, "/") || strings.Contains(name, `\`) {
		return &ArtifactError{Path: name, Reason: "its path must be relative, with slashes, and without empty parts and dots"}
	}
	if contentType == "" {
		contentType = "application/octet-stream"
	}
	q := &call{op: "upload artifact " + quote(name) + " to run " + quote(run.ID), body: data, contentType: contentType}
	if q.body == nil {
		q.body = []byte{}
	}
	if rest, ok := cutScheme(run.ArtifactURI, "mlflow-artifacts"); ok {
		if err := c.toProxy(q, run, rest, name); err != nil {
			return err
		}
	} else if err := c.throughServer(q, run, name); err != nil {
		return err
	} else {
		q.tries = 3
	}
	err := c.do(ctx, q)
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusInternalServerError && q.method == http.MethodPost {
		// Seen when the server lacks the store's credentials or driver. It may also be in trouble, but was asked three
		// times, and the run's numbers must not wait for a store that is out of its reach.
		e.final = true
		e.advice = "can the server itself write to the store " + storeOf(run) + "?"
	}
	if !artifactOnly(q, err) {
		return err
	}
	return &ArtifactError{Path: name, Reason: err.Error(), Err: err}
}

// toProxy directs an upload to the store that a server offers, given what follows "mlflow-artifacts:".
func (c *Client) toProxy(q *call, run *Run, rest, name string) error {
	host, root := c.base.Host, rest
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		authority, tail := splitAuthority(after)
		authority = authority[strings.LastIndexByte(authority, '@')+1:]
		if authority != "" {
			host = authority
		}
		root = tail
	}
	if i := strings.IndexAny(root, "?#"); i >= 0 {
		root = root[:i] // as MLflow does
	}
	target, err := url.Parse(c.base.Scheme + "://" + host)
	if err != nil || CheckURI(target.String()) != nil {
		return &ArtifactError{Path: name, Reason: "the run's store, " + storeOf(run) + ", is at a malformed address"}
	}
	q.method = http.MethodPut
	q.foreign = !sameServer(c.base, target)
	q.url = strings.TrimRight(target.String()+c.base.EscapedPath(), "/") + "/api/2.0/mlflow-artifacts/artifacts"
	if root = strings.Trim(root, "/"); root != "" {
		q.url += "/" + escapeStored(root)
	}
	q.url += "/" + escapePath(name)
	return nil
}

// throughServer directs an upload to the server, which hands it on to whatever store the run has.
func (c *Client) throughServer(q *call, run *Run, name string) error {
	switch size := len(q.body); {
	case size == 0:
		return &ArtifactError{Path: name, Reason: "it is empty, which the server takes for an error, and the store " +
			storeOf(run) + " can only be reached through the server"}
	case size > maxUpload:
		return &ArtifactError{Path: name, Reason: fmt.Sprintf("it has %d bytes, and the store %s can only be reached"+
			" through the server, which takes at most %d", size, storeOf(run), maxUpload)}
	}
	q.method = http.MethodPost
	q.url = c.config.URI + "/ajax-api/2.0/mlflow/upload-artifact"
	q.query = url.Values{"run_uuid": {run.ID}, "path": {name}}
	return nil
}

// artifactOnly tells whether an error of an upload concerns nothing but that file or its store.
func artifactOnly(q *call, err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.temporary() || NotFound(err) {
		return false
	}
	return q.foreign || e.Status != 0 && e.Status != http.StatusUnauthorized
}

// storeOf shows where a run's artifacts are.
func storeOf(run *Run) string {
	if run.ArtifactURI == "" {
		return "of the run"
	}
	return shorten(PublicURI(run.ArtifactURI), 100)
}

// cutScheme cuts "scheme:" off a URI that begins with it.
func cutScheme(uri, scheme string) (rest string, ok bool) {
	s, rest, ok := strings.Cut(uri, ":")
	return rest, ok && strings.EqualFold(s, scheme)
}

// escapePath escapes all parts of a file's path for a URL.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i, s := range parts {
		parts[i] = url.PathEscape(s)
	}
	return strings.Join(parts, "/")
}

// escapeStored escapes the path of an artifact URI, which may or may not be escaped already.
func escapeStored(p string) string {
	if plain, err := url.PathUnescape(p); err == nil {
		p = plain
	}
	return escapePath(p)
}
