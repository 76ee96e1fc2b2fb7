package pusher

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// phaseMetrics returns the numbers of a node's phases that are pushed, as phase/NAME/seconds and so on.
// Names that MLflow takes for one get a number.
func phaseMetrics(n *reporter.Node) []mlflow.Metric {
	var out []mlflow.Metric
	taken := make(map[string]bool)
	for _, p := range n.Phases {
		key := phaseKey(p.Name)
		for k := 2; taken[key]; k++ {
			key = phaseKey(p.Name) + "_" + strconv.Itoa(k)
		}
		taken[key] = true

		for _, number := range []string{reporter.PhaseSeconds, reporter.MetricJobCores, reporter.MetricJobMemoryPeak} {
			v, ok := p.Metrics[number]
			if number == reporter.PhaseSeconds {
				v, ok = p.Seconds, true
			}
			if ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
				out = append(out, mlflow.Metric{Key: key + "/" + number, Value: v})
			}
		}
	}

	return out
}

// phaseKey returns the beginning of a phase's keys. What MLflow does not take in a key becomes "_", and so
// do slashes and dots where they would make another path.
func phaseKey(name string) string {
	key := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("_-. /", r) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(name, "_"))
	if mlflow.CheckKey("phase/"+key+"/x") != nil {
		key = strings.NewReplacer("/", "_", ".", "_").Replace(key)
	}

	return "phase/" + key
}
