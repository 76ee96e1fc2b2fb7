package cgroup

import (
	"math"
	"os"
	"testing"
)

// Reclaim comes from the group with the limit, except memory.high, which may come from any ancestor.
func TestGroup_ReclaimIsOfGroupWithLimit(t *testing.T) {
	t.Parallel()
	page := float64(os.Getpagesize())
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	check := func(name string, tree groupTree, files map[string]string, want Reclaim) {
		t.Helper()
		o := tree.write(t)
		for file, text := range files {
			groupWrite(t, groupFile(o, file), text)
		}
		g := groupFind(t, o)
		g.Limits()
		got := g.Reclaim()
		if !same(got.Swap, want.Swap) || !same(got.Refaults, want.Refaults) || !same(got.High, want.High) || !same(got.HighEvents, want.HighEvents) {
			t.Errorf("%s: Reclaim = %+v, want %+v", name, got, want)
		}
	}

	check("v2", groupV2(), map[string]string{
		"kube/pod/memory.stat":         "anon 1\nfile 2\nworkingset_refault_anon 5\nworkingset_refault_file 7\n",
		"kube/pod/memory.swap.current": "4096\n",
		"kube/pod/memory.high":         "max\n",
		"kube/memory.high":             "1000000\n",
		"kube/memory.events":           "low 0\nhigh 12\nmax 0\n",
		"kube/pod/app/memory.high":     "2000000\n",
		"kube/pod/app/memory.events":   "low 0\nhigh 3\nmax 0\noom_kill 0\n",
	}, Reclaim{Swap: 4096, Refaults: 12 * page, High: 1000000, HighEvents: 12})
	check("v2, no such keys", groupV2(), nil, Reclaim{Swap: nan, Refaults: nan, High: nan, HighEvents: nan})
	check("v2 before Linux 5.9", groupV2(), map[string]string{"kube/pod/memory.stat": "anon 1\nworkingset_refault 9\n"},
		Reclaim{Swap: nan, Refaults: 9 * page, High: nan, HighEvents: nan})
	check("v1", groupV1(), map[string]string{
		"memory/job/task/memory.stat": "cache 1\nhierarchical_memory_limit 104857600\ntotal_swap 8192\ntotal_workingset_refault_file 3\n",
	}, Reclaim{Swap: nan, Refaults: nan, High: nan, HighEvents: nan}) // the group above has the limit
	check("v1, of the group with the limit", groupV1(), map[string]string{
		"memory/job/memory.stat": "cache 1\ntotal_swap 8192\ntotal_workingset_refault_file 3\ntotal_workingset_refault_anon 0\n",
	}, Reclaim{Swap: 8192, Refaults: 3 * page, High: nan, HighEvents: nan})
}
