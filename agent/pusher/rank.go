package pusher

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// maxRanks is how many ranks of a node are pushed: the lowest.
const maxRanks = 16

const (
	// MetricExitCode is the exit code of a node of several. The job's own run may have a metric that is called
	// exit_code.
	MetricExitCode = "node_exit_code"

	rankExitCode = "exit_code" // of a rank, in its folder
)

// rankMetrics returns the numbers of a node's ranks that are pushed, as rank/R/job_cpu_seconds and so on.
func rankMetrics(n *reporter.Node) []mlflow.Metric {
	var out []mlflow.Metric
	ranks := n.RankList()
	for _, r := range ranks[:min(len(ranks), maxRanks)] {
		folder := fmt.Sprintf("rank/%d/", r.Rank)
		for _, name := range []string{reporter.MetricJobCPU, reporter.MetricJobMemoryPeak} {
			if v, ok := r.Metrics[name]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
				out = append(out, mlflow.Metric{Key: folder + name, Value: v})
			}
		}
		if r.ExitCode != nil {
			out = append(out, mlflow.Metric{Key: folder + rankExitCode, Value: float64(*r.ExitCode)})
		}
	}

	return out
}

// exitMetrics returns the exit code of a node that is one of several.
func exitMetrics(n *reporter.Node) []mlflow.Metric {
	if countNodes(n.Identity) < 2 || n.Job == nil || n.Job.ExitCode == nil {
		return nil
	}
	return []mlflow.Metric{{Key: MetricExitCode, Value: float64(*n.Job.ExitCode)}}
}

// compareRanks adds the points of a node of several ranks. The series of the host were sent live by the ranks that
// measured it, each from its own start; so a window is there if the run has a point of its time. Those of the job
// are sent when all ranks have ended.
func (p *Plan) compareRanks(ctx context.Context, s nodeSeries) error {
	for _, part := range []part{hostOnly, jobOnly} {
		s.part = part
		all := s.windows()
		var there []int64
		if part == hostOnly || len(p.recordedSteps()) > 0 {
			var err error
			if there, err = p.times(ctx, all); err != nil {
				return err
			}
		}

		before := s.from
		for _, w := range all {
			i, _ := slices.BinarySearch(there, before+1)
			if i < len(there) && there[i] <= w.end {
				p.Known += len(w.points)
			} else {
				p.windows = append(p.windows, w)
			}
			before = w.end
		}
	}

	return nil
}

// times returns the times of the points that the run has in the series by which windows are recognized, in order.
func (p *Plan) times(ctx context.Context, all []window) ([]int64, error) {
	if p.Run == nil {
		return nil, nil
	}

	var out []int64
	for _, key := range anchors(all) {
		if _, ok := p.Run.Metrics[key]; !ok && !p.sentLive {
			continue
		}
		points, err := p.client.MetricHistory(ctx, p.Run.ID, key)
		if err != nil {
			return nil, err
		}
		for _, m := range points {
			out = append(out, m.Timestamp)
		}
	}
	slices.Sort(out)

	return slices.Compact(out), nil
}
