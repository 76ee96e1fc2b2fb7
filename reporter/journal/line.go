package journal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// A sampleLine is the line of a sample.
type sampleLine struct {
	Values  reporter.Numbers `json:"sample"`            // by position among the columns
	Weight  float64          `json:"weight"`            // of columns that are not in Weights
	Weights map[int]float64  `json:"weights,omitempty"` // by position
	Index   int64            `json:"i"`                 // samples before this one
	Mono    time.Duration    `json:"mono_ns"`           // since the start
	Boot    time.Duration    `json:"boot_ns"`
	BootMB  reporter.Numbers `json:"boot_mb"`
	// AgentCPU is the CPU time that the agent has used so far, in seconds; 0 = unknown.
	AgentCPU float64 `json:"agent_cpu_s,omitzero"`
	// JobCPU is the CPU time of the job since the previous sample, in seconds. Only lines after the job's first mark
	// contain it, because only phases need it.
	JobCPU float64 `json:"job_cpu_s,omitzero"`
	// MemoryHeld is the sample's MemoryStale. Only lines after the job's first mark contain it.
	MemoryHeld bool            `json:"memory_held,omitzero"`
	Marks      *marksLine      `json:"said,omitempty"`
	Timelines  *timelinePoints `json:"work,omitempty"`
	State      *state          `json:"state,omitempty"`
	// Processes is the table of processes, in lines in which it was due: see appendTable.
	Processes []process.Process `json:"processes,omitempty"`
	// Deaths are the deaths so far. List has only those since the previous line.
	Deaths *process.Deaths `json:"deaths,omitempty"`
}

// line returns the line of a sample: the values and, rarely, the state. It is written by hand because it
// runs for every sample.
func (j *Journal) line(s *collector.Sample, rec *collector.Recording) []byte {
	out := make([]byte, 0, 512)
	columns := columnsOf(rec)
	out = text.AppendFloats(append(out, `{"sample":`...), pick(s.Values[:], columns))
	common := s.Weights[collector.Timestamp]
	out = text.AppendFloat(append(out, `,"weight":`...), common)
	sep := `,"weights":{`
	for place, c := range columns {
		w := s.Weights[c]
		if w == common {
			continue
		}
		out = append(out, sep...)
		out = append(strconv.AppendInt(append(out, '"'), int64(place), 10), `":`...)
		out = text.AppendFloat(out, w)
		sep = ","
	}

	if sep == "," {
		out = append(out, '}')
	}

	out = strconv.AppendInt(append(out, `,"i":`...), rec.Samples-1, 10)
	out = strconv.AppendInt(append(out, `,"mono_ns":`...), int64(rec.End.Mono-rec.Start.Mono), 10)
	out = strconv.AppendInt(append(out, `,"boot_ns":`...), int64(rec.End.Boot-rec.Start.Boot), 10)
	out = text.AppendFloats(append(out, `,"boot_mb":`...), bootOf(rec, columns))
	if cpu := j.ownCPU(); cpu > 0 {
		out = text.AppendFloat(append(out, `,"agent_cpu_s":`...), cpu)
	}
	out = j.appendMarks(out, s, rec)
	out = j.appendTimelines(out, rec.Operations)
	out = j.appendTable(out, rec)
	out = j.appendDeaths(out, rec)
	if key := stateKeyOf(rec); key != j.lastStateKey {
		j.lastStateKey = key
		state := stateOf(rec)
		out = appendMember(out, `,"state":`, &state)
	}
	return append(out, '}', '\n')
}

// appendMember appends the member name with the given value to line, unless the value cannot be encoded.
func appendMember(line []byte, name string, value any) []byte {
	data, err := text.JSON(value)
	if err != nil {
		return line
	}
	return append(append(line, name...), data...)
}

// ownCPU returns the CPU time that the agent has used so far, in seconds rounded to microseconds, or 0
// if it is unknown.
func (j *Journal) ownCPU() float64 {
	if j.agentCPUSeconds == nil {
		return 0
	}
	return text.Round(j.agentCPUSeconds(), 6)
}

// applyTo adds the sample, which must be in collector's order, to a Recording.
func (l *sampleLine) applyTo(rec *collector.Recording, columns layout) error {
	if l.Index < rec.Samples || l.Weight < 0 || math.IsInf(l.Weight, 0) || l.JobCPU < 0 {
		return fmt.Errorf("sample %d after sample %d", l.Index, rec.Samples)
	}
	if l.Mono < 0 || l.Boot < 0 || slices.ContainsFunc(l.BootMB, func(v float64) bool { return v < 0 }) {
		return errors.New("a time or counter below 0")
	}
	if err := columns.boot(rec, l.BootMB); err != nil {
		return err
	}

	var s collector.Sample
	copy(s.Values[:], l.Values)
	for c := range s.Weights {
		s.Weights[c] = l.Weight
	}
	for c, w := range l.Weights {
		s.Weights[c] = w
	}
	s.JobCPUSeconds, s.MemoryStale = l.JobCPU, l.MemoryHeld
	s.Sock, s.HugeTLB = math.NaN(), math.NaN()
	if l.Marks != nil {
		if err := l.Marks.applyTo(rec, s.Values[collector.Timestamp]); err != nil {
			return err
		}
	}
	if err := errors.Join(l.Timelines.applyTo(rec), checkTable(l.Processes), addDeaths(rec, l.Deaths)); err != nil {
		return err
	}
	rec.Add(&s)
	if l.Processes != nil {
		rec.Processes = l.Processes
	}
	if l.State != nil {
		l.State.applyTo(rec)
	}
	rec.End = rec.Start
	rec.End.Mono += l.Mono
	rec.End.Boot += l.Boot
	return nil
}

// The table of processes is written only if it has changed, and less often the larger it is, because a journal that
// grows faster is rewritten more often.
const (
	tableEvery = 3 * time.Second // for a small table
	tableBytes = 1 << 10         // every tableBytes of the table add another tableEvery
	tableLate  = 15 * time.Second
)

// A writtenTable is the table of processes in the last line that had one.
type writtenTable struct {
	list []process.Process
	next time.Duration // earliest time for the next table, since the start
}

// appendTable adds the table of processes to the line of a sample if it is due.
func (j *Journal) appendTable(out []byte, rec *collector.Recording) []byte {
	at := rec.End.Mono - rec.Start.Mono
	if len(rec.Processes) == 0 || at < j.table.next || slices.Equal(rec.Processes, j.table.list) {
		return out
	}
	line := appendMember(out, `,"processes":`, rec.Processes)
	rest := tableEvery * time.Duration(tableBytes+len(line)-len(out)) / tableBytes
	j.table = writtenTable{list: rec.Processes, next: at + min(rest, tableLate)}
	return line
}

// checkTable rejects values that only damage can produce.
func checkTable(list []process.Process) error {
	for _, p := range list {
		if p.PID < 1 || p.PPID < 0 || p.Start < 0 || p.End < 0 || p.Threads < 0 ||
			p.CPUSeconds < 0 || p.EndedChildren < 0 || p.PeakMemory < 0 {
			return errors.New("a process without an ID, or with a number below 0")
		}
	}
	return nil
}
