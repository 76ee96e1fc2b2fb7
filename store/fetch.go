package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/reporter"
)

// A FetchResult is the result of fetching one object of a run.
type FetchResult struct {
	objectName

	Path   string // file with the report
	Bytes  int64  // as stored
	SHA256 string // of these bytes, hexadecimal
	Err    error  // why the object could not be fetched; then there is no file
}

// FetchRun copies the reports of run to files DIR/RUN-ID/node-N.json, the layout of --out. If the store is a directory
// with this layout, it reads the reports but does not copy them. It may return a partial report next to a final one of
// the same name, because hosts without an index share names. An error is about the store or the directory; the errors
// of single objects are in the results.
func (s *Store) FetchRun(ctx context.Context, run, dir string) ([]FetchResult, error) {
	list, err := s.listReports(ctx, run+"/")
	if err != nil {
		return nil, err
	}

	final := make(map[string]bool) // by node
	for _, r := range list {
		final[r.node] = final[r.node] || !r.partial
	}
	var out []FetchResult
	err = parallel.InOrder(len(list), func(i int, emit func(FetchResult) error) error {
		f, err := s.fetchReport(ctx, list[i].objectName, dir)
		if err != nil {
			return err
		}
		return emit(f)
	}, func(f FetchResult) error {
		if superseded := f.Err != nil && f.partial && final[f.node]; !superseded {
			out = append(out, f)
		}
		return nil
	})
	return out, err
}

// fetchReport fetches the report called n. An error that is about the object alone is in the result.
func (s *Store) fetchReport(ctx context.Context, n objectName, dir string) (FetchResult, error) {
	out := FetchResult{objectName: n}
	in, isDir := s.Dir()
	data, stored, err := s.getReport(ctx, n.String(), !isDir) // reading the report later finds other errors in the file
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil:
		out.Err = err
		return out, nil
	}

	out.Bytes, out.SHA256 = int64(len(stored)), sha256Hex(stored)
	if isDir {
		out.Path = localCopy{dir: in}.file(n.String())
		return out, nil
	}
	out.Path, err = write(n.String(), data, dir)
	return out, err
}

// write writes the file of the object called name below dir, and returns the path. The error names dir, so that a full
// disk is not taken for a full store.
func write(name string, data []byte, dir string) (string, error) {
	path := localCopy{dir: dir}.file(name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = durable.WriteUnsynced(path, data, true)
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return "", fmt.Errorf("copy %s to %s: %w", name, dir, at.Err)
	}
	return path, err
}

// ObjectBaseName is the base name, without extension, of the file for an object that Python named.
const ObjectBaseName = "object"

// Fetch copies an object to the file DIR/RUN-ID/node-N.json or, if the object's name has another form, to
// DIR/object.json, and returns the path. If the object is not a report, the error has its reference.
func (s *Store) Fetch(ctx context.Context, object, dir string) (path string, err error) {
	data, _, err := s.getReport(ctx, object, true)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%s: %w", s.Reference(object), err)
	}

	name := ObjectBaseName
	if n, ok := parseName(object); ok {
		name = n.String()
	}
	return write(name, data, dir)
}

// getReport returns an object, and its bytes as stored. If check is set, an object that is not a report is an error.
// Apart from ErrNotFound, errors do not name the object.
func (s *Store) getReport(ctx context.Context, object string, check bool) (data, stored []byte, err error) {
	data, stored, err = s.GetStored(ctx, object)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		err = cmp.Or(errors.Unwrap(err), err)
	case check:
		err = checkReport(data)
	}
	return data, stored, err
}

// checkReport returns an error if data is not a report, neither of perfagent nor of perf.py.
func checkReport(data []byte) error {
	// With these options, IsValid accepts what encoding/json accepts, in a third of the time.
	if !jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return errors.New("it is not JSON, or is cut off")
	}
	_, err := reporter.ReadHead(bytes.NewReader(data), int64(len(data)))
	if errors.Is(err, reporter.ErrForeign) {
		return nil
	}
	return err
}
