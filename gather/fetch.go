package gather

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// A Fetched says what of a run was fetched.
type Fetched struct {
	Final   int      // reports of nodes that have ended
	Partial []string // references of what stands for a node that has nothing else
	Unread  []Unread // objects that could not be fetched
}

// An Unread is an object that could not be fetched.
type Unread struct {
	Reference string
	Err       error
}

// FetchRun copies the reports of a run to files DIR/RUN-ID/node-N.json, the layout of --out. Of a node without a final
// report it copies the partial one. An error says that the store or the directory is of no use.
func FetchRun(ctx context.Context, s *store.Store, run, dir string) (*Fetched, error) {
	list, err := s.List(ctx, run+"/")
	if err != nil {
		return nil, err
	}
	var names []name
	final := make(map[string]bool) // nodes
	for _, e := range list {
		if n, ok := parse(e.Name); ok {
			names = append(names, n)
			final[n.node] = final[n.node] || !n.partial
		}
	}

	f := new(Fetched)
	for _, n := range names {
		if n.partial && final[n.node] {
			continue
		}
		_, err := Fetch(ctx, s, n.String(), dir)
		reference := s.ProxyFromKey(n.String(), store.RefOptions{}).String()
		var unreadable *objectError
		switch {
		case errors.As(err, &unreadable):
			f.Unread = append(f.Unread, Unread{reference, unreadable.error})
		case err != nil:
			return nil, err
		case n.partial:
			f.Partial = append(f.Partial, reference)
		default:
			f.Final++
		}
	}

	return f, nil
}

// An objectError is the error of Fetch for an object that the store does not give, or that is no report.
type objectError struct{ error }

// Unwrap returns the reason.
func (e *objectError) Unwrap() error { return e.error }

// Object is the name of the file, without extension, of an object whose name Python has made.
const Object = "object"

// Fetch copies an object to a file DIR/RUN-ID/node-N.json, or to one named Object, and returns its path.
func Fetch(ctx context.Context, s *store.Store, object, dir string) (path string, err error) {
	data, err := s.Get(ctx, object)
	if err == nil {
		err = check(data)
	}
	if err != nil {
		return "", &objectError{err}
	}

	path = filepath.Join(dir, Object+".json")
	if n, ok := parse(object); ok {
		n.partial = false
		path = filepath.Join(dir, filepath.FromSlash(n.String())+".json")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, durable.WriteUnsynced(path, data, true)
}

// check returns an error for what is no report: neither ours nor perf.py's.
func check(data []byte) error {
	if !json.Valid(data) {
		return errors.New("it is not JSON, or cut short")
	}
	if _, err := reporter.ReadHead(bytes.NewReader(data)); err != nil && !errors.Is(err, reporter.ErrForeign) {
		return err
	}
	return nil
}
