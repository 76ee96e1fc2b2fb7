package host

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
)

// tableOf returns the table of records with the given messages of the kernel.
func tableOf(lines ...string) (t taskTable) {
	for _, line := range lines {
		t.add([]byte("6,568,34361325065,-;" + line + "\n"))
	}
	return t
}

// The heads are from Linux 6.18, 5.10 and 4.9.
func TestTaskTable_UnderstandsAllKernels(t *testing.T) {
	const head = "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name"
	page := float64(os.Getpagesize()) / mib
	for name, c := range map[string]struct {
		lines []string
		want  []Task
	}{
		"6.18": {[]string{"Tasks state (memory values in pages):", head,
			"[   5239]     0  5239   319305     3591      352     3239         0   143360        0             0 perfagent",
			"tail invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
			"[   5245]     0  5245    16529    16230    15808      422         0   176128        0          1000 a [b]  c"},
			[]Task{{5245, "a [b] c", 16230 * page}, {5239, "perfagent", 3591 * page}}},
		"5.10": {[]string{"[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
			"[  77]  1000  70  4769  4461  86016  0  0 tail"}, []Task{{70, "tail", 4461 * page}}},
		"4.9": {[]string{"[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name",
			"[ 77]  1000  77  4769  4461  12  3  0  -17 tail"}, []Task{{77, "tail", 4461 * page}}},
		"an empty name":     {[]string{head, "[ 7] 0 7 1 2 1 1 0 86016 0 0 "}, []Task{{7, "", 2 * page}}},
		"without a head":    {[]string{"[ 7] 0 7 1 2 1 1 0 86016 0 0 tail"}, nil},
		"head without rss":  {[]string{"[ pid ] tgid name", "[ 7] 7 tail"}, nil},
		"name before rss":   {[]string{"[ pid ] tgid name rss", "[ 7] 7 tail 5"}, nil},
		"a second head":     {[]string{head, "[ 7] 0 7 1 2 1 1 0 86016 0 0 x", head}, nil},
		"damaged":           {[]string{head, "[ 7] 0 7 1", "[ 7] 0 -7 1 2 1 1 0 8 0 0 x", "[ 7] 0 7 1 99999999999999999999 1 1 0 8 0 0 x", "[", "]", "[]"}, nil},
		"of other programs": {[]string{head, "drm: [7] x", "[drm] 0 7 1 2 1 1 0 86016 0 0 x y"}, nil},
	} {
		table := tableOf(c.lines...)
		var got []Task
		for _, r := range table.tasks {
			got = append(got, r.Task)
		}
		check.True(t, fmt.Sprint(got) == fmt.Sprint(c.want), "%s: tasks = %+v, want %+v", name, got, c.want)
	}

	table := tableOf(head)
	table.add([]byte("12,568,34361325065,-;[ 7] 0 7 1 2 1 1 0 86016 0 0 x\n"))
	check.True(t, table.tasks == nil, "tasks from a record of a program = %+v, want none", table.tasks)
}

// Of a long table, the largest processes are kept.
func TestTaskTable_KeepsLargestTasks(t *testing.T) {
	lines := []string{"[ pid ] tgid rss name"}
	for i := range 10 * maxTasks {
		lines = append(lines, fmt.Sprintf("[ %d] %[1]d %d x", i+1, 100000-i))
	}
	table := tableOf(append(lines, "[ 9999] 9999 200000 x")...)
	check.True(t, len(table.tasks) == maxTasks && table.tasks[0].PID == 9999 && table.tasks[1].PID == 1,
		"tasks = %+v, want the %d largest, largest first", table.tasks, maxTasks)
}

// The kernel's report on a real kill names the killed process with its size; processes outside the job are left out.
func TestReader_LargestTasksAreOfJob(t *testing.T) {
	for name, relation := range map[string]process.Relation{"in the job": process.InJob, "outside the job": process.Foreign} {
		l := logOf(t)
		group, pid := killForMemory(t)
		l.read(Now(), Now())
		l.resolveRelations(func(id int) process.Relation {
			if id == pid {
				return relation
			}
			return process.UnknownRelation
		})
		for _, v := range l.victims() {
			if v.PID == pid && v.Group == "" {
				t.Skip("the kernel wrote no report, as after ten kills within 5 s")
			}
		}
		got := (&Reader{log: l}).LargestTasks()
		if relation != process.InJob {
			check.True(t, got == nil, "%s: tasks = %+v, want none", name, got)
			continue
		}
		if len(got) != 1 || got[0].PID != pid || got[0].Command != "tail" || got[0].RSSMB < 12 || got[0].RSSMB > 20 {
			t.Errorf("%s: tasks in group %s = %+v, want process %d with about 16 MiB", name, group, got, pid)
		}
	}
}

// FuzzTaskTable checks that no table is too long, and that its numbers are plausible.
func FuzzTaskTable(f *testing.F) {
	f.Add("[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name\n" +
		"[   5245]     0  5245    16529    16230    15808      422         0   176128        0          1000 tail\n")
	f.Add("[ pid ] name rss tgid\n[ 1] 1 2 3\n[ pid ]\n[ 1]")
	f.Fuzz(func(t *testing.T, text string) {
		table := tableOf(strings.Split(text, "\n")...)
		for i, r := range table.tasks {
			if i >= maxTasks || r.PID <= 0 || !(r.RSSMB >= 0) || i > 0 && r.RSSMB > table.tasks[i-1].RSSMB {
				t.Fatalf("tasks = %+v, want at most %d with positive IDs, largest first", table.tasks, maxTasks)
			}
		}
	})
}
