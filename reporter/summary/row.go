package summary

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// RowSchema is the format of a Row. A change that breaks its readers gets a higher number.
const RowSchema = "perfagent.row/1"

// Row is a node of a run as one flat object, for tables of many runs. Sizes are in MiB. Unknown values are absent.
type Row struct {
	Schema      string        `json:"schema"`
	RunID       string        `json:"run_id"`
	Launch      string        `json:"launch,omitempty"` // the scheduler's name for the launch
	Node        int           `json:"node"`
	Ranks       int           `json:"ranks"` // 1 unless a launcher started several ranks
	Host        string        `json:"host,omitempty"`
	Command     string        `json:"command,omitempty"` // arguments separated by spaces
	Start       reporter.Time `json:"start,omitzero"`
	End         reporter.Time `json:"end,omitzero"`
	WallSeconds *float64      `json:"wall_seconds,omitempty"`
	State       string        `json:"state"` // StateEnded or StateIncomplete
	ExitCode    *int          `json:"exit_code,omitempty"`
	Signal      string        `json:"signal,omitempty"`
	Cause       string        `json:"cause,omitempty"` // of the verdict

	CPUsAllowed    *float64 `json:"cpus_allowed,omitempty"`
	CPUSeconds     *float64 `json:"cpu_seconds,omitempty"`
	AvgCPUCores    *float64 `json:"avg_cpu_cores,omitempty"`
	MaxCPUCores    *float64 `json:"max_cpu_cores,omitempty"`
	MemoryLimitMB  *float64 `json:"memory_limit_mb,omitempty"`
	PeakMemoryMB   *float64 `json:"peak_memory_mb,omitempty"` // of the largest process, for a job without a sample
	MemoryKind     string   `json:"memory_kind,omitempty"`
	ReadMB         *float64 `json:"read_mb,omitempty"`
	WriteMB        *float64 `json:"write_mb,omitempty"`
	GPUs           *int     `json:"gpus,omitempty"`                    // visible to the job
	GPUMemoryMB    *float64 `json:"gpu_memory_mb,omitempty"`           // peak of the fullest GPU
	GPUUtilization *float64 `json:"avg_gpu_utilization_pct,omitempty"` // mean of all GPUs

	Scheduler string            `json:"scheduler,omitempty"`
	JobID     string            `json:"job_id,omitempty"`
	Report    string            `json:"report,omitempty"` // path of the report file
	Tags      map[string]string `json:",inline"`          // keys are "tag." and the tag's name
}

// Rows returns a row for each node of r, lowest first. path is the path of the report file.
func Rows(r *reporter.Report, path string) []Row {
	var out []Row
	for _, name := range r.NodeNames() {
		out = append(out, newRow(r, name, path))
	}
	return out
}

func newRow(r *reporter.Report, name, path string) Row {
	n, row := r.Nodes[name], Row{
		Schema: RowSchema, RunID: r.Run.ID, State: StateEnded, Command: strings.Join(r.Run.Command, " "), Ranks: 1,
		Start: r.Run.Start, End: r.Run.End, ExitCode: r.Run.ExitCode, Signal: r.Run.Signal,
		WallSeconds: finiteOrNil(r.Run.WallSeconds, r.Run.WallSeconds > 0), Report: absolute(path),
		Tags: make(map[string]string, len(r.Run.Tags)),
	}
	row.Node, _ = strconv.Atoi(name) // a report's nodes are named by their index
	for tag, value := range r.Run.Tags {
		row.Tags["tag."+tag] = value
	}
	if r.Run.Incomplete != "" {
		row.State, row.End = StateIncomplete, reporter.Time{}
	}
	if len(r.Nodes) > 1 && (n == nil || n.Job == nil) { // the run may have the end of another node
		row.ExitCode, row.Signal = nil, ""
	}
	if n == nil {
		return row
	}

	if len(n.Command) > 0 {
		row.Command = strings.Join(n.Command, " ")
	}
	if n.Host != nil {
		row.Host = n.Host.Hostname
		row.CPUsAllowed = finiteOrNil(float64(n.Host.CPUs), n.Host.CPUs > 0)
	}
	if id := n.Identity; id != nil {
		row.Launch, row.Scheduler, row.JobID = id.Launch, id.Scheduler, id.JobID
	}
	if v := n.Verdict; v != nil {
		row.Cause = v.Cause
	}
	row.Ranks = max(1, len(n.Ranks))
	row.noteUse(n)
	return row
}

// noteUse sets the fields on the limits and the usage of the job on n.
func (row *Row) noteUse(n *reporter.Node) {
	metric := func(name string) *float64 { return finiteOrNil(n.Metric(name), true) }
	row.CPUSeconds, row.AvgCPUCores = metric(reporter.MetricJobCPU), metric(reporter.MetricJobCores)
	row.MaxCPUCores, row.PeakMemoryMB = metric(reporter.MetricJobCoresPeak), metric(reporter.MetricJobMemoryPeak)
	row.ReadMB, row.WriteMB = metric(reporter.MetricJobRead), metric(reporter.MetricJobWritten)
	if j := n.Job; j != nil {
		row.Start, row.ExitCode, row.Signal, row.MemoryKind = j.Start, j.ExitCode, j.Signal, j.MemoryKind
		if row.State == StateEnded {
			row.End = j.End
		}
		row.WallSeconds = cmp.Or(metric(reporter.MetricWall), row.WallSeconds)
		if row.PeakMemoryMB == nil { // a bound may be perfagent's own memory
			row.PeakMemoryMB = finiteOrNil(j.MaxRSSMB, j.MaxRSSMB > 0 && !j.MaxRSSAtMost)
		}
	}
	if l := n.Limits; l != nil {
		row.MemoryLimitMB = finiteOrNil(float64(l.MemoryMB), l.MemoryMB > 0)
		if l.CPUs > 0 {
			row.CPUsAllowed = finiteOrNil(l.CPUs, true)
		}
	}

	ofGPUs := func(m reporter.Missing) bool { return m.What == host.SourceGPU }
	if len(n.GPUs) > 0 || n.Origin != reporter.OriginPerfPy && !slices.ContainsFunc(n.Missing, ofGPUs) {
		row.GPUs = new(int)
	}
	most, busy, measured := math.NaN(), 0.0, 0.0
	for i, g := range n.GPUs[:min(len(n.GPUs), collector.MaxGPUs)] {
		if !g.OfJob {
			continue
		}
		*row.GPUs++
		if v := n.GPUMetric(reporter.MetricGPUMemoryPeak, i); v >= 0 {
			most = greatest(most, v)
		}
		if v := n.GPUMetric(reporter.MetricGPUUtilization, i); v >= 0 {
			busy, measured = busy+v, measured+1
		}
	}
	row.GPUMemoryMB, row.GPUUtilization = finiteOrNil(most, true), finiteOrNil(busy/measured, true)
}

// finiteOrNil returns v with three decimals. It returns nil if v is unknown (there is false) or not finite, which JSON
// cannot express.
func finiteOrNil(v float64, there bool) *float64 {
	if !there || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return new(text.Round(v, 3))
}
