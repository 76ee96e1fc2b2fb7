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
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// Copies finds the runs and files that references name, and copies them to this machine unless the store is a
// directory. The copies exist until Remove.
type Copies struct {
	Warn       func(words string) // reports objects that are left out, and partial reports
	Incomplete bool               // some objects could not be copied

	list []localCopy
}

// A localCopy is the directory with the copies for one reference. If the store itself is a directory, dir is that
// directory.
type localCopy struct{ dir, store, object string }

// referenceOf returns the reference of the object in the file path, which is below the directory.
func (c localCopy) referenceOf(path string) string {
	rest := strings.TrimSuffix(filepath.ToSlash(strings.TrimPrefix(path, c.dir+string(filepath.Separator))), ".json")
	if rest == ObjectBaseName {
		rest = c.object
	}
	return c.store + "#" + rest
}

// file returns the path of the file with the object called name.
func (c localCopy) file(name string) string {
	return filepath.Join(c.dir, filepath.FromSlash(name)+".json")
}

// WithReferences replaces the paths of copies in words with references.
func (c *Copies) WithReferences(words string) string {
	for _, of := range c.list {
		path := regexp.MustCompile(regexp.QuoteMeta(of.dir+string(filepath.Separator)) + `[\w./\\-]*`)
		words = path.ReplaceAllStringFunc(words, of.referenceOf)
	}
	return words
}

// Remove removes the copies.
func (c *Copies) Remove() {
	for _, of := range c.list {
		_ = os.RemoveAll(of.dir)
	}
}

// RunIDOf returns the RUN-ID in object, which has the form RUN-ID or RUN-ID@K. ok is false if it has another form.
func RunIDOf(object string) (run string, ok bool) {
	run, _, _ = strings.Cut(object, "@")
	return run, !strings.Contains(object, "/")
}

// makeLocalDir returns the directory for copies from s. isDir means that s itself is a directory with the layout of
// --out, so nothing is copied.
func (c *Copies) makeLocalDir(s *Store, object string) (in localCopy, isDir bool, err error) {
	in = localCopy{store: s.URL(), object: object}
	if in.dir, isDir = s.Dir(); isDir {
		return in, true, nil
	}
	if in.dir, err = os.MkdirTemp("", "perfagent-store-*"); err == nil {
		c.list = append(c.list, in)
	}
	return in, false, err
}

// Find returns the run or file with the name object in s.
func (c *Copies) Find(ctx context.Context, s *Store, object string) (*catalog.Match, error) {
	in, isDir, err := c.makeLocalDir(s, object)
	if err != nil {
		return nil, err
	}
	run, isRun := RunIDOf(object)
	switch {
	case isDir && isRun:
		return c.findRun(object, in)
	case isDir:
		return findObject(ctx, s, object, in)
	case isRun:
		fetched, err := s.FetchRun(ctx, run, in.dir)
		if err != nil {
			return nil, err
		}
		if c.warnFailures(s, fetched) < len(fetched) {
			return c.findRun(object, in)
		}
		// No run has reports under this name, but an object may have it.
	}

	path, err := s.Fetch(ctx, object, in.dir)
	if err != nil {
		return nil, err
	}
	return &catalog.Match{File: path}, nil
}

// findObject returns the file of an object in a store that is a directory with the layout of --out.
func findObject(ctx context.Context, s *Store, object string, in localCopy) (*catalog.Match, error) {
	reference := text.Printable(s.Reference(object))
	if !IsName(object) {
		return nil, fmt.Errorf("%s: %w", reference, ErrName)
	}
	there, err := s.Exists(ctx, object)
	if err == nil && !there {
		err = fmt.Errorf("no object %s", reference)
	}
	return &catalog.Match{File: in.file(object)}, err
}

// findRun returns a run in the directory of in, and warns about partial reports.
func (c *Copies) findRun(run string, in localCopy) (*catalog.Match, error) {
	outside, err := c.externalLinks(run, in)
	if err != nil {
		return nil, err
	}
	found, err := catalog.FindRun(in.dir, run, outside...)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), in.dir, in.store))
	}
	c.warnPartial(found.Launch, in)
	return found, nil
}

