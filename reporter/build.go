package reporter

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

// Input is the input of New.
type Input struct {
	Run      Run // ID, Command, Tags, ExitCode, Signal; also the times if a job was wrapped
	Node     int
	Identity *Identity // nil if only the host is known
	// Rank is the rank of the job, as decimal text; "" if the job is the only one on its node.
	Rank      string
	Recording *collector.Recording
	Job       *Job // nil for a sidecar
	Agent     Agent
	// Missing lists losses that only the caller can report, such as a journal that could not be written.
	Missing []Missing
	// Push is the state of the push; the zero value means off.
	Push PushState
}

// New returns the Report of one node, without a verdict or findings. Programs use diagnosis.New, which adds them.
func New(in Input) *Report {
	rec := in.Recording
	run := in.Run
	if run.Start.IsZero() {
		run.Start = Time{rec.Start.Wall}
	}
	if run.End.IsZero() {
		run.WallSeconds = max(0, (rec.End.Mono - rec.Start.Mono).Seconds())
		run.End = Time{rec.Start.Wall.Add(max(0, rec.End.Boot-rec.Start.Boot))}
	}

	job := withAccount(in.Job, rec)
	f := newFacts(rec, run.WallSeconds, job)
	if span, ok := hostSpanOf(rec, 0); in.Rank != "" && ok && span.Start.After(rec.Start.Wall) {
		f.hostSeconds = span.seconds()
	}
	if in.Job == nil && run.Command != nil {
		f.jobErr = newMissingError(JobGoesOn)
	}

	metrics, absent := f.compute()
	node := &Node{
		Host:      new(rec.Host),
		Identity:  in.Identity,
		Sampling:  newSampling(rec),
		Agent:     &in.Agent,
		Job:       job,
		Limits:    newLimits(rec),
		GPUs:      newGPUs(rec),
		Mounts:    newMounts(rec),
		Metrics:   metrics,
		Summaries: newSummaries(rec),
		Marks:     newMarks(rec),
		Phases:    newPhases(rec, run.End),
		Processes: newProcesses(rec, run.End),
		Missing:   append([]Missing{}, slices.Concat(in.Missing, sourceMissing(rec, job), absent)...), // never nil
		Push:      &Push{MLflow: in.Push},
	}
	if job == nil {
		node.MemoryAtPeak = KnownParts(rec.Account.MemoryAtPeak, rec.Account.Source)
	}
	if in.Push.State == "" {
		node.Push.MLflow.State = PushOff
	}

	node.addDeaths(rec, run.End)
	if rec.Operations != nil {
		aggregator := rec.Operations.CopyAggregator()
		node.Operations, node.Transfers = new(aggregator.Operations(run.End.Time)), aggregator.Transfers()
	}

	node.Samples, node.Envelope = NewSeries(rec, 0, rec.Ring.Len())
	if in.Rank != "" {
		node.asRank(rec, &run, in.Rank)
	}
	return &Report{Schema: Schema, Run: run, Nodes: map[string]*Node{strconv.Itoa(in.Node): node}}
}

func newFacts(rec *collector.Recording, wall float64, job *Job) *facts {
	f := &facts{
		summary:          rec.Summaries,
		wall:             wall,
		cpus:             rec.Host.CPUs,
		boot:             rec.SinceBoot,
		job:              job,
		largestProcessMB: largestProcessMB(rec),
		jobErr:           newMissingError(NoJob),
		account:          &rec.Account,
		gpus:             rec.GPUs,
		length:           (rec.End.Mono - rec.Start.Mono).Seconds(),
	}
	f.whyMissing = func(c collector.Column) error { return whyMissing(rec, c) }
	return f
}

