package host

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector/process"
)

// maxTasks is the number of processes that are kept of a report on an out-of-memory kill, and maxLargest the number of
// the job's processes among them that are returned.
const (
	maxTasks   = 32
	maxLargest = 5
)

// A relatedTask is a Task with its relation to the job.
type relatedTask struct {
	Task
	relation process.Relation
}

// relate looks up the relations of tasks that are unknown.
func relate(tasks []relatedTask, relationOf func(pid int) process.Relation) {
	for i := range tasks {
		if t := &tasks[i]; t.relation == process.UnknownRelation {
			t.relation = relationOf(t.PID)
		}
	}
}

// A taskTable holds the largest processes of the table that the kernel writes before an out-of-memory kill, unless
// vm.oom_dump_tasks is 0. Each line is a record of /dev/kmsg (mm/oom_kill.c, dump_task):
//
//	[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
//	[   5245]     0  5245    16529    16230    15808      422         0   176128        0          1000 tail
//
// The columns differ between kernels.
type taskTable struct {
	tgid, rss, name int // columns after the brackets; name is 0 outside of a table
	tasks           []relatedTask
}

// add adds a record of /dev/kmsg that may belong to the table.
func (t *taskTable) add(record []byte) {
	line, _, _ := kernelMessage(record)
	first, rest, found := strings.Cut(line, "]")
	bracketed, opened := strings.CutPrefix(first, "[")
	if !found || !opened {
		return
	}
	fields, number := strings.Fields(rest), strings.TrimSpace(bracketed)
	if number == "pid" {
		*t = taskTable{slices.Index(fields, "tgid"), slices.Index(fields, "rss"), slices.Index(fields, "name"), nil}
		return
	}

	if t.name < 1 || t.tgid < 0 || t.rss < 0 || max(t.tgid, t.rss) > t.name || len(fields) < t.name {
		return
	}
	_, errThread := strconv.ParseUint(number, 10, 31) // it may be a thread's
	pid, errPID := strconv.ParseUint(fields[t.tgid], 10, 31)
	pages, errPages := strconv.ParseUint(fields[t.rss], 10, 50)
	if errThread != nil || errPID != nil || errPages != nil || pid == 0 {
		return
	}
	size := float64(pages) * float64(os.Getpagesize()) / mib
	t.tasks = append(t.tasks, relatedTask{Task: Task{int(pid), strings.Join(fields[t.name:], " "), size}})
	slices.SortStableFunc(t.tasks, func(a, b relatedTask) int { return cmp.Compare(b.RSSMB, a.RSSMB) })
	t.tasks = t.tasks[:min(len(t.tasks), maxTasks)]
}

// LargestTasks returns the job's largest processes, largest first, at the newest kill for which the kernel's log lists
// any. It returns nil if there was none, or if the log cannot be read.
func (r *Reader) LargestTasks() (own []Task) {
	l := r.log
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.samePIDs() {
		return nil
	}
	for _, f := range slices.Backward(l.tracked) {
		for _, t := range f.tasks {
			if (t.relation == process.InJob || t.PID == f.PID && f.InJob) && len(own) < maxLargest {
				own = append(own, t.Task)
			}
		}
		if own != nil {
			break
		}
	}
	return own
}
