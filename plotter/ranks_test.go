package plotter

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// Each rank has a row. The first rank that failed is marked in its row and on the heat maps.
func TestPage_HasRowForEachRankAndMarksFirstFailure(t *testing.T) {
	page := strings.ReplaceAll(pageOf(t, plottertest.WithVerdict(t, reportertest.KilledRank())), "\u00a0", " ")
	for part, want := range map[string]int{
		`data-rank="`: 8, `<tr data-rank="3" class="failed first odd">`: 1, ` first odd">`: 1, `class="ring"`: 2,
		`<tr id="n0" class="odd">`: 1, "rank 3 failed first": 2, `data-heatmap="rank_cpu"`: 1, `data-heatmap="rank_memory"`: 1,
		"rank 3 on node1 was killed at the limit of 8 GiB after 18.8 s.": 1,
	} {
		check.Equal(t, strings.Count(page, part), want, "number of %s on the page", part)
	}
	if at := regexp.MustCompile(`ring" style="left:94\.00%;top:43\.75%"`); !at.MatchString(page) {
		t.Error("the first failure is not marked at 18.8 of 20 s in the fourth of eight rows")
	}
}

// A page of a report without ranks does not mention ranks.
func TestPage_OmitsRanksIfThereAreNone(t *testing.T) {
	for name, r := range map[string]*reporter.Report{
		"one": plottertest.Minute(0), "many": plottertest.Few(), "one rank alone": reportertest.Ranks(1, 1, 20),
	} {
		wantNone(t, "page of "+name, pageOf(t, plottertest.WithVerdict(t, r)), "data-ranks>", "data-rank=")
	}
}

// The page is the same if the run's verdict is known only when the page is written.
func TestPage_AcceptsVerdictAfterNodes(t *testing.T) {
	r := plottertest.WithVerdict(t, reportertest.KilledRank())
	p := NewPage(PageOptions{})
	for _, name := range []string{"1", "0"} {
		unknown := r.Run
		unknown.Verdict = nil
		p.Add(&unknown, name, r.Nodes[name])
	}
	if written(t, p, &r.Run) != pageOf(t, r) {
		t.Error("page with a late verdict differs from the page of the whole report")
	}
}

// A page with very many ranks stays small, and contains the first rank that failed.
func TestPage_StaysSmallWithManyRanks(t *testing.T) {
	const nodes, perNode = 200, 64
	r := reportertest.Ranks(2, perNode, 20)
	p, run := NewPage(PageOptions{}), r.Run
	run.Verdict = &reporter.Verdict{Evidence: map[string]any{"node": 77.0, "rank": 63.0}}
	began := time.Now()
	for i := range nodes {
		n := *r.Nodes["0"]
		if i == 77 {
			failed := reportertest.Ranks(1, perNode, 20)
			reportertest.EndRank(failed, 63, time.Second, 3, "", &reporter.Verdict{Evidence: map[string]any{}})
			n = *failed.Nodes["0"]
		}
		p.Add(&run, fmt.Sprint(i), &n)
	}
	page := written(t, p, &run)
	t.Logf("%d ranks: %d bytes in %v", nodes*perNode, len(page), time.Since(began))
	if rows := strings.Count(page, "data-rank="); rows > maxRanks || rows < maxRanks-nodes {
		t.Errorf("page has %d rows of ranks, want %d to %d", rows, maxRanks-nodes, maxRanks)
	}
	wantNone(t, "page", page, `data-heatmap="rank`)
	wantParts(t, "page", page, "44 more: 44 succeeded")
	check.Equal(t, strings.Count(page, `<tr data-rank="63" class="failed first odd">`), 1,
		"number of rows of rank 63 as the first failure")
}

// Whatever the ranks contain, the page can be made, and their content does not become an element.
func TestPage_TreatsHostileRanksAsText(t *testing.T) {
	const evil = `"><script>alert(1)</script>`
	r := reportertest.KilledRank()
	for _, n := range r.Nodes {
		n.Identity.NodeName, n.Samples.Columns[0][0] = evil, -1e300
		n.Ranks[evil] = nil
		n.Ranks["-7"] = &reporter.Rank{Rank: -7, Signal: evil, Incomplete: evil}
		for _, rank := range n.Ranks {
			if rank == nil {
				continue
			}
			rank.Signal, rank.End.Time = evil, rank.End.AddDate(9000, 0, 0)
			for key, band := range rank.Envelope {
				band.Mean, band.Max = append(band.Mean, 1e300, -1e300), nil
				rank.Envelope[key] = band
			}
			rank.Metrics = reporter.Values{reporter.MetricJobCores: 1e300}
		}
	}
	r.Run.Verdict = &reporter.Verdict{Text: evil, Evidence: map[string]any{"rank": 1e300, "node": 0.0, "host": evil}}
	wantNone(t, "page", pageOf(t, r), "<script>alert")
	r.Run.Verdict.Evidence = map[string]any{"rank": 3.0, "node": 1.5}
	pageOf(t, r)
}