// whyMissing returns the reason why column c was never measured.
func whyMissing(rec *collector.Recording, c collector.Column) error {
	for _, f := range rec.Failures {
		if c.AffectedBy(f) {
			return &missingError{Unreadable, f.Why}
		}
	}

	for _, g := range rec.Missing {
		if g.What == c.Key() || g.Code == host.RootOnly && g.What == c.Info().Source {
			return &missingError{cmp.Or(g.Code, Unreadable), g.Why}
		}
	}

	length := time.Duration(0)
	if rec.Samples > 0 {
		length = rec.End.Mono - rec.Start.Mono
	}

	row := c.Info()
	_, _, gpu := c.GPU()
	group := row.Requires.Has(collector.RequiresGroup)
	switch {
	case row.Requires.Has(collector.RequiresTicks) && length < collector.FirstWindow:
		return &missingError{TooShort, fmt.Sprintf("%v is too short: the kernel counts CPU time in ticks of 10 ms, "+
			"and less than %v is not measured",
			length.Round(time.Microsecond), collector.FirstWindow)}
	case row.Requires.Has(collector.RequiresTicks) && rec.Samples > 0:
		return newMissingError(CPUStill)
	case row.Requires.Has(collector.RequiresDevice) && !gpu:
		return errNoDevice
	case row.Requires.Has(collector.RequiresJob) && rec.Account.Source == "":
		return newMissingError(NoJob)
	case group && rec.Account.Group == "":
		return newMissingError(NoCgroup)
	case row.Requires.Has(collector.RequiresMemoryLimit) && !rec.Account.Limits.MemoryMB.Known():
		return newMissingError(NoMemoryLimit)
	case row.Requires.Has(collector.RequiresQuota) && !rec.Account.Limits.CPUQuota.Known():
		return newMissingError(NoCPUQuota)
	case row.Requires.Has(collector.RequiresQuota) && rec.Account.Periods == 0:
		return newMissingError(NoQuotaPeriod)
	case row.Requires.Has(collector.RequiresOwnGroup) && rec.Account.Source == host.JobFromTree:
		return newMissingError(SharedCgroup)
	case group && (rec.Samples > 0 || !row.Requires.Has(collector.RequiresOwnGroup)):
		return newMissingError(NoCgroupCounter)
	case row.Requires.Has(collector.RequiresJob) && rec.Samples > 0:
		return newMissingError(JobOver)
	}

	return newMissingError(NoSample)
}

// sourceMissing lists the sources that failed, with the number of failures, and what else limits the data, such as
// clock events.
func sourceMissing(rec *collector.Recording, job *Job) []Missing {
	var out []Missing
	for _, f := range rec.Failures {
		readings := readingsOf(f.Source, rec)
		out = append(out, Missing{
			What: f.Source, Code: Unreadable, Why: f.Why + ofReadings(f.Count, readings),
			Count: f.Count, Total: readings,
		})
	}

	for kind := range host.NumDeviceKinds {
		source := kind.Source()
		if late, ok := rec.LateStarts[source]; ok {
			why := fmt.Sprintf("counted only from %v after the start: it could not be read earlier",
				late.Round(time.Millisecond))
			out = append(out, Missing{What: source, Code: CountedLate, Why: why})
		}
	}

	if left := leftGroup(job, rec); left != "" {
		out = append(out, Missing{What: host.SourceJob, Code: JobOutside, Why: left})
	}
	if rec.GPUError != "" {
		out = append(out, Missing{What: host.SourceGPU, Code: gpu.Silent, Why: rec.GPUError})
	}

	out = append(out, rec.Missing...)
	for _, e := range rec.ClockEvents {
		code, why := ClockStep, "the wall clock was stepped by %v near %s: all times follow the clock as it was at the start"
		if e.Suspend {
			code, why = Suspend, "the machine was suspended for %v until %s: nothing was measured during that time"
		}
		why = fmt.Sprintf(why, e.By.Round(time.Millisecond), e.At.UTC().Format(time.RFC3339))
		out = append(out, Missing{What: "clock", Code: code, Why: why})
	}
	return slices.Concat(out, memoryMissing(rec), processesMissing(rec, job), deathsMissing(rec), marksMissing(rec))
}

// readingsOf returns the number of Readings in which the source was read. The first Reading, the baseline, contains
// only counters, and the job's counters only if the job was already running.
func readingsOf(source string, rec *collector.Recording) int64 {
	switch source {
	case host.SourceMemory, host.SourceDisk, host.SourceLoad:
		return rec.Samples
	case host.SourceJob:
		if !rec.Account.Running {
			return rec.Samples
		}
	}
	return rec.Samples + 1
}

