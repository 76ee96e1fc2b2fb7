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

const (
	// maxUpload is the maximum size, in bytes, of a file that the server writes to an artifact store for a client.
	maxUpload = 10 << 20

	// maxUploadTries limits how often the server is asked to write a file to an artifact store.
	maxUploadTries = 3
)

// An ArtifactError reports that a file was not uploaded, because the run's store cannot be reached from this host or
// does not accept the file. It is permanent, and concerns only this file.
type ArtifactError struct {
	Path   string // of the file
	Reason string
	Err    error // the server's error, or nil
}

// Error returns the file and the reason.
func (e *ArtifactError) Error() string {
	return "artifact " + quote(e.Path) + " was not uploaded: " + e.Reason
}

// Unwrap returns Err.
func (e *ArtifactError) Unwrap() error { return e.Err }

// UploadArtifact stores data under name, such as plots/cpu.svg, in a run's artifacts. It replaces an existing file.
// contentType may be empty.
//
// If the server is a proxy for its store (the run's ArtifactURI begins with mlflow-artifacts:), the file is sent to
// that proxy, and may have any size. If the URI has a different host or port from the tracking server, the request has
// no credentials. For every other store (s3:, gs:, file: …) the client has no credentials, so the server is asked to
// store the file. The server accepts files of 1 byte to 10 MiB.
//
// If the file cannot be stored in either way, the error is an *ArtifactError. If the failure is temporary, or concerns
// more than this file (the server is down, the credentials are refused, the run does not exist), the error is an
// *Error, as for any other call.
func (c *Client) UploadArtifact(ctx context.Context, run *Run, name, contentType string, data []byte) error {
	if !localPath(name) {
		reason := "its path must be relative, with slashes, and without empty parts and dots"
		return &ArtifactError{Path: name, Reason: reason}
	}
	if contentType == "" {
		contentType = "application/octet-stream"
	}
	if data == nil {
		data = []byte{} // an empty body rather than no body
	}

	op := "upload artifact " + quote(name) + " to run " + quote(run.ID)
	q := &call{op: op, body: data, contentType: contentType}
	route := c.toServer
	if _, served := cutScheme(run.ArtifactURI, "mlflow-artifacts"); served {
		route = c.toProxy
	}
	if reason := route(q, run, name); reason != "" {
		return &ArtifactError{Path: name, Reason: reason}
	}
	return uploadError(q, run, name, c.do(ctx, q))
}

// localPath reports whether name is the normalized path of a file below a folder.
func localPath(name string) bool {
	return name != "" && name != "." && name != ".." && path.Clean(name) == name &&
		!strings.HasPrefix(name, "../") && !strings.HasPrefix(name, "/") && !strings.Contains(name, `\`)
}

// toProxy directs q, an upload, to the server that is a proxy for the run's store. It returns "", or the reason if that
// is impossible.
func (c *Client) toProxy(q *call, run *Run, name string) (reason string) {
	host := c.base.Host
	root, _ := cutScheme(run.ArtifactURI, "mlflow-artifacts")
	if after, ok := strings.CutPrefix(root, "//"); ok {
		var authority string
		authority, root = splitAuthority(after)
		if named := authority[strings.LastIndexByte(authority, '@')+1:]; named != "" {
			host = named
		}
	}
	if i := strings.IndexAny(root, "?#"); i >= 0 {
		root = root[:i] // as in MLflow
	}

	target, err := url.Parse(c.base.Scheme + "://" + host)
	if err != nil || CheckURI(target.String()) != nil {
		return "the run's store, " + storeOf(run) + ", has a malformed address"
	}
	q.method = http.MethodPut
	q.foreign = !sameServer(c.base, target)
	q.url = strings.TrimRight(target.String()+c.base.EscapedPath(), "/") + "/api/2.0/mlflow-artifacts/artifacts"
	if root = strings.Trim(root, "/"); root != "" {
		q.url += "/" + escapeStored(root)
	}
	q.url += "/" + escapePath(name)
	return ""
}

// toServer directs q, an upload, to the tracking server, which writes the file to the run's store. It returns "", or
// the reason if that is impossible.
func (c *Client) toServer(q *call, run *Run, name string) (reason string) {
	switch size := len(q.body); {
	case size == 0:
		return "it is empty, which the server rejects, and the store " + storeOf(run) +
			" can only be reached through the server"
	case size > maxUpload:
		return fmt.Sprintf("it has %d bytes, and the store %s can only be reached through the server,"+
			" which accepts at most %d", size, storeOf(run), maxUpload)
	}
	q.method = http.MethodPost
	q.url = c.config.URI + "/ajax-api/2.0/mlflow/upload-artifact"
	q.query = url.Values{"run_uuid": {run.ID}, "path": {name}}
	q.maxTries = maxUploadTries
	return ""
}

// uploadError turns err, the error of an upload, into an *ArtifactError if only the file or the run's store is at
// fault.
func uploadError(q *call, run *Run, name string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if e.Status == http.StatusInternalServerError && q.method == http.MethodPost {
		// Servers respond like this when they lack the store's credentials or driver. The server itself may have a
		// problem, but it has failed maxUploadTries times, and an unreachable store must not delay the run's numbers.
		e.permanent = true
		e.advice = "can the server itself write to the store " + storeOf(run) + "?"
	}

	switch {
	case e.temporary() || NotFound(err):
		return err
	case !q.foreign && (e.Status == 0 || e.Status == http.StatusUnauthorized):
		return err
	}
	return &ArtifactError{Path: name, Reason: err.Error(), Err: err}
}

// storeOf returns the location of a run's artifacts, for use in an error.
func storeOf(run *Run) string {
	if run.ArtifactURI == "" {
		return "of the run"
	}
	return shorten(PublicURI(run.ArtifactURI), 100)
}

// cutScheme removes "scheme:" from the beginning of a URI. ok is false if the URI has another scheme.
func cutScheme(uri, scheme string) (rest string, ok bool) {
	s, rest, ok := strings.Cut(uri, ":")
	return rest, ok && strings.EqualFold(s, scheme)
}

// escapePath escapes the elements of a file's path for a URL.
func escapePath(p string) string { return strings.ReplaceAll(url.PathEscape(p), "%2F", "/") }

// escapeStored is escapePath for the path of an artifact URI, which may be escaped already.
func escapeStored(p string) string {
	if plain, err := url.PathUnescape(p); err == nil {
		p = plain
	}
	return escapePath(p)
}
