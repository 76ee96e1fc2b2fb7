package journal

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The limits on unpacking a hostile journal.
const (
	// maxPackedNumber is larger than the text of one number in a bucket, with its surroundings.
	maxPackedNumber = 160
	// maxPackedSummary is larger than the text of a column's summary with its whole histogram.
	maxPackedSummary = 128 << 10
	// maxPackedRatio is the maximum ratio of a text to its packed form. The numbers of real buckets
	// differ, so their ratio is below a hundred.
	maxPackedRatio = 200
)

// packRing writes the summaries, as a list, and the buckets of a ring as JSON values, with gzip and base64. It writes
// them one after the other, because all of them together would take several times the memory of the ring. The fastest
// level compresses nearly as well as the best.
func packRing(w io.Writer, rec *collector.Recording, ring *series.Ring, columns []collector.Column) error {
	encoded := base64.NewEncoder(base64.StdEncoding, w)
	packed, err := gzip.NewWriterLevel(encoded, gzip.BestSpeed)
	if err != nil {
		return err
	}

	if err := text.WriteJSON(packed, pick(rec.Summaries, columns)); err != nil {
		return err
	}
	var line []byte
	for i := range ring.Len() {
		line = newBucket(ring.Bucket(i), columns).append(line[:0])
		if _, err := packed.Write(line); err != nil {
			return err
		}
	}

	if err := packed.Close(); err != nil {
		return err
	}
	return encoded.Close()
}

// unpack is the inverse of packRing. The result is in collector's order.
func (snap *snapshot) unpack(l layout) (summaries []*series.Summary, buckets []series.Bucket, err error) {
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(snap.Packed)))
	if err != nil {
		return nil, nil, fmt.Errorf("packed part: %w", err)
	}
	width, most := len(l.columns), snap.buckets()
	bound := int64(width)*maxPackedSummary + most*int64(width+8)*maxPackedNumber
	limit := min(reporter.MaxFileSize, int64(len(snap.Packed))*maxPackedRatio, bound)
	text := json.NewDecoder(io.LimitReader(packed, limit))
	snap.Packed = ""

	if err := text.Decode(&summaries); err != nil {
		return nil, nil, fmt.Errorf("packed summaries: %w", err)
	}
	if len(summaries) != width {
		return nil, nil, fmt.Errorf("packed summaries: of %d columns", len(summaries))
	}
	for {
		var b bucket
		switch err := text.Decode(&b); {
		case errors.Is(err, io.EOF):
			return arranged(l, summaries, nil), buckets, nil
		case err != nil:
			return nil, nil, fmt.Errorf("packed buckets: bucket %d: %w", len(buckets), err)
		case int64(len(buckets)) >= most:
			return nil, nil, fmt.Errorf("packed buckets: more than %d of them", most)
		case len(b.Values) != width || len(b.Stats) != width:
			return nil, nil, fmt.Errorf("packed buckets: bucket %d has %d and %d columns",
				len(buckets), len(b.Values), len(b.Stats))
		}
		b.Values, b.Stats = arranged(l, b.Values, math.NaN()), arranged(l, b.Stats, notMeasured())
		buckets = append(buckets, b.toSeries())
	}
}

// buckets returns the maximum number of buckets in the ring of a snapshot, from its other fields.
func (snap *snapshot) buckets() int64 {
	n := int64(min(max(snap.Capacity, 0), series.MaxCapacity))
	if snap.Stride > 0 && snap.Samples >= 0 {
		n = min(n, snap.Samples/snap.Stride+1)
	}
	return n
}