func newSampling(rec *collector.Recording) *Sampling {
	s := &Sampling{
		Start:             Time{rec.Start.Wall},
		IntervalSeconds:   rec.Interval.Seconds(),
		Samples:           rec.Samples,
		MissedTicks:       rec.MissedTicks,
		LongestGapSeconds: rec.LongestGap.Seconds(),
		Stride:            rec.Ring.Stride(),
		MaxLength:         rec.Ring.Capacity(),
		Reader:            rec.ReaderName,
		DiskPaths:         rec.DiskPaths,
		Disks:             append([]string{}, rec.Disks...),
		NICs:              append([]string{}, rec.NICs...),
	}
	for _, e := range rec.ClockEvents {
		event := ClockEvent{Time{e.At}, e.By.Seconds()}
		if e.Suspend {
			s.Suspends = append(s.Suspends, event)
		} else {
			s.ClockSteps = append(s.ClockSteps, event)
		}
	}
	return s
}

func newSummaries(rec *collector.Recording) map[string]Summary {
	out := make(map[string]Summary)
	for c, s := range rec.Summaries {
		column := collector.Column(c)
		if column == collector.Timestamp || s.Count() == 0 {
			continue
		}
		q := Summary{}
		q.Min, _ = s.Min()
		q.Mean, _ = s.Mean()
		q.Max, _ = s.Max()
		for share, into := range map[float64]**float64{0.50: &q.P50, 0.95: &q.P95, 0.99: &q.P99} {
			if v, ok := s.Quantile(share); ok {
				*into = &v
			}
		}
		out[column.Key()] = q
	}

	return out
}

// NewSeries copies the buckets from…to−1 of the ring into the report's columns.
func NewSeries(rec *collector.Recording, from, to int) (Samples, Envelope) {
	n := to - from
	samples := Samples{}
	envelope := make(Envelope, rec.NumColumns())
	for c := range rec.NumColumns() {
		// Some columns are in every report. The others are included only if they were measured, so that a node without
		// GPUs or control groups has no lists of nulls.
		if !c.Info().Always && rec.Summaries[c].Count() == 0 {
			continue
		}
		values := make([]float64, n)
		band := Band{make(Numbers, n), make(Numbers, n), make(Numbers, n)}
		for i := range n {
			b := rec.Ring.Bucket(from + i)
			values[i] = b.Values[c]
			band.Min[i], band.Mean[i], band.Max[i] = envelopePoint(c, b.Stats[c])
		}
		envelope[c.Key()] = band
		if !c.Info().EnvelopeOnly {
			samples.Keys, samples.Columns = append(samples.Keys, c.Key()), append(samples.Columns, values)
		}
	}

	addTimelines(envelope, rec.Operations, from, to)
	return samples, envelope
}

// addTimelines adds the timelines of the job's operations to envelope, from the buckets from…to−1.
func addTimelines(envelope Envelope, operations *collector.Operations, from, to int) {
	if operations == nil || operations.Timelines == nil {
		return
	}
	for place, key := range operations.Keys {
		var band Band
		for i := from; i < to; i++ {
			s := operations.Timelines.Bucket(i).Stats[place]
			least, greatest := text.RoundSignificant(s.Min), text.RoundSignificant(s.Max)
			band.Min, band.Max = append(band.Min, least), append(band.Max, greatest)
			band.Mean = append(band.Mean, clamped(text.RoundSignificant(s.Mean()), least, greatest))
		}
		envelope[key] = band
	}
}

// envelopePoint returns the minimum, mean and maximum of s without excess digits: means and rates are rounded to 6
// decimals, and times to 3. The extremes of percentages and counters stay exact, so the rounded mean is clamped to
// them.
func envelopePoint(c collector.Column, s series.Stat) (least, mean, greatest float64) {
	least, mean, greatest = s.Min, s.Mean(), s.Max
	decimals := 6
	switch {
	case math.IsNaN(mean):
		return math.NaN(), math.NaN(), math.NaN()
	case c.Info().EnvelopeOnly:
		least, greatest = text.Round(least, decimals), text.Round(greatest, decimals)
	case c == collector.Timestamp:
		decimals = 3
	}
	return least, clamped(text.Round(mean, decimals), least, greatest), greatest
}
