package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/durable"
)

// A directory is a Connector with the layout of --out: the object RUN-ID/node-N is DIR/RUN-ID/node-N.json.
type directory struct{ dir string }

var (
	errIrregular = errors.New("it is not a regular file")
	errOutside   = errors.New("a link leads out of the store")
)

// path returns where the object of a name lies, unless ctx has ended or that is out of the directory.
func (d directory) path(ctx context.Context, name string) (string, error) {
	run, node, ok := splitName(name)
	if !ok {
		return "", ErrName
	}
	path := filepath.Join(d.dir, run, node+".json")
	return path, cmp.Or(ctx.Err(), CheckInside(d.dir, path))
}

// CheckInside returns an error if a symbolic link leads from a path below a directory out of that directory. What cannot
// be found leads nowhere.
func CheckInside(dir, path string) error {
	home, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}

	for dir = filepath.Clean(dir); path != dir && path != filepath.Dir(path); path = filepath.Dir(path) {
		at, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) { // the object is yet to be put, perhaps the run's directory, too
			continue
		}
		if rel, errRel := filepath.Rel(home, at); err == nil && (errRel != nil || !filepath.IsLocal(rel)) {
			return errOutside
		}
		break
	}
	return nil
}

// Put implements Connector. A directory or a FIFO under the name has taken it, too.
func (d directory) Put(ctx context.Context, name string, data []byte) error {
	path, err := d.path(ctx, name)
	if err != nil {
		return err
	}
	return writeFile(path, data, durable.WriteNew)
}

// Replace implements Connector.
func (d directory) Replace(ctx context.Context, name string, data []byte) error {
	path, err := d.path(ctx, name)
	if err != nil {
		return err
	}
	return writeFile(path, data, durable.Write)
}

// writeFile writes a file, and makes its directory if that is not there.
func writeFile(path string, data []byte, write func(string, []byte) error) error {
	err := write(path, data)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = write(path, data)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}

	return err
}

// Get implements Connector.
func (d directory) Get(ctx context.Context, name string) ([]byte, error) {
	path, err := d.path(ctx, name)
	if err != nil {
		return nil, err
	}
	return readFile(path)
}

// readFile reads an object.
func readFile(path string) ([]byte, error) {
	switch there, err := isFile(path); {
	case err != nil:
		return nil, err
	case !there:
		return nil, ErrNotFound
	}

	data, err := durable.ReadFile(path, MaxSize)
	if errors.Is(err, fs.ErrNotExist) { // it has been evicted in between
		return nil, ErrNotFound
	}
	return data, err
}

// Exists implements Connector.
func (d directory) Exists(ctx context.Context, name string) (bool, error) {
	path, err := d.path(ctx, name)
	if err != nil {
		return false, err
	}

	there, err := isFile(path)
	if errors.Is(err, errIrregular) {
		return false, nil
	}
	return there, err
}

// isFile reports whether there is a file. Anything else under its name is an error.
func isFile(path string) (bool, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !st.Mode().IsRegular():
		return false, errIrregular
	}
	return true, nil
}

// Evict implements Connector. It leaves the directory of the run behind.
func (d directory) Evict(ctx context.Context, name string) error {
	path, err := d.path(ctx, name)
	if err != nil {
		return err
	}
	return removeFile(path)
}

// removeFile removes a file that may be missing.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List implements Connector.
func (d directory) List(ctx context.Context, prefix string) ([]Entry, error) {
	if run, _, whole := strings.Cut(prefix, "/"); whole {
		return d.listRun(ctx, run, prefix)
	}

	runs, err := readDir(d.dir)
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, run := range runs {
		if !strings.HasPrefix(run.Name(), prefix) {
			continue
		}
		if run.Type()&fs.ModeSymlink != 0 && CheckInside(d.dir, filepath.Join(d.dir, run.Name())) != nil {
			continue
		}
		of, err := d.listRun(ctx, run.Name(), prefix)
		if err != nil {
			return nil, err
		}
		list = append(list, of...)
	}

	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// listRun returns the objects of a run whose names begin with a prefix.
func (d directory) listRun(ctx context.Context, run, prefix string) ([]Entry, error) {
	if err := ctx.Err(); err != nil || !isElement(run) {
		return nil, err
	}

	path := filepath.Join(d.dir, run)
	if err := CheckInside(d.dir, path); err != nil {
		return nil, err
	}
	files, err := readDir(path)
	if err != nil {
		return nil, err
	}
	return entries(files, prefix, func(file string) (name string, ok bool) {
		base, ok := strings.CutSuffix(file, ".json")
		return run + "/" + base, ok
	}), nil
}

// readDir returns what is in a directory. One that is not there is empty, and so is a file.
func readDir(path string) ([]os.DirEntry, error) {
	list, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if st, errStat := os.Stat(path); err != nil && errStat == nil && !st.IsDir() {
		return nil, nil
	}
	return list, err
}

// entries returns the objects among files: those that are regular and of which nameOf knows the name.
func entries(files []os.DirEntry, prefix string, nameOf func(file string) (name string, ok bool)) []Entry {
	var list []Entry
	for _, f := range files {
		name, ok := nameOf(f.Name())
		if !ok || !strings.HasPrefix(name, prefix) {
			continue
		}
		if _, _, ok := splitName(name); !ok {
			continue
		}

		if st, err := f.Info(); err == nil && st.Mode().IsRegular() {
			list = append(list, Entry{name, st.Size(), st.ModTime()})
		}
	}

	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Key implements Connector: the path below DIR.
func (d directory) Key(name string) string { return name + ".json" }

// URL implements Connector. Only here a relative path becomes an absolute one: the working directory may hang.
func (d directory) URL() string {
	dir, err := filepath.Abs(d.dir)
	if err != nil {
		dir = d.dir
	}
	return fileURL("file", dir, nil)
}

// Close implements Connector.
func (d directory) Close() error { return nil }
