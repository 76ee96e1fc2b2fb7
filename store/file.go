package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/internal/durable"
)

// A directory is a Connector that stores objects as files below a directory. In the layout of --out the object
// RUN-ID/node-N is DIR/RUN-ID/node-N.json.
//
// In the layout of ProxyStore's FileConnector (0.6.1 and later) an object is DIR/KEY, followed by the empty marker file
// DIR/KEY.ready. The object exists if both files do, but either file alone takes the name. The object RUN-ID/node-N has
// the key perfagent.RUN-ID.node-N.json; any other name is itself a key.
type directory struct {
	layout
	dir        string
	proxyStore bool       // ProxyStore's layout
	options    url.Values // of the address
}

const readySuffix = ".ready" // suffix of a marker

var (
	outLayout   = layout{separator: "/", suffix: ".json"}
	proxyLayout = layout{prefix: "perfagent.", separator: ".", suffix: ".json", bare: true}

	errNotRegular = errors.New("it is not a regular file")
	errOutside    = errors.New("a link leads out of the store")
)

// path returns the path of the object called name.
func (d directory) path(name string) string { return filepath.Join(d.dir, d.Key(name)) }

// files returns the files of the object called name, in reverse order of writing.
func (d directory) files(name string) []string {
	path := d.path(name)
	if d.proxyStore {
		return []string{path + readySuffix, path}
	}
	return []string{path}
}

// isProxyKey reports whether key can be a key in a ProxyStore, where it is the name of a file.
func isProxyKey(key string) bool {
	return key != "" && key != "." && key != ".." && len(key) <= 255-len(readySuffix) &&
		!strings.HasSuffix(key, readySuffix) &&
		!strings.ContainsAny(key, "/\\\x00")
}

// check implements checker.
func (d directory) check(ctx context.Context, name string) error {
	if !d.proxyStore && !IsName(name) || d.proxyStore && !isProxyKey(d.Key(name)) {
		return ErrName
	}
	return cmp.Or(ctx.Err(), CheckInside(d.dir, d.path(name)))
}

// CheckInside returns an error if path, which is below dir, contains a symbolic link that leads out of dir. It ignores
// missing files and directories.
func CheckInside(dir, path string) error {
	home, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}

	for dir = filepath.Clean(dir); path != dir && path != filepath.Dir(path); path = filepath.Dir(path) {
		at, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) { // the object, and perhaps the run's directory, do not exist yet
			continue
		}
		if rel, errRel := filepath.Rel(home, at); err == nil && (errRel != nil || !filepath.IsLocal(rel)) {
			return errOutside
		}
		break
	}
	return nil
}

// Put implements Connector. A directory or a FIFO of that name also takes the name.
func (d directory) Put(_ context.Context, name string, data []byte) error {
	if d.proxyStore {
		return putWithMarker(d.path(name), data)
	}
	return writeFile(d.path(name), data, durable.WriteNew)
}

// putWithMarker puts an object into a ProxyStore. The marker comes last, so that a reader never gets a partial object.
func putWithMarker(path string, data []byte) error {
	if _, err := os.Lstat(path + readySuffix); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, ErrExists)
	}

	const attempts = 3 // Python may clear the directory at any moment
	for range attempts {
		if err := writeFile(path, data, durable.WriteNew); err != nil {
			return err
		}
		if err := writeFile(path+readySuffix, nil, durable.WriteNew); err != nil {
			return errors.Join(err, removeFile(path)) // otherwise the name would be taken forever
		}

		if err := checkRegular(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := removeFile(path + readySuffix); err != nil {
			return err
		}
	}
	return errors.New("something keeps clearing the directory: give Python's FileConnector clear=False")
}

// Replace implements Connector. In a ProxyStore an object never changes, because workers cache objects by key.
func (d directory) Replace(_ context.Context, name string, data []byte) error {
	if d.proxyStore {
		return errors.ErrUnsupported
	}
	return writeFile(d.path(name), data, durable.Write)
}

// writeFile writes a file, and creates its directory if necessary.
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
func (d directory) Get(_ context.Context, name string) (data []byte, err error) {
	for _, file := range d.files(name) {
		err = cmp.Or(err, checkRegular(file))
	}
	if err == nil {
		data, err = durable.ReadFile(d.path(name), MaxSize)
	}
	if errors.Is(err, fs.ErrNotExist) { // the object may have been evicted in the meantime
		err = ErrNotFound
	}
	return data, err
}

// Exists implements Connector.
func (d directory) Exists(_ context.Context, name string) (bool, error) {
	for _, file := range d.files(name) {
		if err := checkRegular(file); errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// checkRegular returns nil for a regular file, fs.ErrNotExist for a missing one, and another error for anything else.
func checkRegular(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	case err == nil && !st.Mode().IsRegular():
		return errNotRegular
	}
	return err
}

// Evict implements Connector. The directory of the run remains. A marker is removed first, so that a reader finds
// either the whole object or none.
func (d directory) Evict(_ context.Context, name string) error {
	for _, file := range d.files(name) {
		if err := removeFile(file); err != nil {
			return err
		}
	}
	return nil
}

// removeFile removes a file that may be missing.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List implements Connector.
func (d directory) List(ctx context.Context, prefix string) ([]ObjectInfo, error) {
	run, _, whole := strings.Cut(prefix, "/")
	switch {
	case d.proxyStore:
		return d.listFiles(ctx, "", prefix)
	case whole:
		return d.listFiles(ctx, run, prefix)
	}

	runs, err := readDir(d.dir)
	if err != nil {
		return nil, err
	}
	var list []ObjectInfo
	for _, run := range runs {
		if !strings.HasPrefix(run.Name(), prefix) {
			continue
		}
		of, err := d.listFiles(ctx, run.Name(), prefix)
		if err != nil && !errors.Is(err, errOutside) {
			return nil, err
		}
		list = append(list, of...)
	}
	return list, nil
}

// listFiles returns the objects with names that begin with prefix, in the directory of run or, if run is "", in the
// store's own directory. Objects in a ProxyStore with other keys than perfagent's are left out.
func (d directory) listFiles(ctx context.Context, run, prefix string) ([]ObjectInfo, error) {
	dir := filepath.Join(d.dir, run)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case run != "" && !isElement(run):
		return nil, nil
	}
	if err := CheckInside(d.dir, dir); err != nil {
		return nil, err
	}
	files, err := readDir(dir)
	if err != nil {
		return nil, err
	}

	var list []ObjectInfo
	for _, f := range files {
		name, ok := d.nameOf(strings.TrimPrefix(run+"/"+f.Name(), "/"))
		if !ok || !strings.HasPrefix(name, prefix) || !IsName(name) ||
			d.proxyStore && checkRegular(filepath.Join(dir, f.Name())+readySuffix) != nil {
			continue
		}
		if st, err := f.Info(); err == nil && st.Mode().IsRegular() {
			list = append(list, ObjectInfo{name, st.Size(), st.ModTime()})
		}
	}
	return list, nil
}

// readDir returns the entries of the directory path. It returns none if path is missing or is not a directory.
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

// URL implements Connector. A relative path becomes absolute only here, because finding the working directory may hang.
func (d directory) URL() string {
	u := url.URL{Scheme: "file", Path: d.dir, RawQuery: d.options.Encode()}
	if dir, err := filepath.Abs(d.dir); err == nil {
		u.Path = dir
	}
	if u.Path = filepath.ToSlash(u.Path); d.proxyStore {
		u.Scheme = "proxystore+file"
	}
	return u.String()
}

// Close implements Connector. Unlike close in Python, it removes no directory.
func (d directory) Close() error { return nil }
