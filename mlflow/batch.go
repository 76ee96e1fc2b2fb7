package mlflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errTooLarge reports a batch beyond one of MLflow's limits.
var errTooLarge = errors.New("batch too large")

// Limits for one batch. They are MLflow's limits, except maxBatchBytes: MLflow's limit is 1 MB for the whole request,
// which some servers enforce.
const (
	maxBatch      = 1000 // metrics and tags
	maxTags       = 100
	maxBatchBytes = 900_000

	maxEnvelope = 1024 // bytes of a request's body without its items
)

// A Metric is one point of a run's metric.
type Metric struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"` // milliseconds since 1970
	Step      int64   `json:"step"`
}

// A Tag is a key with a value that describes a run.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// A Batch holds the data of one request that logs to a run.
type Batch struct {
	Metrics []Metric
	Tags    []Tag
}

// LogBatch logs a batch to a run in one request. An empty batch is not sent. The server stores a point only once if
// key, value, timestamp and step are the same. A tag replaces an existing tag with the same key.
//
// LogBatch fails without a request if a server would refuse the batch or store different values: more than 1000 items,
// 100 tags or 900 kB, a key that CheckKey refuses, a value that is not finite, a negative timestamp. Use Split to stay
// within the limits on size.
func (c *Client) LogBatch(ctx context.Context, runID string, b Batch) error {
	if len(b.Metrics) == 0 && len(b.Tags) == 0 {
		return nil
	}
	op := "log batch to run " + quote(runID)
	if err := b.check(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}

	in := struct {
		ID      string   `json:"run_id"`
		Metrics []Metric `json:"metrics,omitempty"`
		Tags    []Tag    `json:"tags,omitempty"`
	}{runID, b.Metrics, b.Tags}
	q := c.newPost(op, "runs/log-batch", in, nil)
	if len(q.body) > maxBatchBytes {
		return fmt.Errorf("%s: %d bytes, at most %d: %w", op, len(q.body), maxBatchBytes, errTooLarge)
	}
	return c.do(ctx, q)
}

// check returns an error if b is invalid. It does not check the size in bytes.
func (b Batch) check() error {
	if len(b.Tags) > maxTags || len(b.Metrics)+len(b.Tags) > maxBatch {
		return fmt.Errorf("%d metrics and %d tags, at most %d and %d, %d in all: %w",
			len(b.Metrics), len(b.Tags), maxBatch, maxTags, maxBatch, errTooLarge)
	}
	for i, m := range b.Metrics {
		if err := m.check(); err != nil {
			return fmt.Errorf("metric %d: %w", i, err)
		}
	}
	for i, t := range b.Tags {
		if err := CheckKey(t.Key); err != nil {
			return fmt.Errorf("tag %d: %w", i, err)
		}
	}
	return nil
}

// check returns an error if m is invalid. Python servers respond to NaN and Inf with status 200, but store 0.
func (m Metric) check() error {
	switch {
	case math.IsNaN(m.Value) || math.IsInf(m.Value, 0):
		return fmt.Errorf("%s: the value %v is not finite", quote(m.Key), m.Value)
	case m.Timestamp < 0:
		return fmt.Errorf("%s: the timestamp %d ms is negative", quote(m.Key), m.Timestamp)
	}
	return CheckKey(m.Key)
}

// Split splits a batch into batches that are within all limits: first the metrics and then the tags, each in the given
// order. An item that exceeds a limit by itself gets a separate batch, which LogBatch refuses.
func Split(b Batch) []Batch {
	var full []Batch
	var last Batch
	bytes := 0 // size of last as JSON
	makeRoom := func(size int, more bool) {
		items := len(last.Metrics) + len(last.Tags)
		if items > 0 && (!more || items >= maxBatch || bytes+size > maxBatchBytes-maxEnvelope) {
			full = append(full, last)
			last, bytes = Batch{}, 0
		}
		bytes += size
	}

	for _, m := range b.Metrics {
		makeRoom(sizeOf(m), true)
		last.Metrics = append(last.Metrics, m)
	}
	for _, t := range b.Tags {
		makeRoom(sizeOf(t), len(last.Tags) < maxTags)
		last.Tags = append(last.Tags, t)
	}
	if len(last.Metrics)+len(last.Tags) > 0 {
		full = append(full, last)
	}
	return full
}

// sizeOf returns an item's size in a request, in bytes, including its comma. It returns 0 for an item that cannot be
// encoded (NaN), which LogBatch refuses.
func sizeOf(item any) int {
	b, err := json.Marshal(item)
	if err != nil {
		return 0
	}
	return len(b) + 1
}

// SetTag sets one tag of a run.
func (c *Client) SetTag(ctx context.Context, runID string, t Tag) error {
	op := fmt.Sprintf("set tag %s of run %s", quote(t.Key), quote(runID))
	if err := CheckKey(t.Key); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	in := map[string]string{"run_id": runID, "key": t.Key, "value": t.Value}
	return c.post(ctx, op, "runs/set-tag", in, nil)
}

// maxKey is the maximum length of a key in characters.
const maxKey = 250

// CheckKey returns an error if any MLflow server refuses key as the key of a metric, a parameter or a tag. A key has 1
// to 250 characters: letters, digits, underscore, dash, dot, space and slash. It may become the name of a file on the
// server, so normalizing it as a path must not change it. The colon is refused, because only some servers accept it.
func CheckKey(key string) error {
	switch n := utf8.RuneCountInString(key); {
	case key == "":
		return errors.New("the key is empty")
	case n > maxKey:
		return fmt.Errorf("the key %s has %d characters, at most %d", quote(key), n, maxKey)
	}

	for _, r := range key {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_-. /", r) {
			return fmt.Errorf("the key %s has a %q in it: letters, digits, _ - . / and spaces only", quote(key), r)
		}
	}
	norm := path.Clean(key)
	if norm != key || norm == "." || strings.HasPrefix(norm, "..") || strings.HasPrefix(norm, "/") {
		return fmt.Errorf("the key %s is not the same when read as a path: no empty part, none of dots alone,"+
			" no slash at either end", quote(key))
	}
	return nil
}
