package reporter

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/series"
)

// A journal holds its head, then lines of two kinds, told apart by their key:
//
//	{"snapshot":{…}}  everything up to then: the ring, the summaries, the state
//	{"sample":[…],…}  one more sample, and the state when it changed
//
// A reader starts from the last snapshot and adds the samples that follow.

// journalState is what a Recording holds beside ring and summaries.
type journalState struct {
	Start    collector.Instant        `json:"start,omitzero"`
	Host     collector.Host           `json:"host"`
	Missed   int64                    `json:"missed_ticks"`
	Gap      time.Duration            `json:"longest_gap_ns"`
	Clock    []collector.ClockEvent   `json:"clock,omitempty"`
	Failures []collector.Failure      `json:"failures,omitempty"`
	Disks    []string                 `json:"disks,omitempty"`
	NICs     []string                 `json:"nics,omitempty"`
	Late     map[string]time.Duration `json:"late,omitempty"`
}

// journalSample is a sample's line.
type journalSample struct {
	Values  Numbers         `json:"sample"`            // by collector.Column
	Weight  float64         `json:"weight"`            // of the columns not in Weights
	Weights map[int]float64 `json:"weights,omitempty"` // by column
	Index   int64           `json:"i"`                 // samples before this one
	Mono    time.Duration   `json:"mono_ns"`           // since the start
	Boot    time.Duration   `json:"boot_ns"`
	BootMB  Numbers         `json:"boot_mb"`
	State   *journalState   `json:"state,omitempty"`
}

// journalSnapshot is a snapshot's line.
type journalSnapshot struct {
	Interval  time.Duration     `json:"interval_ns"`
	Capacity  int               `json:"max_length"`
	Start     collector.Instant `json:"start"`
	End       collector.Instant `json:"end"`
	Samples   int64             `json:"samples"`
	BootMB    Numbers           `json:"boot_mb"`
	State     journalState      `json:"state"`
	Summaries []*series.Summary `json:"summaries"`
	Stride    int64             `json:"stride"`
	Buckets   []journalBucket   `json:"buckets"`
}

// metaKey tells whether the state changed since the last line, without looking
// into its lists: they only grow.
type metaKey struct {
	host                                    collector.Host
	missed, failures                        int64
	gap                                     time.Duration
	clock, distinct, disks, nics, lateCount int
}

func keyOf(rec *collector.Recording) metaKey {
	k := metaKey{host: rec.Host, missed: rec.MissedTicks, gap: rec.LongestGap, clock: len(rec.Clock),
		distinct: len(rec.Failures), disks: len(rec.Disks), nics: len(rec.NICs), lateCount: len(rec.Late)}
	for _, f := range rec.Failures {
		k.failures += f.Count
	}
	return k
}

func stateOf(rec *collector.Recording) journalState {
	return journalState{Start: rec.Start, Host: rec.Host, Missed: rec.MissedTicks, Gap: rec.LongestGap, Clock: rec.Clock,
		Failures: rec.Failures, Disks: rec.Disks, NICs: rec.NICs, Late: rec.Late}
}

func (s journalState) into(rec *collector.Recording) {
	if !s.Start.Wall.IsZero() {
		rec.Start = s.Start
	}
	rec.Host, rec.MissedTicks, rec.LongestGap, rec.Clock = s.Host, s.Missed, s.Gap, s.Clock
	rec.Failures, rec.Disks, rec.NICs, rec.Late = s.Failures, s.Disks, s.NICs, s.Late
}

// line writes one sample's line. It is written by hand because it is made for
// every sample: the values and, seldom, the state.
func (j *Journal) line(s *collector.Sample, rec *collector.Recording) []byte {
	out := make([]byte, 0, 512)
	out = Numbers(s.Values[:]).append(append(out, `{"sample":`...))
	common := s.Weights[collector.Timestamp]
	out = appendNumber(append(out, `,"weight":`...), common)
	sep := `,"weights":{`
	for c, w := range s.Weights {
		if w == common {
			continue
		}
		out = append(out, sep...)
		out = append(strconv.AppendInt(append(out, '"'), int64(c), 10), `":`...)
		out = appendNumber(out, w)
		sep = ","
	}
	if sep == "," {
		out = append(out, '}')
	}
	out = strconv.AppendInt(append(out, `,"i":`...), rec.Samples-1, 10)
	out = strconv.AppendInt(append(out, `,"mono_ns":`...), int64(rec.End.Mono-rec.Start.Mono), 10)
	out = strconv.AppendInt(append(out, `,"boot_ns":`...), int64(rec.End.Boot-rec.Start.Boot), 10)
	out = Numbers(rec.BootMB[:]).append(append(out, `,"boot_mb":`...))
	if key := keyOf(rec); key != j.written {
		j.written = key
		if state, err := marshal(stateOf(rec)); err == nil {
			out = append(append(out, `,"state":`...), state...)
		}
	}
	return append(out, '}', '\n')
}

