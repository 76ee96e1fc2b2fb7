package reporter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// A journal holds its head, then lines of three kinds, told apart by their key:
//
//	{"snapshot":{…}}  everything up to then: the ring, the summaries, the state
//	{"sample":[…],…}  one more sample, and the state when it changed
//	{"signal":{…}}    a signal that the agent was sent, at once; the next state has it too
//
// A reader starts from the last snapshot and adds the samples that follow. Those of
// earlier versions take a signal for a damaged line and leave it out.

// journalState is what a Recording holds beside ring and summaries.
type journalState struct {
	Start    host.Instant             `json:"start,omitzero"`
	Host     host.Info                `json:"host"`
	Missed   int64                    `json:"missed_ticks"`
	Gap      time.Duration            `json:"longest_gap_ns"`
	Clock    []collector.ClockEvent   `json:"clock,omitempty"`
	Failures []collector.Failure      `json:"failures,omitempty"`
	Paths    []string                 `json:"disk_paths,omitempty"`
	Disks    []string                 `json:"disks,omitempty"`
	NICs     []string                 `json:"nics,omitempty"`
	Late     map[string]time.Duration `json:"late,omitempty"`
	// Columns takes the place of the head's list from this line on: GPUs were found.
	Columns []string           `json:"columns,omitempty"`
	Account *collector.Account `json:"account,omitempty"`
	GPUs    []collector.GPU    `json:"gpus,omitempty"`
	Gaps    []series.Gap       `json:"gaps,omitempty"`
	// GPUTrouble is why nothing new is known of the GPUs.
	GPUTrouble string `json:"gpu_trouble,omitempty"`
}

// accountEvery is how often the account of the job is written: within the 5 s for which
// samples are promised.
const accountEvery = 4 * time.Second

// journalSample is a sample's line.
type journalSample struct {
	Values  Numbers         `json:"sample"`            // by collector.Column
	Weight  float64         `json:"weight"`            // of the columns not in Weights
	Weights map[int]float64 `json:"weights,omitempty"` // by column
	Index   int64           `json:"i"`                 // samples before this one
	Mono    time.Duration   `json:"mono_ns"`           // since the start
	Boot    time.Duration   `json:"boot_ns"`
	BootMB  Numbers         `json:"boot_mb"`
	// AgentCPU is what the agent itself has used so far, s; 0 = not told.
	AgentCPU float64       `json:"agent_cpu_s,omitzero"`
	State    *journalState `json:"state,omitempty"`
}

// journalSnapshot is a snapshot's line.
type journalSnapshot struct {
	Interval time.Duration `json:"interval_ns"`
	Capacity int           `json:"max_length"`
	Start    host.Instant  `json:"start"`
	End      host.Instant  `json:"end"`
	Samples  int64         `json:"samples"`
	BootMB   Numbers       `json:"boot_mb"`
	State    journalState  `json:"state"`
	Stride   int64         `json:"stride"`
	// Summaries and Buckets are those of the Recording in journals of earlier versions;
	// Packed has them as JSON values one after the other, by gzip and base64: those of
	// fifty columns would not stay below the bound of a journal.
	Summaries []*series.Summary `json:"summaries,omitempty"`
	Buckets   []journalBucket   `json:"buckets,omitempty"`
	Packed    string            `json:"packed"`
	journalNewest
}

// journalNewest is what a snapshot, which takes the place of its sample's line, keeps
// of that line for those who look on: the ring has no newest sample once it is thinned.
type journalNewest struct {
	Values   Numbers `json:"last,omitempty"`
	AgentCPU float64 `json:"agent_cpu_s,omitzero"`
}

// metaKey tells whether the state changed since the last line, without looking
// into its lists: they only grow.
type metaKey struct {
	host                                    host.Info
	missed, failures                        int64
	gap                                     time.Duration
	clock, distinct, disks, nics, lateCount int
	columns, gaps, account, signals         int
}

func keyOf(rec *collector.Recording) metaKey {
	k := metaKey{host: rec.Host, missed: rec.MissedTicks, gap: rec.LongestGap, clock: len(rec.Clock),
		distinct: len(rec.Failures), disks: len(rec.Disks), nics: len(rec.NICs), lateCount: len(rec.Late)}
	for _, f := range rec.Failures {
		k.failures += f.Count
	}
	k.columns, k.gaps, k.signals = int(rec.Columns()), len(rec.Gaps), len(rec.Account.Signals)
	if rec.Account.Source != "" || len(rec.GPUs) > 0 {
		k.account = int((rec.End.Mono - rec.Start.Mono) / accountEvery)
	}
	return k
}

