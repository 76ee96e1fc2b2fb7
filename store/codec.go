package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
)

// A codec converts objects to and from their stored form.
type codec interface {
	encode(data []byte) (stored []byte)
	decode(stored []byte) (data []byte, err error)
}

// plainCodec stores objects unchanged.
type plainCodec struct{}

func (plainCodec) encode(data []byte) []byte            { return data }
func (plainCodec) decode(stored []byte) ([]byte, error) { return stored, nil }

// gzipCodec compresses objects, for servers that keep them in memory. The gzip header holds the time of the put.
type gzipCodec struct{}

func (gzipCodec) encode(data []byte) []byte {
	var out bytes.Buffer                              // writing to it never fails
	w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is valid
	w.ModTime = time.Now()
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

// decode unpacks at most MaxSize bytes, because a small object may expand to a huge one.
func (gzipCodec) decode(stored []byte) ([]byte, error) {
	if len(stored) == 0 {
		return nil, errors.New("it is empty")
	}
	r, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, fmt.Errorf("it is not an object of perfagent: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it is too large: more than %d MiB when unpacked", MaxSize>>20)
	}
	return data, nil
}

// The tags of texts. ProxyStore 0.7 and later read tagText, and 0.3 to 0.6.5 read tagTextOld.
const (
	tagText    = "US"
	tagTextOld = "02"
)

// unsafeTags describes the tags of objects that are, or may contain, pickles. Reading a pickle executes it.
var unsafeTags = map[string]string{
	"PK": "a pickle", "CP": "a pickle of cloudpickle", "NP": "an array of numpy, which may hold pickles",
	"PD": "a pickle of pandas", "PL": "a table of polars", "03": "a pickle", "04": "a pickle of cloudpickle",
}

// A proxyStoreCodec stores objects as ProxyStore does (proxystore/serialize.py): a tag of two characters, a line feed,
// and the payload.
type proxyStoreCodec struct{ tag string }

// encode encodes data as ProxyStore's serializer encodes a str.
func (t proxyStoreCodec) encode(data []byte) []byte { return slices.Concat([]byte(t.tag+"\n"), data) }

// decode returns the payload of a str or of bytes, as stored by any version of ProxyStore. Any other object is an
// error.
func (proxyStoreCodec) decode(stored []byte) ([]byte, error) {
	const longest = 16 // with spaces, which Python ignores
	head, _, found := strings.Cut(string(stored[:min(len(stored), longest)]), "\n")
	if !found {
		return nil, errors.New("it does not begin with a tag of ProxyStore")
	}

	tag, data := strings.TrimSpace(head), stored[len(head)+1:]
	switch what, known := unsafeTags[tag]; {
	case tag == tagText || tag == tagTextOld || tag == "BS" || tag == "01":
		return data, nil
	case known:
		return nil, fmt.Errorf("it is %s (tag %s), which perfagent never reads; store the report as text: "+
			"store.put(json.dumps(report))", what, tag)
	}
	return nil, fmt.Errorf("it has the unknown tag %s", text.Printable(tag))
}