// snapshotLine writes a Recording whole.
func snapshotLine(rec *collector.Recording) ([]byte, error) {
	snap := journalSnapshot{Interval: rec.Interval, Capacity: rec.Ring.Capacity(), Start: rec.Start, End: rec.End,
		Samples: rec.Samples, BootMB: rec.BootMB[:], State: stateOf(rec), Summaries: rec.Summaries[:], Stride: rec.Ring.Stride()}
	for i := range rec.Ring.Len() {
		snap.Buckets = append(snap.Buckets, newJournalBucket(rec.Ring.Bucket(i)))
	}
	line, err := marshal(map[string]journalSnapshot{"snapshot": snap})
	if err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	return append(line, '\n'), nil
}

// recording rebuilds what a snapshot's line holds, which is in our order.
func (snap *journalSnapshot) recording() (*collector.Recording, error) {
	if len(snap.BootMB) != len(collector.Counters()) {
		return nil, fmt.Errorf("snapshot of %d counters", len(snap.BootMB))
	}
	buckets := make([]series.Bucket, len(snap.Buckets))
	for i := range buckets {
		buckets[i] = snap.Buckets[i].bucket()
	}
	ring, err := series.RestoreRing(snap.Capacity, int(collector.NumColumns), snap.Stride, snap.Samples, buckets)
	if err != nil {
		return nil, err
	}
	rec := collector.NewRecording(snap.Start, snap.Interval, snap.Capacity)
	rec.Ring, rec.End, rec.Samples = ring, snap.End, snap.Samples
	copy(rec.BootMB[:], snap.BootMB)
	for c, s := range snap.Summaries {
		if err := takeSummary(rec, c, s); err != nil {
			return nil, err
		}
	}
	snap.State.into(rec)
	return rec, nil
}

// into adds a sample's line, which is in our order, to what was read before it.
func (l *journalSample) into(rec *collector.Recording) error {
	var s collector.Sample
	if len(l.BootMB) != len(rec.BootMB) {
		return fmt.Errorf("sample of %d counters", len(l.BootMB))
	}
	if l.Index < rec.Samples || l.Weight < 0 || math.IsInf(l.Weight, 0) {
		return fmt.Errorf("sample %d after sample %d", l.Index, rec.Samples)
	}
	copy(s.Values[:], l.Values)
	for c := range s.Weights {
		s.Weights[c] = l.Weight
	}
	for c, w := range l.Weights {
		s.Weights[c] = w
	}
	rec.Add(&s)
	if l.State != nil {
		l.State.into(rec)
	}
	rec.End = rec.Start
	rec.End.Mono += l.Mono
	rec.End.Boot += l.Boot
	copy(rec.BootMB[:], l.BootMB)
	return nil
}

// parseJournal rebuilds a Report from a journal: everything up to its last whole
// line. Lines that are damaged are left out and counted; they never hide others.
func parseJournal(data []byte) (*Report, error) {
	var head JournalHead
	var rec *collector.Recording
	var columns layout
	damaged, taken := 0, int64(0)
	number := 0
	for line := range lines(data) {
		number++
		if number == 1 {
			if err := json.Unmarshal(line, &head); err != nil {
				return nil, fmt.Errorf("line 1: the head is damaged: %w", err)
			}
			if err := checkSchema(head.Journal, JournalSchema); err != nil {
				return nil, err
			}
			rec, columns = head.recording(), newLayout(head.Columns)
			continue
		}
		next, upTo, err := addLine(rec, line, columns)
		if err != nil {
			damaged++
			continue
		}
		rec, taken = next, upTo
	}
	if rec == nil {
		return nil, fmt.Errorf("is empty")
	}
	return head.report(rec, damaged, max(0, taken-rec.Samples)), nil
}
