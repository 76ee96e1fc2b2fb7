package journal

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// A state holds the fields of a Recording other than the ring and the summaries.
type state struct {
	Start    host.Instant             `json:"start,omitzero"`
	Host     host.Info                `json:"host"`
	Missed   int64                    `json:"missed_ticks"`
	Gap      time.Duration            `json:"longest_gap_ns"`
	Clock    []collector.ClockEvent   `json:"clock,omitempty"`
	Failures []collector.Failure      `json:"failures,omitempty"`
	Reader   string                   `json:"reader,omitempty"`
	Paths    []string                 `json:"disk_paths,omitempty"`
	Disks    []string                 `json:"disks,omitempty"`
	NICs     []string                 `json:"nics,omitempty"`
	Late     map[string]time.Duration `json:"late,omitempty"`
	// Columns and Counters replace the head's lists from this line on, because devices were found.
	Columns  []string           `json:"columns,omitempty"`
	Counters []string           `json:"counters,omitempty"`
	Account  *collector.Account `json:"account,omitempty"`
	Mounts   []collector.Mount  `json:"mounts,omitempty"`
	GPUs     []collector.GPU    `json:"gpus,omitempty"`
	Gaps     []series.Missing   `json:"gaps,omitempty"`
	// GPUTrouble is the reason why there are no new GPU numbers.
	GPUTrouble string `json:"gpu_trouble,omitempty"`
}

// A stateKey shows whether the state has changed since the last line. It holds only the lengths of lists, because lists
// only grow.
type stateKey struct {
	host                                    host.Info
	missed, failures                        int64
	gap                                     time.Duration
	clock, distinct, disks, nics, lateCount int
	columns, gaps, account, signals         int
	stopped                                 bool
}

func stateKeyOf(rec *collector.Recording) stateKey {
	k := stateKey{host: rec.Host, missed: rec.MissedTicks, gap: rec.LongestGap, clock: len(rec.ClockEvents),
		distinct: len(rec.Failures), disks: len(rec.Disks), nics: len(rec.NICs), lateCount: len(rec.LateStarts)}
	for _, f := range rec.Failures {
		k.failures += f.Count
	}
	k.columns, k.gaps, k.signals = len(columnsOf(rec)), len(rec.Missing), len(rec.Account.Signals)
	k.stopped = rec.Account.Stop != nil
	if rec.Account.Source != "" || len(rec.GPUs)+len(rec.Mounts) > 0 {
		k.account = int((rec.End.Mono - rec.Start.Mono) / accountEvery)
	}
	return k
}

func stateOf(rec *collector.Recording) state {
	s := state{
		Start: rec.Start, Host: rec.Host, Missed: rec.MissedTicks, Gap: rec.LongestGap, Clock: rec.ClockEvents,
		Failures: rec.Failures, Reader: rec.ReaderName, Paths: rec.DiskPaths, Disks: rec.Disks, NICs: rec.NICs,
		Late:    rec.LateStarts,
		Account: &rec.Account, Mounts: listed(rec.Mounts), GPUs: rec.GPUs, Gaps: rec.Missing, GPUTrouble: rec.GPUError,
	}
	if columns := columnsOf(rec); slices.ContainsFunc(columns, collector.Column.OfDevice) {
		s.Columns, s.Counters = keysOf(columns), keysOf(countersOf(columns))
	}
	return s
}

// listed returns the mounts, each with the operations that a report lists.
func listed(mounts []collector.Mount) []collector.Mount {
	out := slices.Clone(mounts)
	for i := range out {
		out[i].Ops = mounts[i].Slowest()
	}
	return out
}

// UnmarshalJSON rejects values that only damage can produce, such as a sign instead of a digit. Only clock steps and
// instants can be negative.
func (s *state) UnmarshalJSON(data []byte) error {
	type plain state
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
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

// belowZero reports whether any number in a JSON value is negative.
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

// accountEvery is how often the account of the job is written: more often than the 5 s promised for samples.
const accountEvery = 4 * time.Second

func (s state) applyTo(rec *collector.Recording) {
	if !s.Start.Wall.IsZero() {
		rec.Start = s.Start
	}
	rec.Host, rec.MissedTicks, rec.LongestGap, rec.ClockEvents = s.Host, s.Missed, s.Gap, s.Clock
	if s.Reader == host.Auto || s.Reader == host.Gopsutil { // otherwise it is damaged
		rec.ReaderName = s.Reader
	}
	rec.Failures, rec.DiskPaths, rec.Disks, rec.NICs, rec.LateStarts = s.Failures, s.Paths, s.Disks, s.NICs, s.Late
	if s.Account != nil {
		rec.Account = *s.Account
	}
	rec.Mounts = s.Mounts[:min(len(s.Mounts), collector.MaxMounts)]
	rec.GPUs = s.GPUs[:min(len(s.GPUs), collector.MaxGPUs)]
	rec.Missing, rec.GPUError = s.Gaps, s.GPUTrouble
}
