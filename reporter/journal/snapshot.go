package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// manyCells is the number of cells of a full ring with eight GPUs. With more, the journal could exceed its maximum
	// size, so the snapshot has half the points. The metrics stay exact.
	manyCells = 1000 * (int(collector.NumColumns) + 8*collector.NumGPUKeys)
	// boundedCapacity is the default capacity of the ring, for which the maximum size is guaranteed.
	boundedCapacity = 1000
)

// A snapshot is the content of a snapshot line.
type snapshot struct {
	Interval time.Duration    `json:"interval_ns"`
	Capacity int              `json:"max_length"`
	Start    host.Instant     `json:"start"`
	End      host.Instant     `json:"end"`
	Samples  int64            `json:"samples"`
	BootMB   reporter.Numbers `json:"boot_mb"`
	State    state            `json:"state"`
	Stride   int64            `json:"stride"`

	Processes []process.Process `json:"processes,omitempty"`
	Deaths    *process.Deaths   `json:"deaths,omitempty"`
	// Packed holds the summaries and the buckets of the ring as JSON values, with gzip and base64: without compression,
	// fifty columns would exceed the maximum size of a journal.
	Packed string `json:"packed"`
	newestSample
	// Marks holds the marks of the job, packed by pack.
	Marks []byte `json:"marks,omitempty"`
	// Timelines holds the timelines of operations, packed by packTimelines.
	Timelines []byte `json:"work,omitempty"`
}

// A newestSample is the sample that would have been written as a line if the snapshot had not been due. Followers need
// it, because a halved ring does not contain the newest sample.
type newestSample struct {
	Values   reporter.Numbers `json:"last,omitempty"`
	AgentCPU float64          `json:"agent_cpu_s,omitzero"`
}

// writeSnapshot writes a Recording as one line. It writes bucket by bucket, because the whole line would
// take several times the memory of the ring.
func writeSnapshot(w io.Writer, rec *collector.Recording, newest newestSample) error {
	ring, operations := rec.Ring, collector.Operations{}
	if rec.Operations != nil {
		operations = *rec.Operations
	}
	many := ring.Len()*ring.Width() > manyCells || operations.Timelines != nil &&
		operations.Timelines.Len()*operations.Timelines.Width() > maxTimelineCells
	if many && ring.Capacity() <= boundedCapacity {
		ring = ring.Halved()
		if operations.Timelines != nil {
			operations.Timelines = operations.Timelines.Halved()
		}
	}

	columns := columnsOf(rec)
	marks, errMarks := pack(rec.Marks)
	timelines, errTimelines := packTimelines(operations.Keys, operations.Timelines)
	if err := errors.Join(errMarks, errTimelines); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	snap := snapshot{Interval: rec.Interval, Capacity: ring.Capacity(), Start: rec.Start, End: rec.End,
		Samples: rec.Samples, BootMB: bootOf(rec, columns), State: stateOf(rec), Stride: ring.Stride(),
		newestSample: newest, Marks: marks, Timelines: timelines, Processes: rec.Processes, Deaths: rec.Deaths}
	line, err := text.JSON(map[string]*snapshot{"snapshot": &snap})
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}

	line = append(line, '\n')
	at := bytes.LastIndex(line, []byte(`"packed":""`)) + len(`"packed":"`) // only numbers and base64 follow
	out := bufio.NewWriterSize(w, 1<<15)
	_, _ = out.Write(line[:at]) // Flush returns the error
	if err := packRing(out, rec, ring, columns); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}

	_, _ = out.Write(line[at:])
	return out.Flush()
}

// recording restores the Recording from a snapshot.
func (snap *snapshot) recording(l layout) (*collector.Recording, error) {
	summaries, buckets, err := snap.unpack(l)
	if err != nil {
		return nil, err
	}
	ring, err := series.RestoreRing(snap.Capacity, l.width(), snap.Stride, snap.Samples, buckets)
	if err != nil {
		return nil, err
	}

	rec := collector.NewRecording(snap.Start, snap.Interval, snap.Capacity)
	rec.EnsureColumn(l.last)
	rec.Ring, rec.End, rec.Samples = ring, snap.End, snap.Samples
	if err := l.boot(rec, snap.BootMB); err != nil {
		return nil, err
	}
	for c, s := range summaries {
		if s == nil { // not in the journal
			continue
		}
		if err := rec.Summaries[c].Merge(s); err != nil {
			return nil, fmt.Errorf("summary of %s: %w", collector.Column(c).Key(), err)
		}
	}
	snap.State.applyTo(rec)
	if rec.Marks, err = unpack[collector.Marks](snap.Marks, maxPackedMarks, "marks"); err != nil {
		return nil, err
	}
	if rec.Operations, err = unpackTimelines(snap.Timelines, rec.Ring); err != nil {
		return nil, err
	}
	rec.Processes, rec.Deaths = snap.Processes, snap.Deaths
	return rec, errors.Join(checkTable(rec.Processes), checkDeaths(rec.Deaths))
}
