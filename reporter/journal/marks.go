package journal

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/text"
)

// marksLine holds the marks of the job since the previous sample, with times on the axis of the samples.
type marksLine struct {
	Lines   []json.RawMessage `json:"lines,omitempty"` // in the job's format
	Dropped marks.Dropped     `json:"lost,omitzero"`
	Why     string            `json:"why,omitempty"`
}

// appendMarks adds new marks to the line of a sample. It adds nothing if the job sends none.
func (j *Journal) appendMarks(out []byte, s *collector.Sample, rec *collector.Recording) []byte {
	if rec.Marks == nil {
		return out
	}
	if s.JobCPUSeconds > 0 {
		out = text.AppendFloat(append(out, `,"job_cpu_s":`...), s.JobCPUSeconds)
	}

	if s.MemoryStale {
		out = append(out, `,"memory_held":true`...)
	}

	update := rec.MarksUpdate
	line := marksLine{Dropped: marks.Dropped{Bytes: update.Dropped.Bytes}, Why: update.Why}
	if len(update.Lines) == 0 && update.Dropped == line.Dropped && line.Dropped == j.lastMarks.Dropped &&
		line.Why == j.lastMarks.Why {
		return out
	}

	j.lastMarks = line
	line.Dropped = update.Dropped
	for _, l := range update.Lines {
		line.Lines = append(line.Lines, bytes.TrimSpace(l.Append(nil)))
	}

	return appendMember(out, `,"said":`, &line)
}

// applyTo adds the marks to a Recording. at is the time of the sample after them.
func (s *marksLine) applyTo(rec *collector.Recording, at float64) error {
	update := marks.Update{Dropped: s.Dropped, Why: s.Why}
	if s.Dropped.Marks < 0 || s.Dropped.PhaseSpans < 0 || s.Dropped.Bytes < 0 {
		return errors.New("a count of marks below 0")
	}
	for _, data := range s.Lines {
		l, ok := marks.Parse(data)
		if !ok || math.IsNaN(l.At) || l.At > at || l.IsPhase && l.At < rec.NewestTimestamp() {
			return fmt.Errorf("a mark at %v before the sample at %v", l.At, at)
		}
		update.Lines = append(update.Lines, l)
	}
	rec.AddMarks(update)

	return nil
}

// maxPackedMarks is larger than the text of all marks and phases within their limits.
const maxPackedMarks = 16 << 20

// pack returns v as JSON compressed with gzip; nil if v is nil.
func pack[T any](v *T) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	err = errors.Join(text.WriteJSON(packed, v), packed.Close())
	return out.Bytes(), err
}

// unpack is the inverse of pack. It reads at most limit bytes of uncompressed JSON. Errors contain what, the name of
// the value.
func unpack[T any](data []byte, limit int64, what string) (*T, error) {
	if len(data) == 0 {
		return nil, nil
	}
	v := new(T)
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(packed, limit)).Decode(v)
	}
	if err != nil {
		return nil, fmt.Errorf("packed %s: %w", what, err)
	}
	return v, nil
}
