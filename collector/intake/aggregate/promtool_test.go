//go:build e2e

package aggregate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// promtool returns the path of Prometheus' promtool in .tools or PATH.
func promtool(t *testing.T) string {
	t.Helper()
	if own := testenv.Repository(t, ".tools/prometheus/usr/bin/promtool"); exec.Command(own, "--version").Run() == nil {
		return own
	}
	return testenv.NeedsTool(t, "promtool", "make e2e unpacks Debian's package of Prometheus into .tools")
}

// For 200 random histograms, the quantiles equal Prometheus' quantiles bit for bit.
func TestE2E_Distribution_QuantileEqualsPrometheus(t *testing.T) {
	tool, r := promtool(t), rand.New(rand.NewPCG(7, 8))
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	var series, exprs strings.Builder
	for i := range 200 {
		var d distribution
		bound, count := r.NormFloat64(), 0.0
		for range 1 + r.IntN(12) {
			d.Bounds = append(d.Bounds, bound)
			bound += r.ExpFloat64()
		}
		for j := range len(d.Bounds) + 1 {
			count += float64(r.IntN(4) * r.IntN(20))
			d.Buckets = append(d.Buckets, count)
			le := "+Inf"
			if j < len(d.Bounds) {
				le = float(d.Bounds[j])
			}
			fmt.Fprintf(&series, "    - series: 'h_bucket{n=\"%d\",le=\"%s\"}'\n      values: '%s'\n", i, le, float(count))
		}
		for _, q := range []float64{0.5, 0.9, 0.99} {
			want, ok := d.quantile(q)
			if !ok {
				continue // Prometheus returns NaN, which promtool does not compare
			}
			fmt.Fprintf(&exprs, "    - expr: 'histogram_quantile(%v, h_bucket{n=\"%d\"})'\n      eval_time: 0m\n      exp_samples:\n      - labels: '{n=\"%d\"}'\n        value: %s\n",
				q, i, i, float(want))
		}
	}

	file := filepath.Join(t.TempDir(), "test.yml")
	text := "evaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n" + series.String() + "  promql_expr_test:\n" + exprs.String()
	check.Must(t, os.WriteFile(file, []byte(text), 0o600))
	if out, err := exec.Command(tool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("quantiles differ from Prometheus': %v: %.2000s", err, out)
	}
}
