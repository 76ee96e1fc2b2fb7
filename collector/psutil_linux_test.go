package collector

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// percentScript prints psutil's CPU percentages for the window between two trees.
const percentScript = `
import json, sys
import psutil
psutil.PROCFS_PATH = sys.argv[1]
psutil.cpu_percent(percpu=True)
psutil.PROCFS_PATH = sys.argv[2]
print(json.dumps(psutil.cpu_percent(percpu=True)))
`

// The test has thousands of CPUs with windows of all lengths. Many are at a rounding tie, where the last bit of
// psutil's sums decides.
func TestBusyPercent_EqualsPsutilToTheDigit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var trees [2]strings.Builder
	for i := range trees {
		trees[i].WriteString("cpu  0 0 0 0 0 0 0 0 0 0\n")
	}
	const cpus = 4000
	for n := range cpus {
		top := uint64(1) << (1 + rng.IntN(12))
		fmt.Fprintf(&trees[0], "cpu%d", n)
		fmt.Fprintf(&trees[1], "cpu%d", n)
		for range 10 {
			before := rng.Uint64N(1 << (1 + rng.IntN(34)))
			after := before + rng.Uint64N(top)
			if rng.IntN(20) == 0 {
				after = before - rng.Uint64N(1+min(before, 50))
			}
			fmt.Fprintf(&trees[0], " %d", before)
			fmt.Fprintf(&trees[1], " %d", after)
		}
		trees[0].WriteByte('\n')
		trees[1].WriteByte('\n')
	}

	var dirs []string
	var readings [][]host.CPUTimes
	for i := range trees {
		dir := t.TempDir()
		write(t, dir, "stat", []byte(trees[i].String()))
		dirs = append(dirs, dir)
		readings = append(readings, openTree(t, dir, dir).Read().CPU)
	}

	var want []float64
	collectortest.RunPython(t, &want, percentScript, dirs...)
	if len(want) != cpus || len(readings[0]) != cpus {
		t.Fatalf("psutil lists %d CPUs and the Reader %d, want %d", len(want), len(readings[0]), cpus)
	}
	wrong := 0
	for i := range want {
		got, ok := busyPercent(readings[0][i], readings[1][i])
		// In these random windows, guest can exceed user. The results of psutil are then not between 0 and 100, which no
		// kernel can cause.
		if want[i] < 0 || want[i] > 100 {
			continue
		}
		if !ok {
			got = 0
		}
		if got != want[i] {
			wrong++
			t.Errorf("cpu%d: %v %% busy, want psutil's %v: %+v, then %+v", i, got, want[i], readings[0][i], readings[1][i])
		}
		if wrong > 5 {
			t.Fatal("more than 5 CPUs differ from psutil")
		}
	}
}
