package pusher

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// metrics returns the documented metrics of r. The step of a metric is the node's, and its timestamp is the node's end.
// Values that are not finite, and names that MLflow does not accept, are left out and counted.
func metrics(r *reporter.Report) (out []mlflow.Metric, dropped int) {
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		step := nodeStep(name, n)
		end := nodeEnd(r, n).UnixMilli()
		for _, key := range n.Metrics.Names() {
			v := n.Metrics[key]
			if !isFinite(v) || mlflow.CheckKey(key) != nil {
				dropped++
				continue
			}
			out = append(out, mlflow.Metric{Key: key, Value: v, Timestamp: max(0, end), Step: step})
		}
		for _, m := range slices.Concat(phaseMetrics(n), operationMetrics(n), rankMetrics(n), exitMetrics(n)) {
			m.Timestamp, m.Step = max(0, end), step
			out = append(out, m)
		}
	}
	return out, dropped
}

// isFinite reports whether v is neither NaN nor infinite.
func isFinite(v float64) bool { return v-v == 0 }

// nodeEnd returns the time at which a node's numbers became final.
func nodeEnd(r *reporter.Report, n *reporter.Node) time.Time {
	if n.Job != nil && !n.Job.End.IsZero() {
		return n.Job.End.Time
	}

	last := 0.0
	for _, ts := range n.Samples.Column(collector.Timestamp.Key()) {
		if ts > last && ts < 1<<40 {
			last = ts
		}
	}
	switch {
	case last > 0:
		return time.UnixMilli(int64(last * 1000))
	case !r.Run.End.IsZero():
		return r.Run.End.Time
	}
	return time.UnixMilli(0)
}

// phaseMetrics returns the numbers of a node's phases, as phase/NAME/seconds and so on.
func phaseMetrics(n *reporter.Node) []mlflow.Metric {
	var out []mlflow.Metric
	taken := make(keySet)
	numbers := []string{reporter.PhaseSeconds, reporter.MetricJobCores, reporter.MetricJobMemoryPeak}
	for _, p := range n.Phases {
		key := taken.reserve("phase/", p.Name, numbers...)
		for _, number := range numbers {
			v, ok := p.Metrics[number]
			if number == reporter.PhaseSeconds {
				v, ok = p.Seconds, true
			}
			if ok && isFinite(v) {
				out = append(out, mlflow.Metric{Key: key + "/" + number, Value: v})
			}
		}
	}

	return out
}

// maxRanks limits how many ranks of a node are pushed, the lowest first.
const maxRanks = 16

const (
	// MetricExitCode is the exit code of one of several nodes. It is not called exit_code, because a run that the job
	// created may have a metric of that name.
	MetricExitCode = "node_exit_code"

	rankExitCode = "exit_code" // of a rank, in the rank's folder
)

// rankMetrics returns the numbers of a node's ranks, as rank/R/job_cpu_seconds and so on.
func rankMetrics(n *reporter.Node) []mlflow.Metric {
	var out []mlflow.Metric
	ranks := n.RankList()
	for _, r := range ranks[:min(len(ranks), maxRanks)] {
		folder := fmt.Sprintf("rank/%d/", r.Rank)
		for _, name := range []string{reporter.MetricJobCPU, reporter.MetricJobMemoryPeak} {
			if v, ok := r.Metrics[name]; ok && isFinite(v) {
				out = append(out, mlflow.Metric{Key: folder + name, Value: v})
			}
		}
		if r.ExitCode != nil {
			out = append(out, mlflow.Metric{Key: folder + rankExitCode, Value: float64(*r.ExitCode)})
		}
	}

	return out
}

// exitMetrics returns the exit code of n as a metric, if its launch has several nodes.
func exitMetrics(n *reporter.Node) []mlflow.Metric {
	if countNodes(n.Identity) < 2 || n.Job == nil || n.Job.ExitCode == nil {
		return nil
	}
	return []mlflow.Metric{{Key: MetricExitCode, Value: float64(*n.Job.ExitCode)}}
}

// maxName limits the length, in bytes, of the part of a key that comes from the job. A key may be the path of a file on
// the server.
const maxName = 200

// keySet holds the keys made from the job's names (true) and the folders of these keys (false).
type keySet map[string]bool

// reserve reserves the keys of a phase or a series, and returns their prefix. The keys are PREFIX/NUMBER for each of
// numbers, or the prefix itself for the number "". Characters that MLflow does not accept become "_". The same applies
// to slashes and dots that would change the path, or make a key a folder. If the keys are taken, the prefix gets a
// number.
func (n keySet) reserve(folder, name string, numbers ...string) string {
	name = sanitizeName(name)
	key := folder + name
	if mlflow.CheckKey(key) != nil || n.clash(key, false, numbers) {
		key = folder + cmp.Or(strings.NewReplacer("/", "_", ".", "_").Replace(name), "_")
	}

	first := key
	for k := 2; n.clash(key, true, numbers); k++ {
		key = first + "_" + strconv.Itoa(k)
	}
	for _, number := range numbers {
		full := path.Join(key, number)
		n[full] = true
		for dir := path.Dir(full); dir != "."; dir = path.Dir(dir) {
			n[dir] = false
		}
	}

	return key
}

// clash reports whether one of the keys key/NUMBER would be the folder of a reserved key, or would have a reserved key
// as a folder. Servers without a database keep each key in a file, so neither is possible. If same is set, it also
// reports whether one of the keys is reserved.
func (n keySet) clash(key string, same bool, numbers []string) bool {
	for _, number := range numbers {
		full := path.Join(key, number)
		if isKey, there := n[full]; there && (same || !isKey) {
			return true
		}
		for dir := path.Dir(full); dir != "."; dir = path.Dir(dir) {
			if n[dir] {
				return true
			}
		}
	}
	return false
}

// sanitizeName returns at most maxName bytes of name, with "_" for characters that MLflow does not accept in a key.
func sanitizeName(name string) string {
	return text.Prefix(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("_-. /", r) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(name, "_")), maxName)
}
