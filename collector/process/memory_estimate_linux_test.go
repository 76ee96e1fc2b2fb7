package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A sum of resident sizes counts shared pages several times, so the lower bound is only the largest of them, or the sum
// of the measured PSS.
func TestTree_LowerBoundCountsSharedPagesOnce(t *testing.T) {
	kib := float64(os.Getpagesize() >> 10)
	for name, c := range map[string]struct {
		processes []treeLine
		unread    int // how many of the last processes have no readable smaps_rollup
		memory    float64
		proven    float64 // KiB
	}{
		"PSS":                              {[]treeLine{{pages: 50, pssKB: 400}, {pages: 50, pssKB: 300}}, 0, 700, 700},
		"pages shared with other programs": {[]treeLine{{pages: 500, pssKB: 400}}, 0, 400, 500 * kib},
		"resident sizes":                   {[]treeLine{{pages: 600}, {pages: 500}, {pages: 400}}, 3, 1500 * kib, 600 * kib},
		"mostly PSS":                       {[]treeLine{{pages: 50, pssKB: 3000}, {pages: 50, pssKB: 5000}, {pages: 400}}, 1, 8000 + 400*kib, 8000},
	} {
		p := treeFixture(t)
		for i, l := range c.processes {
			l.pid, l.parent, l.start = 200+i, 100, 60
			p.put(l)
			if path := filepath.Join(p.dir, "20"+string(rune('0'+i)), "smaps_rollup"); i >= len(c.processes)-c.unread {
				p.remove(path)
				must(p.tb, os.Mkdir(path, 0o755))
			}
		}
		tree := p.tree(nil)
		for range 2 { // the second Read does not measure memory
			u := treeRead(t, tree)
			if u.Memory != c.memory*1024 || u.MemoryLowerBound != c.proven*1024 || !u.MemoryUpToDate {
				t.Errorf("%s: memory %v KiB, want %v; lower bound %v KiB, want %v; up to date %v, want true",
					name, u.Memory/1024, c.memory, u.MemoryLowerBound/1024, c.proven, u.MemoryUpToDate)
			}
		}
	}
}

// Measured memory is up to date as long as nothing changes. If resident sizes rise while the measurement is deferred,
// Memory is raised to the lower bound that they imply; if they fall, Memory may be too high.
func TestTree_RaisesDeferredMemoryToLowerBound(t *testing.T) {
	page := float64(os.Getpagesize())
	many := func(pages ...int) (out []treeLine) {
		for i, n := range pages {
			out = append(out, treeLine{pid: 200 + i, parent: 100, start: 60, pages: n, pssKB: 4000})
		}
		return out
	}
	for name, c := range map[string]struct {
		before, after []treeLine
		memory        float64
		holds         bool
	}{
		"unchanged":                {many(2000), many(2000), 4000 << 10, true},
		"one process grew":         {many(2000), many(3000), 4000<<10 + 1000*page, true},
		"one process shrank":       {many(2000), many(1000), 4000 << 10, false},
		"one of two grew":          {many(2000, 2000), many(2000, 9000), 9000 * page, true},
		"one of two grew a little": {many(100, 2000), many(1000, 2000), 8000 << 10, true},
		"two became four":          {many(1000, 1000), many(1000, 1000, 1000, 1000), 8000 << 10, true},
		"one of two shrank":        {many(1000, 1000), many(1000, 100), 8000 << 10, false},
	} {
		p := treeFixture(t)
		for _, l := range c.before {
			p.put(l)
		}
		tree, clock := p.timed(time.Millisecond)
		treeRead(t, tree)
		tree.due.memory = clock.at.mono + time.Hour
		for _, l := range c.after {
			p.put(l)
		}
		clock.at.mono += time.Second
		if u := treeRead(t, tree); u.Skipped || u.MemoryFresh || u.Memory != c.memory || u.MemoryUpToDate != c.holds {
			t.Errorf("%s: memory %v, want %v; up to date %v, want %v: %+v",
				name, u.Memory, c.memory, u.MemoryUpToDate, c.holds, u)
		}
	}
}
