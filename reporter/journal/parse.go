package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// Parse restores a Report from a journal: everything up to its last complete line. Damaged lines are
// skipped and counted; they never hide other lines.
func Parse(data []byte) (*reporter.Report, error) {
	var j parser
	for line := range lines(data) {
		if err := j.take(line); err != nil {
			return nil, err
		}
	}
	if j.rec == nil {
		return nil, errors.New("is empty")
	}
	return j.report(), nil
}

// A parser holds the data from the lines of a journal that it has read.
type parser struct {
	head       Head
	rec        *collector.Recording // nil before the head
	columns    layout
	damaged    int                   // lines
	taken      int64                 // samples up to the newest line, including lost ones
	newest     []newestValue         // by column; nil = unknown
	signals    []collector.Signal    // from signal lines
	agentCPU   float64               // seconds; 0 = unknown
	aggregator *aggregate.Aggregator // of operations; nil = not recorded, or unknown so far
}

// A newestValue is the newest measured value of a column, with its time since the start.
type newestValue struct {
	value float64
	at    time.Duration
}

// take reads the next line. It counts a damaged line; a damaged head is an error, because the other lines
// have no meaning without it.
func (j *parser) take(line []byte) error {
	if j.rec == nil {
		if err := json.Unmarshal(line, &j.head); err != nil {
			return fmt.Errorf("line 1: the head is damaged: %w", err)
		}
		if err := reporter.CheckSchema(j.head.Journal, Schema); err != nil {
			return err
		}
		if j.head.Columns == nil {
			return errors.New("line 1: the head names no columns")
		}
		j.rec = collector.NewRecording(host.Instant{Wall: j.head.Run.Start.Time}, j.head.Interval, j.head.MaxLength)
		j.columns = newLayout(j.head.Columns, j.head.Counters)
		return nil
	}
	if err := j.add(line); err != nil {
		j.damaged++
	}
	return nil
}

// add adds a sample, a signal, a snapshot or an Aggregator.
func (j *parser) add(line []byte) error {
	var kind struct {
		Snapshot *snapshot         `json:"snapshot"`
		Signal   *collector.Signal `json:"signal"`
		operationsLine
		sampleLine
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}

	switch {
	case kind.Signal != nil:
		j.signals = withSignal(j.signals, *kind.Signal)
		return nil
	case kind.Operations != nil:
		aggregator, err := aggregate.Restore(kind.Operations)
		if err == nil {
			j.aggregator = aggregator
		}
		return err
	case kind.Snapshot == nil:
		return j.addSample(&kind.sampleLine)
	}

	snap := kind.Snapshot
	j.relayout(&snap.State)
	rec, err := snap.recording(j.columns)
	if err != nil {
		return err
	}

	j.rec, j.taken = rec, snap.Samples
	var newest []float64
	if values := snap.newestSample.Values; len(values) == len(j.columns.columns) { // otherwise it is damaged
		newest = arranged(j.columns, values, math.NaN())
	}

	j.note(newest, snap.AgentCPU)
	return nil
}

// relayout applies the list of columns in s, if there is one.
func (j *parser) relayout(s *state) {
	if s != nil && s.Columns != nil {
		j.columns = newLayout(s.Columns, s.Counters)
	}
}

func (j *parser) addSample(s *sampleLine) error {
	j.relayout(s.State)
	if err := j.columns.sample(s); err != nil {
		return err
	}
	taken := s.Index + 1
	j.rec.EnsureColumn(j.columns.last)
	if err := s.applyTo(j.rec, j.columns); err != nil {
		return err
	}
	j.taken = taken
	j.note(s.Values, s.AgentCPU)
	return nil
}

// note records the newest sample, which must be in collector's order, and the agent's CPU time.
func (j *parser) note(values []float64, agentCPU float64) {
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

// setOperations sets the newest Aggregator of operations in the Recording.
func (j *parser) setOperations() {
	if j.aggregator == nil && !j.head.Operations {
		return
	}
	if j.rec.Operations == nil {
		j.rec.Operations = &collector.Operations{Aggregator: aggregate.New(aggregate.Options{}, j.rec.Start.Wall)}
	}
	if j.aggregator != nil {
		j.rec.Operations.Aggregator = j.aggregator
	}
}

// lines yields the non-empty lines of a file without their line ends.
func lines(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(data) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

// report returns the Report of a run with an unknown end.
func (j *parser) report() *reporter.Report {
	h, rec := j.head, j.rec
	if j.agentCPU > 0 {
		h.Agent.CPUSeconds = j.agentCPU
	}
	rec.Account.Signals = allSignals(rec.Account.Signals, j.signals)
	j.setOperations()

	run, elapsed := h.Run, rec.End.Mono-rec.Start.Mono
	run.Start = reporter.Time{Time: rec.Start.Wall}
	run.End = reporter.Time{Time: rec.Start.Wall.Add(rec.End.Boot - rec.Start.Boot)}
	run.WallSeconds = elapsed.Seconds()
	run.Incomplete = fmt.Sprintf("from the journal of a run that is still going on or was cut off: "+
		"known up to %v after the start", elapsed.Round(time.Millisecond))

	in := reporter.Input{
		Run: run, Node: h.Node, Identity: h.Identity, Rank: h.Rank,
		Recording: rec, Agent: h.Agent, Push: h.Push,
	}
	missing := func(code reporter.Code, words string, n int64) {
		if n > 0 {
			in.Missing = append(in.Missing, reporter.Missing{
				What: "journal", Code: code, Why: fmt.Sprintf("%s: %d", words, n), Count: n,
			})
		}
	}
	missing(reporter.JournalDamaged, "damaged lines, left out", int64(j.damaged))
	missing(reporter.SamplesLost, "samples that are lost", j.taken-rec.Samples)
	return diagnosis.New(diagnosis.Input{Input: in})
}
