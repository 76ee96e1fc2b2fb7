package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/internal/text"
)

// The tags of texts. ProxyStore 0.7 and later read the first one, 0.3 to 0.6.5 the second.
const (
	tagText    = "US"
	tagTextOld = "02"
)

// unreadable are the tags of objects that are pickles or may hold one, by what they say. Reading a pickle runs it.
var unreadable = map[string]string{
	"PK": "a pickle", "CP": "a pickle of cloudpickle", "NP": "an array of numpy, which may hold pickles",
	"PD": "a pickle of pandas", "PL": "a table of polars", "03": "a pickle", "04": "a pickle of cloudpickle",
}

// A tagging is the form of the objects in a ProxyStore: a tag of two letters, a line feed, and the payload
// (proxystore/serialize.py).
type tagging struct{ tag string }

// encode returns a text as ProxyStore's serializer returns a str.
func (t tagging) encode(data []byte) ([]byte, error) {
	return append(append(make([]byte, 0, len(t.tag)+1+len(data)), t.tag+"\n"...), data...), nil
}

// decode returns the payload of a str or of bytes, of each generation. Anything else is an error.
func (tagging) decode(stored []byte) ([]byte, error) {
	const longest = 16 // with spaces, which Python ignores
	head, _, found := strings.Cut(string(stored[:min(len(stored), longest)]), "\n")
	if !found {
		return nil, errors.New("it does not begin with a tag of ProxyStore")
	}

	tag, data := strings.TrimSpace(head), stored[len(head)+1:]
	switch what, known := unreadable[tag]; {
	case tag == tagText || tag == tagTextOld || tag == "BS" || tag == "01":
		return data, nil
	case known:
		return nil, fmt.Errorf("it is %s (tag %s), which perfagent never reads; store the report as a text: "+
			"store.put(json.dumps(report))", what, tag)
	}
	return nil, fmt.Errorf("it has the unknown tag %s", text.Printable(tag))
}

// A proxyDirectory is a Connector with the layout of ProxyStore's FileConnector (0.6.1 and later): the object is DIR/KEY,
// and DIR/KEY.ready is an empty file that is made after it. Without both there is no object, though either takes the
// name. The object RUN-ID/node-N has the key perfagent.RUN-ID.node-N.json; every other name is a key itself.
type proxyDirectory struct {
	dir     string
	options url.Values
}

// Suffixes and prefix of files.
const (
	ready     = ".ready"
	proxyName = "perfagent."
	jsonName  = ".json"
)

// Key implements Connector.
func (d proxyDirectory) Key(name string) string {
	if run, node, ok := splitName(name); ok {
		return proxyName + run + "." + node + jsonName
	}
	return name
}

// nameOf returns the name of the object whose key is one of ours.
func (proxyDirectory) nameOf(key string) (name string, ok bool) {
	base, ours := strings.CutPrefix(key, proxyName)
	base, json := strings.CutSuffix(base, jsonName)
	at := strings.LastIndex(base, ".node-")
	if !ours || !json || at < 0 {
		return "", false
	}
	return base[:at] + "/" + base[at+1:], true
}

// path returns where the object of a name lies, unless ctx has ended or that is out of the directory.
func (d proxyDirectory) path(ctx context.Context, name string) (string, error) {
	key := d.Key(name)
	bad := key == "" || key == "." || key == ".." || len(key) > 255-len(ready) || strings.HasSuffix(key, ready) ||
		strings.ContainsAny(key, "/\\\x00")
	if bad {
		return "", ErrName
	}
	path := filepath.Join(d.dir, key)
	return path, cmp.Or(ctx.Err(), CheckInside(d.dir, path))
}

// Put implements Connector. A reader never sees a part of the object: the marker comes last.
func (d proxyDirectory) Put(ctx context.Context, name string, data []byte) error {
	path, err := d.path(ctx, name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path + ready); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = ErrExists
		}
		return err
	}

	const attempts = 3 // Python may clear the directory at any moment
	for range attempts {
		if err := writeFile(path, data, durable.WriteNew); err != nil {
			return err
		}
		if err := writeFile(path+ready, nil, durable.WriteNew); err != nil {
			return errors.Join(err, removeFile(path)) // else the name would be taken for ever
		}

		if there, err := isFile(path); there || err != nil {
			return err
		}
		if err := removeFile(path + ready); err != nil {
			return err
		}
	}
	return errors.New("the directory is cleared again and again: give Python's FileConnector clear=False")
}

// Replace implements Connector: an object never changes, because workers keep copies by its key.
func (proxyDirectory) Replace(context.Context, string, []byte) error { return errors.ErrUnsupported }

// Get implements Connector.
func (d proxyDirectory) Get(ctx context.Context, name string) ([]byte, error) {
	path, err := d.path(ctx, name)
	if err != nil {
		return nil, err
	}

	there, err := isFile(path + ready)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, ErrNotFound
	}
	return readFile(path)
}

// Exists implements Connector.
func (d proxyDirectory) Exists(ctx context.Context, name string) (bool, error) {
	path, err := d.path(ctx, name)
	if err != nil {
		return false, err
	}

	for _, file := range []string{path + ready, path} {
		there, err := isFile(file)
		if errors.Is(err, errIrregular) {
			return false, nil
		}
		if err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

// Evict implements Connector. The marker goes first, so that a reader finds either the object or none.
func (d proxyDirectory) Evict(ctx context.Context, name string) error {
	path, err := d.path(ctx, name)
	if err != nil {
		return err
	}
	if err := removeFile(path + ready); err != nil {
		return err
	}
	return removeFile(path)
}

// List implements Connector.
func (d proxyDirectory) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	files, err := readDir(d.dir)
	if err != nil {
		return nil, err
	}

	marked := make(map[string]bool)
	for _, f := range files {
		if key, ok := strings.CutSuffix(f.Name(), ready); ok {
			marked[key] = true
		}
	}
	return entries(files, prefix, func(file string) (string, bool) {
		name, ok := d.nameOf(file)
		return name, ok && marked[file]
	}), nil
}

// URL implements Connector.
func (d proxyDirectory) URL() string { return fileURL("proxystore+file", d.dir, d.options) }

// Close implements Connector. Unlike Python's it removes no directory.
func (proxyDirectory) Close() error { return nil }
