//go:build e2e

package campaign

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/testenv"
)

var (
	// killsFlag is the total number of trials. If it is set, the table is written.
	killsFlag = flag.Int("kills", 0, "kill so often, and write the table of docs/dev/testing.md; 0 = some, as CI does")
	seedFlag  = flag.Uint64("seed", 0, "repeat the trials of a seed, one with -run TestKills/KIND/NUMBER; 0 = by time")
)

// shortKills is the number of trials in CI.
const shortKills = 120

// A victim is the process that a trial kills.
type victim int

const (
	ofPerfagent victim = iota
	ofJob
	ofBoth
)

// A trial is a run with a kill at a random time.
type trial struct {
	*testing.T
	random *rand.Rand
	victim victim
	after  time.Duration // time of the kill since the start
	sound  bool          // whether there is no kill; such a trial measures the duration of a run
}

// An outcome is the result of a trial.
type outcome struct {
	killed                        bool // whether the victim was alive
	reports, journals, none, torn int  // numbers of files; a torn journal lacks a complete first line
}

// A kind is a kind of trial. It includes the share of this kind in all trials.
type kind struct {
	name   string
	share  float64
	run    func(trial) outcome
	victim []victim // possible victims
}

func kinds() []kind {
	return []kind{
		{"run", 0.40, killRun, []victim{ofPerfagent, ofPerfagent, ofJob, ofBoth}},
		{"ranks", 0.15, killRanks, []victim{ofPerfagent}},
		{"sidecar", 0.15, killSidecar, []victim{ofPerfagent}},
		{"push", 0.15, killPush, []victim{ofPerfagent}},
		{"store", 0.15, killStored, []victim{ofPerfagent, ofPerfagent, ofBoth}},
	}
}

// Whatever process is killed at any time, a surviving job ends normally, all files are correct, no written data is
// lost, and perfagent removes the rest.
func TestKills(t *testing.T) {
	testenv.SkipIfShort(t, "half a minute, to kill a hundred runs")
	all, seed := shortKills, uint64(time.Now().UnixNano())
	if *killsFlag > 0 {
		all = *killsFlag
	}
	if *seedFlag != 0 {
		seed = *seedFlag
	}
	fmt.Printf("seed %d: %d trials\n", seed, all)

	table := new(killTable)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			length := soundLength(t, k)
			for i := range int(k.share * float64(all)) {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					tr := newTrial(t, k, seed, i, length)
					o := k.run(tr)
					table.add(k.name, tr.victim, o)
					if t.Failed() {
						t.Logf("to repeat it: -seed %d -run 'TestKills/%s/%d$'; victim %d after %v of %v: %+v",
							seed, k.name, i, tr.victim, tr.after, length, o)
					}
				})
			}
		})
	}
	if *killsFlag > 0 && !t.Failed() {
		writeTable(t, "kills", table.String())
	}
	fmt.Print(table)
}

// soundLength returns the duration of a run without a kill: the third longest duration of several runs.
func soundLength(t *testing.T, k kind) time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range 7 {
		begin := time.Now()
		tr := newTrial(t, k, 0, i, 0)
		tr.sound = true
		k.run(tr)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[4]
}

// newTrial returns a trial with random choices that depend only on the seed and the number of the trial.
func newTrial(t *testing.T, k kind, seed uint64, number int, length time.Duration) trial {
	h := fnv.New64a()
	fmt.Fprint(h, k.name, number)
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	tr := trial{T: t, random: r, victim: k.victim[r.IntN(len(k.victim))]}
	tr.after = time.Duration(r.Float64() * float64(length))
	return tr
}

// A killTable counts outcomes by kind and victim.
type killTable struct {
	mu   sync.Mutex
	rows map[string]map[victim]*killRow
}

type killRow struct {
	trials, killed int
	sum            outcome
}

func (k *killTable) add(kind string, v victim, o outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rows == nil {
		k.rows = make(map[string]map[victim]*killRow)
	}
	if k.rows[kind] == nil {
		k.rows[kind] = make(map[victim]*killRow)
	}
	r := k.rows[kind][v]
	if r == nil {
		r = new(killRow)
		k.rows[kind][v] = r
	}
	r.add(&killRow{1, 0, o})
	if o.killed {
		r.killed++
	}
}

func (r *killRow) add(o *killRow) {
	r.trials += o.trials
	r.killed += o.killed
	r.sum.reports += o.sum.reports
	r.sum.journals += o.sum.journals
	r.sum.none += o.sum.none
	r.sum.torn += o.sum.torn
}

// String returns the table as Markdown.
func (k *killTable) String() string {
	var out strings.Builder
	out.WriteString("| what ran | who was killed | trials | killed alive | reports | journals | " +
		"journals without a line | nothing yet |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	var all killRow
	row := func(kind, who string, r *killRow) {
		fmt.Fprintf(&out, "| %s | %s | %d | %d | %d | %d | %d | %d |\n", kind, who, r.trials, r.killed, r.sum.reports,
			r.sum.journals, r.sum.torn, r.sum.none)
	}
	for _, kind := range kinds() {
		for v, who := range []string{"perfagent", "the job", "both"} {
			if r := k.rows[kind.name][victim(v)]; r != nil {
				row(kind.name, who, r)
				all.add(r)
			}
		}
	}
	row("all", "", &all)
	return out.String()
}