// externalLinks returns the files of a run that are links out of the store's directory, and warns about them: they are
// not part of the store. It returns an error if the run's directory is such a link.
func (c *Copies) externalLinks(object string, in localCopy) ([]string, error) {
	run, _ := RunIDOf(object)
	if !IsName(run + "/node-0") {
		return nil, nil // run cannot be a run ID
	}
	dir := filepath.Join(in.dir, run)
	if err := CheckInside(in.dir, dir); err != nil {
		return nil, fmt.Errorf("%s: %w", text.Printable(in.store+"#"+run), err)
	}

	var out []string
	entries, _ := os.ReadDir(dir) // reading the run later reports the error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, ours := catalog.ParseFileName(e.Name()); !ours || e.Type()&os.ModeSymlink == 0 {
			continue
		}
		if err := CheckInside(in.dir, path); err != nil {
			c.Warn(fmt.Sprintf("left out: %s: %v", in.referenceOf(path), err))
			out = append(out, path)
		}
	}
	return out, nil
}

// warnFailures warns about the objects in fetched that could not be fetched, and returns their number.
func (c *Copies) warnFailures(s *Store, fetched []FetchResult) (lost int) {
	for _, one := range fetched {
		if one.Err != nil {
			c.Warn(fmt.Sprintf("%s: %v", s.Reference(one.String()), one.Err))
			lost++
		}
	}
	c.Incomplete = c.Incomplete || lost > 0
	return lost
}

// onlyPartial is the warning that follows the reference of a partial report.
const onlyPartial = " is from before the node's end; there is no later report of it"

// warnPartial warns about the nodes of l that have only a partial report.
func (c *Copies) warnPartial(l *catalog.Launch, in localCopy) {
	for _, path := range l.Paths() {
		if n, ok := catalog.ParseFileName(filepath.Base(path)); ok && n.Partial {
			c.Warn(in.referenceOf(path) + onlyPartial)
		}
	}
}

// A FetchResult is the result of fetching one object of a run.
type FetchResult struct {
	objectName

	Path   string // file with the report
	Bytes  int64  // as stored
	SHA256 string // of the stored bytes, hexadecimal
	Err    error  // why the object could not be fetched; there is no file then
}

// FetchRun copies the reports of run to files DIR/RUN-ID/node-N.json, the layout of --out. If the store is a directory
// with this layout, it reads the reports but does not copy them. It may return both a partial and a final report of the
// same name, because hosts without an index share names. FetchRun returns an error only if the store or the directory
// fails; errors of single objects are in the results.
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

// fetchReport fetches the report called n. An error that concerns only this object is in the result.
func (s *Store) fetchReport(ctx context.Context, n objectName, dir string) (FetchResult, error) {
	out := FetchResult{objectName: n}
	in, isDir := s.Dir()
	data, stored, err := s.getReport(ctx, n.String(), !isDir) // in a directory, the report is checked later
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
// disk is not mistaken for a full store.
func write(name string, data []byte, dir string) (string, error) {
	path := localCopy{dir: dir}.file(name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return "", fmt.Errorf("copy %s to %s: %w", name, dir, at.Err)
	}
	return path, err
}

// ObjectBaseName is the base name, without extension, of the file for an object with a name from Python.
const ObjectBaseName = "object"

// Fetch copies an object to the file DIR/RUN-ID/node-N.json or, if the object's name has another form, to
// DIR/object.json, and returns the path. If the object is not a report, the error contains its reference.
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

// getReport returns an object, and its bytes as stored. If check is set, getReport returns an error for an object that
// is not a report. Except for ErrNotFound, errors do not name the object.
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

// checkReport returns an error if data is a report of neither perfagent nor perf.py.
func checkReport(data []byte) error {
	// With these options, IsValid accepts the same input as encoding/json, in a third of the time.
	if !jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return errors.New("it is not JSON, or is cut off")
	}
	_, err := reporter.ReadHead(bytes.NewReader(data), int64(len(data)))
	if errors.Is(err, reporter.ErrForeign) {
		return nil
	}
	return err
}
