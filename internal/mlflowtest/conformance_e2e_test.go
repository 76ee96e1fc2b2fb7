//go:build e2e

package mlflowtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

func TestE2E_Fake_IsAsStrictAsTheRealServers(t *testing.T) {
	rows := slices.Concat(experimentRows, runRows(), batchRows(), pointRows, tagRows, historyRows, searchRows,
		artifactRows, otherRows)
	names := []string{"fake", "3.x", "2.x"}
	three, two := Options{Version: 3}, Options{Version: 2}
	startAtOnce(t, three, two)
	clients := []*client{
		newClient(t, Serve(t, NewFake()).URL),
		newClient(t, pool.Get(t, three).URL),
		newClient(t, pool.Get(t, two).URL),
	}
	outcomes := make([][]outcome, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for _, r := range rows {
				outcomes[i] = append(outcomes[i], c.perform(r))
			}
		})
	}
	wg.Wait()
	for i, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			compareRow(t, r, names, []outcome{outcomes[0][i], outcomes[1][i], outcomes[2][i]})
		})
	}
	t.Logf("%d rows", len(rows))
}

// startAtOnce starts servers of the pool concurrently, because starting a server takes seconds.
func startAtOnce(t *testing.T, servers ...Options) {
	t.Helper()
	for _, o := range servers {
		python(t, o.Version) // may skip the test
	}
	t.Run("start", func(t *testing.T) {
		for _, o := range servers {
			t.Run(fmt.Sprint(o.Version), func(t *testing.T) {
				t.Parallel()
				pool.Get(t, o)
			})
		}
	})
}

// compareRow checks the outcomes of one row.
func compareRow(t *testing.T, r row, names []string, got []outcome) {
	if got[0].answer != r.want {
		t.Errorf("%s responded %q, want %q: %s", names[0], got[0].answer, r.want, got[0].effect)
	}
	for i, other := range []string{r.real3, r.real2} {
		o := got[i+1]
		switch {
		case r.cut && o.answer == "0":
		case other == "" && o.answer != r.want:
			t.Errorf("%s responded %q, want %q: %s", names[i+1], o.answer, r.want, o.effect)
		case other == "" && o.effect != got[0].effect:
			t.Errorf("effects differ: %s:\n%s\n%s:\n%s", names[0], got[0].effect, names[i+1], o.effect)
		case other != "" && r.why == "":
			t.Errorf("%s responded %q, the fake %q: the row needs a reason in why", names[i+1], other, r.want)
		case other != "" && o.answer != other:
			t.Errorf("%s responded %q, want %q: %s", names[i+1], o.answer, other, o.effect)
		}
	}
	if got[1].answer != got[2].answer {
		t.Logf("3.x responded %q, 2.x responded %q", got[1].answer, got[2].answer)
	} else if got[1].effect != got[2].effect {
		t.Logf("3.x:\n%s\n2.x:\n%s", got[1].effect, got[2].effect)
	}
}
