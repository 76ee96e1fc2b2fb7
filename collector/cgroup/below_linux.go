package cgroup

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// maxGroups is the largest number of groups that walk visits.
const maxGroups = 4096

// walk calls visit for the group dir and all groups below it. It skips groups that are removed during the walk.
func walk(dir string, visit func(dir string) error) error {
	todo, seen := []string{dir}, 0
	for len(todo) > 0 {
		d := todo[0]
		todo = todo[1:]
		if seen++; seen > maxGroups {
			return fmt.Errorf("more than %d groups below %s", maxGroups, dir)
		}
		if err := visit(d); err != nil && (d == dir || !isGone(err)) {
			return err
		}
		todo = append(todo, children(d)...)
	}
	return nil
}

// children returns the groups directly below the group dir. A kernel directory has two links plus one per subdirectory,
// so directories with two links need not be listed.
func children(dir string) []string {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil || st.Nlink == 2 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}

	var below []string
	for _, e := range entries {
		if e.IsDir() {
			below = append(below, filepath.Join(dir, e.Name()))
		}
	}
	return below
}

// countCostRatio is the pause after a count divided by the duration of the count. Counting then takes at most a 300th
// of a core, or more if the pause is limited to maxCountAge.
const countCostRatio = 300

// maxCountAge is the maximum age of a count, and so the longest pause after a count, even after a count that took long
// because it had to wait for a CPU.
const maxCountAge = 2 * time.Second

// A group with at most fewProcesses processes is counted again within fewProcessesInterval, because a group that was
// empty a moment ago may have processes now.
const (
	fewProcesses         = 64
	fewProcessesInterval = 100 * time.Millisecond
)

// pauseAfter returns the pause after a count with the duration took.
func pauseAfter(took time.Duration) time.Duration { return min(countCostRatio*took, maxCountAge) }

// A taskCounter counts the processes and threads of a group, but not in every sample. The kernel sorts the cgroup.procs
// of a big group at each read, and every group below has another file to read.
type taskCounter struct {
	next               time.Time
	processes, threads float64
	zombies            float64 // tasks in pids.current that have ended but were not waited for yet
}

// read sets c.Processes and c.Threads. It counts again if the pause after the last count is over; otherwise it uses the
// last count.
func (s *taskCounter) read(g *Group, c *Counters) {
	start := time.Now()
	if g.threadsFile != "" {
		c.Threads = c.number(&g.r, g.threadsFile)
	}

	if start.After(s.next) {
		if s.processes = g.countLines(c, "cgroup.procs"); g.threadsFile == "" {
			s.threads = g.countLines(c, g.threadList())
		} else {
			s.countZombies(g, c.Threads)
		}
		pause := pauseAfter(time.Since(start))
		if s.processes <= fewProcesses {
			pause = min(pause, fewProcessesInterval)
		}
		s.next = start.Add(pause)
	}

	c.Processes = s.processes
	if g.threadsFile != "" {
		c.Threads -= s.zombies
	} else {
		c.Threads = s.threads
	}
}

// countZombies counts the ended tasks that pids.current still includes but the task lists omit. before is the value of
// pids.current before the lists were read. countZombies reads pids.current again and uses the lower value, because
// tasks may have started or ended between the reads.
func (s *taskCounter) countZombies(g *Group, before float64) {
	s.zombies = 0
	if !(before > s.processes) {
		return
	}
	var none Counters // errors were already recorded
	if alive := g.countLines(&none, g.threadList()); alive > 0 {
		s.zombies = max(0, min(before, none.number(&g.r, g.threadsFile))-alive)
	}
}

// threadList returns the name of the file that lists the primary group's threads.
func (g *Group) threadList() string {
	if g.primary[0].v2 {
		return "cgroup.threads"
	}
	return "tasks"
}

// countLines counts the lines of the file name in the primary group and all groups below it.
func (g *Group) countLines(c *Counters, name string) float64 {
	lines := 0
	err := walk(g.primary[0].dir(), func(dir string) error {
		path := filepath.Join(dir, name)
		// Open the file each time: in v1, an open file that is read at least once a second always returns the same list.
		data, err := g.r.ReadOnce(path, maxTable)
		if err != nil {
			return err
		}
		if line, _, _ := bytes.Cut(data, []byte{'\n'}); len(line) > 0 {
			if _, ok := procfile.ParseCount(line); !ok {
				return malformed(path, data)
			}
		}
		lines += bytes.Count(data, []byte{'\n'})
		return nil
	})
	if err != nil {
		c.fail(name, err)
		return nan
	}
	return float64(lines)
}

// descendantOOMs sums the OOM kills of the groups below a v1 group. In v1, no group counts the kills of other groups.
type descendantOOMs struct {
	next time.Time
	seen map[string]float64 // last count by directory; includes removed groups
	sum  float64
}

// read sums the kills again if the pause after the last sum is over; otherwise it returns the last sum. A group with an
// unreadable file keeps its last count.
func (f *descendantOOMs) read(g *Group) float64 {
	start := time.Now()
	if !start.After(f.next) {
		return f.sum
	}

	top := g.memory.dir()
	_ = walk(top, func(dir string) error {
		if dir == top {
			return nil
		}
		counts, err := readOOM(g.r.ReadOnce, filepath.Join(dir, "memory.oom_control"))
		if err != nil {
			return nil
		}
		v := counts.kills
		last, known := f.seen[dir]
		if !known && len(f.seen) >= maxGroups {
			return nil
		}
		if f.seen == nil {
			f.seen = map[string]float64{}
		}
		f.seen[dir] = v
		if v < last { // the group was removed and created again
			last = 0
		}
		f.sum += v - last
		return nil
	})

	f.next = start.Add(pauseAfter(time.Since(start)))
	return f.sum
}

// oomCounts are the OOM counters of memory.events or memory.oom_control; NaN means unknown.
type oomCounts struct{ kills, ooms, under float64 }

// readOOM reads memory.events or memory.oom_control. The kernel does not count kills before Linux 4.13.
func readOOM(read func(string, int) ([]byte, error), path string) (oomCounts, error) {
	data, err := read(path, maxFile)
	if err != nil {
		return oomCounts{nan, nan, nan}, err
	}
	v := [3]float64{nan, nan, nan}
	parseKeys(data, []string{"oom_kill", "oom", "under_oom"}, v[:])
	if math.IsNaN(v[0]) && math.IsNaN(v[2]) {
		err = malformed(path, data)
	}
	return oomCounts{v[0], v[1], v[2]}, err
}
