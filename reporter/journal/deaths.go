package journal

import (
	"errors"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/process"
)

// appendDeaths adds the deaths since the last line to the line of a sample: the List has only the new ones.
func (j *Journal) appendDeaths(out []byte, rec *collector.Recording) []byte {
	now, before := rec.Deaths, j.deaths
	if now == nil || now == before || now.Quiet+now.Dropped == 0 && len(now.List) == 0 && now.Missing == "" {
		return out
	}
	j.deaths = now
	line := *now
	if before != nil && len(before.List) > 0 {
		written := slices.Index(now.List, before.List[len(before.List)-1])
		line.List = now.List[written+1:]
	}
	return appendMember(out, `,"deaths":`, &line)
}

// addDeaths adds the deaths of a line to a Recording.
func addDeaths(rec *collector.Recording, line *process.Deaths) error {
	if line == nil {
		return nil
	}
	if err := checkDeaths(line); err != nil {
		return err
	}
	if rec.Deaths == nil {
		rec.Deaths = &process.Deaths{}
	}
	d := rec.Deaths
	for _, one := range line.List {
		if !slices.Contains(d.List, one) { // the last one written may have been dropped
			d.Add(one)
		}
	}
	d.Last, d.Quiet, d.Dropped, d.Missing = line.Last, line.Quiet, line.Dropped, line.Missing
	return nil
}

// checkDeaths rejects values that only damage can produce.
func checkDeaths(d *process.Deaths) error {
	if d == nil {
		return nil
	}
	damaged := func(e process.Death) bool {
		return e.PID < 1 || e.PPID < 0 || e.Start < 0 || e.End < 0 || e.Struck < 0 || e.ExitCode < 0 || e.How == "" ||
			e.CPUSeconds < 0 || e.PeakMemory < 0
	}
	if slices.ContainsFunc(d.List, damaged) || d.Last != nil && damaged(*d.Last) || d.Quiet < 0 || d.Dropped < 0 {
		return errors.New("a death without an ID or a source, or with a number below 0")
	}
	return nil
}