func stateOf(rec *collector.Recording) journalState {
	s := journalState{Start: rec.Start, Host: rec.Host, Missed: rec.MissedTicks, Gap: rec.LongestGap, Clock: rec.Clock,
		Failures: rec.Failures, Paths: rec.DiskPaths, Disks: rec.Disks, NICs: rec.NICs, Late: rec.Late, Account: &rec.Account, GPUs: rec.GPUs, Gaps: rec.Gaps, GPUTrouble: rec.GPUTrouble}
	if rec.Columns() > collector.NumColumns {
		s.Columns = columnKeys(rec.Columns())
	}
	return s
}

// UnmarshalJSON refuses what only damage makes: a sign in the place of a digit. Of the
// numbers only a step of the clock, and instants, can be below 0.
func (s *journalState) UnmarshalJSON(data []byte) error {
	type state journalState
	if err := json.Unmarshal(data, (*state)(s)); err != nil {
		return err
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	delete(values, "clock")
	delete(values, "start")
	if belowZero(values) {
		return errors.New("a state with a number below 0")
	}
	return nil
}

// belowZero tells whether any number in a JSON value is below 0.
func belowZero(value any) bool {
	switch v := value.(type) {
	case float64:
		return v < 0
	case []any:
		return slices.ContainsFunc(v, belowZero)
	case map[string]any:
		for _, member := range v {
			if belowZero(member) {
				return true
			}
		}
	}
	return false
}

func (s journalState) into(rec *collector.Recording) {
	if !s.Start.Wall.IsZero() {
		rec.Start = s.Start
	}
	rec.Host, rec.MissedTicks, rec.LongestGap, rec.Clock = s.Host, s.Missed, s.Gap, s.Clock
	rec.Failures, rec.DiskPaths, rec.Disks, rec.NICs, rec.Late = s.Failures, s.Paths, s.Disks, s.NICs, s.Late
	if s.Account != nil {
		rec.Account = *s.Account
	}
	rec.GPUs, rec.Gaps, rec.GPUTrouble = s.GPUs, s.Gaps, s.GPUTrouble
	if len(rec.GPUs) > collector.MaxGPUs {
		rec.GPUs = rec.GPUs[:collector.MaxGPUs]
	}
}

// line writes one sample's line. It is written by hand because it is made for
// every sample: the values and, seldom, the state.
func (j *Journal) line(s *collector.Sample, rec *collector.Recording) []byte {
	out := make([]byte, 0, 512)
	out = Numbers(s.Values[:rec.Columns()]).append(append(out, `{"sample":`...))
	common := s.Weights[collector.Timestamp]
	out = appendNumber(append(out, `,"weight":`...), common)
	sep := `,"weights":{`
	for c, w := range s.Weights[:rec.Columns()] {
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
	if cpu := j.ownCPU(); cpu > 0 {
		out = appendNumber(append(out, `,"agent_cpu_s":`...), cpu)
	}
	if key := keyOf(rec); key != j.written {
		j.written = key
		if state, err := marshal(stateOf(rec)); err == nil {
			out = append(append(out, `,"state":`...), state...)
		}
	}
	return append(out, '}', '\n')
}

// ownCPU is what the agent has used so far, to the microsecond; 0 = not known.
func (j *Journal) ownCPU() float64 {
	if j.cost == nil {
		return 0
	}
	return rounded(j.cost(), 6)
}

const (
	// manyCells are more than a snapshot holds below the bound of a journal: a full ring
	// with more than eight GPUs. It then has half the points. What metrics come from is not
	// touched.
	manyCells = 1000 * (int(collector.NumColumns) + 8*collector.NumGPUKeys)
	// boundedCapacity is the ring for which there is such a bound, the default.
	boundedCapacity = 1000
)

// writeSnapshot writes a Recording whole, as one line: bucket by bucket, because all of
// it in memory would be several times what the ring takes.
func writeSnapshot(w io.Writer, rec *collector.Recording, newest journalNewest) error {
	ring := rec.Ring
	if cells := ring.Len() * ring.Width(); cells > manyCells && ring.Capacity() <= boundedCapacity {
		ring = ring.Halved()
	}
	snap := journalSnapshot{Interval: rec.Interval, Capacity: ring.Capacity(), Start: rec.Start, End: rec.End,
		Samples: rec.Samples, BootMB: rec.BootMB[:], State: stateOf(rec), Stride: ring.Stride(),
		journalNewest: newest}
	line, err := marshal(map[string]journalSnapshot{"snapshot": snap})
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	at := bytes.LastIndex(line, []byte(`"packed":""`)) + len(`"packed":"`) // only numbers come after it
	out := bufio.NewWriterSize(w, 1<<15)
	_, _ = out.Write(line[:at]) // errors show when it is flushed
	if err := packRing(out, rec.Summaries, ring); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	_, _ = out.Write(append(line[at:], '\n'))
	return out.Flush()
}

// recording rebuilds what a snapshot's line holds, which is in our order.
func (snap *journalSnapshot) recording(gpus int) (*collector.Recording, error) {
	if len(snap.BootMB) != len(collector.Counters()) {
		return nil, fmt.Errorf("snapshot of %d counters", len(snap.BootMB))
	}
	buckets := make([]series.Bucket, len(snap.Buckets))
	for i := range buckets {
		buckets[i] = snap.Buckets[i].bucket()
	}
	snap.Buckets = nil
	ring, err := series.RestoreRing(snap.Capacity, len(snap.Summaries), snap.Stride, snap.Samples, buckets)
	if err != nil {
		return nil, err
	}
	rec := collector.NewRecording(snap.Start, snap.Interval, snap.Capacity)
	rec.Widen(gpus)
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
	if l.Mono < 0 || l.Boot < 0 || slices.ContainsFunc(l.BootMB, func(v float64) bool { return v < 0 }) {
		return errors.New("a time or counter below 0")
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
	var j journalReading
	for line := range lines(data) {
		if err := j.take(line); err != nil {
			return nil, err
		}
	}
	if j.rec == nil {
		return nil, fmt.Errorf("is empty")
	}
	return j.report(), nil
}

// journalReading is what the lines of a journal have told so far.
type journalReading struct {
	head     JournalHead
	rec      *collector.Recording // nil = no head yet
	columns  layout
	damaged  int                // lines
	taken    int64              // samples by the newest line, read or not
	newest   []newestValue      // by column; nil = not told
	signals  []collector.Signal // of lines of their own
	agentCPU float64            // s; 0 = not told
}

// newestValue is a column's newest value that was measured, and when that was, since the
// start.
type newestValue struct {
	value float64
	at    time.Duration
}

// take reads the next line. A damaged one is counted, but for the head: without it
// the others tell nothing.
func (j *journalReading) take(line []byte) error {
	if j.rec == nil {
		if err := json.Unmarshal(line, &j.head); err != nil {
			return fmt.Errorf("line 1: the head is damaged: %w", err)
		}
		if err := checkSchema(j.head.Journal, JournalSchema); err != nil {
			return err
		}
		j.rec, j.columns = j.head.recording(), newLayout(j.head.Columns)
		return nil
	}
	if err := j.add(line); err != nil {
		j.damaged++
	}
	return nil
}

// add takes a sample, a signal or a snapshot.
func (j *journalReading) add(line []byte) error {
	var kind struct {
		Snapshot *journalSnapshot  `json:"snapshot"`
		Signal   *collector.Signal `json:"signal"`
		journalSample
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch {
	case kind.Signal != nil:
		j.signals = withSignal(j.signals, *kind.Signal)
		return nil
	case kind.Snapshot == nil:
		return j.addSample(&kind.journalSample)
	}
	snap := kind.Snapshot
	j.relayout(&snap.State)
	if err := snap.unpack(j.columns.width); err != nil {
		return err
	}
	if err := j.columns.snapshot(snap); err != nil {
		return err
	}
	rec, err := snap.recording(j.columns.gpus)
	if err != nil {
		return err
	}
	j.rec, j.taken = rec, snap.Samples
	j.note(snap.journalNewest.Values, snap.AgentCPU)
	return nil
}

// relayout takes the list of columns that comes with a line.
func (j *journalReading) relayout(s *journalState) {
	if s != nil && s.Columns != nil {
		j.columns = newLayout(s.Columns)
	}
}

func (j *journalReading) addSample(s *journalSample) error {
	j.relayout(s.State)
	if err := j.columns.sample(s); err != nil {
		return err
	}
	taken := s.Index + 1
	j.rec.Widen(j.columns.gpus)
	if err := s.into(j.rec); err != nil {
		return err
	}
	j.taken = taken
	j.note(s.Values, s.AgentCPU)
	return nil
}

// note keeps the newest sample, which is in our order, and the agent's cost.
func (j *journalReading) note(values Numbers, agentCPU float64) {
	if j.newest == nil && len(values) > 0 {
		j.newest = make([]newestValue, collector.MaxColumns)
	}
	for c, v := range values[:min(len(values), len(j.newest))] {
		if !math.IsNaN(v) {
			j.newest[c] = newestValue{v, j.rec.End.Mono - j.rec.Start.Mono}
		}
	}
	if agentCPU > 0 && !math.IsInf(agentCPU, 0) {
		j.agentCPU = agentCPU
	}
}

// report makes the Report of a run whose end is not known.
func (j *journalReading) report() *Report {
	h := j.head
	if j.agentCPU > 0 {
		h.Agent.CPUSeconds = j.agentCPU
	}
	j.rec.Account.Signals = allSignals(j.rec.Account.Signals, j.signals)
	return h.report(j.rec, j.damaged, max(0, j.taken-j.rec.Samples))
}
