package process

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// A tableFixture is a Tree with root 100 and main process 200. ended holds the processes that Root has reaped.
type tableFixture struct {
	treeProc
	*Tree
	ended []ReapedProcess
}

func newTableFixture(t *testing.T, o Options) *tableFixture {
	f := &tableFixture{treeProc: treeFixture(t)}
	o.Proc, o.Root = f.treeProc.dir, 100
	o.Reaped = func() []ReapedProcess {
		out := f.ended
		f.ended = nil
		return out
	}
	f.Tree = NewTree(o)
	f.Next = Request{NoMemory: true, NoIO: true, Now: true}
	return f
}

// proc writes a process with its own CPU time and the time of its reaped children, in ticks.
func (f *tableFixture) proc(pid, parent, own, children int) {
	f.put(treeLine{pid: pid, parent: parent, start: uint64(pid), comm: "x", ticks: [4]int{own, 0, children, 0}})
}

// scan reads the processes and compares the rows with want. A row is the process ID, the own CPU time, and the CPU time
// of ended children, in ticks.
func (f *tableFixture) scan(want string) {
	f.tb.Helper()
	treeRead(f.tb, f.Tree)
	f.rows(want)
}

// scanChild writes child 300 of the main process, and scans.
func (f *tableFixture) scanChild() {
	f.tb.Helper()
	f.proc(300, 200, 5, 0)
	f.scan("200: 10+0, 300: 5+0")
}

func (f *tableFixture) rows(want string) {
	f.tb.Helper()
	var rows []string
	for _, p := range f.Table() {
		end := ""
		if p.End > 0 {
			end = " ended"
		}
		rows = append(rows, fmt.Sprintf("%d: %.0f+%.0f%s", p.PID, p.CPUSeconds*100, p.EndedChildren*100, end))
	}
	got := strings.Join(rows, ", ")
	check.True(f.tb, got == want, "rows\n  %s\nwant\n  %s", got, want)
}

// No time is in two rows and no time is lost, whichever processes the scans find.
func TestTable_RowsAddUpToCPUTime(t *testing.T) {
	for name, play := range map[string]func(*tableFixture){
		"known child and unseen children": func(f *tableFixture) {
			f.scanChild()
			f.end(300)
			f.proc(200, 100, 11, 5+2+40) // child 300 used 2 after the scan; unseen children used 40
			f.scan("200: 11+42, 300: 5+0 ended")
		},
		"children reaped before the first scan": func(f *tableFixture) {
			f.proc(200, 100, 10, 70)
			f.scan("200: 10+70")
		},
		"parent read before it waits for the child": func(f *tableFixture) {
			f.scanChild()
			f.end(300)
			f.scan("200: 10+0, 300: 5+0 ended")
			f.proc(200, 100, 10, 9)
			f.scan("200: 10+4, 300: 5+0 ended")
		},
		"child and parent end between two scans": func(f *tableFixture) {
			f.proc(300, 200, 5, 3)
			f.proc(400, 300, 7, 1)
			f.scan("200: 10+0, 400: 7+1, 300: 5+3")
			f.end(300, 400)
			f.proc(200, 100, 10, 5+3+7+1+4)
			f.scan("200: 10+4, 400: 7+1 ended, 300: 5+3 ended")
		},
		"parent ignores SIGCHLD": func(f *tableFixture) {
			f.scanChild()
			f.end(300)
			f.scan("200: 10+0, 300: 5+0 ended")
			f.scan("200: 10+0, 300: 5+0 ended")
		},
		"child stays a zombie": func(f *tableFixture) {
			f.put(treeLine{pid: 300, parent: 200, start: 300, state: "Z", comm: "x", ticks: [4]int{5, 0, 0, 0}})
			f.scan("200: 10+0, 300: 5+0 ended")
			end := f.Table()[1].End
			f.scan("200: 10+0, 300: 5+0 ended")
			f.end(300)
			f.proc(200, 100, 10, 5)
			f.scan("200: 10+0, 300: 5+0 ended")
			again := f.Table()[1].End
			check.True(f.tb, again == end, "End of an ended process changed from %v to %v", end, again)
		},
		"orphan reaped by Root": func(f *tableFixture) {
			f.proc(300, 200, 5, 0)
			f.proc(400, 300, 7, 0)
			f.scan("200: 10+0, 400: 7+0, 300: 5+0")
			f.end(300, 400)
			f.proc(200, 100, 10, 5)
			f.ended = []ReapedProcess{{PID: 400, CPUSeconds: 0.09, At: time.Hour}}
			f.scan("200: 10+0, 400: 9+0 ended, 300: 5+0 ended")
			f.ended = []ReapedProcess{{PID: 777, CPUSeconds: 0.5}, {CPUSeconds: 0.25}} // one never seen, and the sum of others with unknown IDs
			f.scan("200: 10+75, 400: 9+0 ended, 300: 5+0 ended")
		},
		"orphan reaped after it was read": func(f *tableFixture) {
			f.proc(300, 100, 5, 0)
			f.ended = []ReapedProcess{{PID: 300, CPUSeconds: 0.08, At: time.Hour}}
			f.scan("200: 10+0, 300: 5+0")
			f.end(300)
			f.scan("200: 10+0, 300: 8+0 ended")
		},
		"process ID reused": func(f *tableFixture) {
			f.scanChild()
			f.replace(treeLine{pid: 300, parent: 200, start: 999, ticks: [4]int{1, 0, 0, 0}})
			f.proc(200, 100, 10, 5)
			f.scan("200: 10+0, 300: 5+0 ended, 300: 1+0")
		},
		"end of the job": func(f *tableFixture) {
			f.scanChild()
			f.ended = []ReapedProcess{{PID: 200, Main: true, CPUSeconds: 0.30, ChildrenSeconds: 0.17, MaxRSS: 4096, At: time.Hour}}
			f.FinishTable()
			f.rows("200: 13+12 ended, 300: 5+0 ended")
			f.FinishTable()
			f.rows("200: 13+12 ended, 300: 5+0 ended")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTableFixture(t, Options{})
			f.proc(200, 100, 10, 0)
			play(f)
		})
	}
}

// A job that ends before the first scan has a row for its main process.
func TestTable_UnseenMainProcessHasRow(t *testing.T) {
	redact := func(args []string) []string { return append(args[:1:1], "***") }
	tree := NewTree(Options{Root: os.Getpid(), Command: []string{"job", "secret"}, Redact: redact, Reaped: func() []ReapedProcess {
		return []ReapedProcess{{PID: 7, CPUSeconds: 2}, {PID: 5, Main: true, CPUSeconds: 3, ChildrenSeconds: 1, Start: 4, At: 9, MaxRSS: 1 << 20}}
	}})
	tree.FinishTable()
	want := []Process{{PID: 5, PPID: os.Getpid(), Command: "job ***", Start: 4, End: 9, CPUSeconds: 2, EndedChildren: 3, PeakMemory: 1 << 20}}
	got := tree.Table()
	check.True(t, fmt.Sprint(got) == fmt.Sprint(want), "table\ngot  %+v\nwant %+v", got, want)
}

// The usage of processes that ran before the table began counts from its beginning.
func TestTable_RunningJobCountsFromFirstRead(t *testing.T) {
	f := newTableFixture(t, Options{Running: true})
	f.file(200, "status", "VmHWM:\t 900 kB\n")
	f.put(treeLine{pid: 200, parent: 100, start: 200, ticks: [4]int{10, 0, 30, 0}, pages: 3, faults: 1})
	f.proc(300, 200, 5, 0)
	f.scan("200: 0+0, 300: 0+0")
	f.end(300)
	f.put(treeLine{pid: 200, parent: 100, start: 200, ticks: [4]int{14, 0, 30 + 5 + 1, 0}, pages: 5, faults: 2})
	f.scan("200: 4+1, 300: 0+0 ended")
	got, want := f.Table()[0].PeakMemory, 5*float64(os.Getpagesize())
	check.True(t, got == want, "peak memory = %v, want %v, not the kernel's peak from before the table", got, want)
}

// The processes with the most CPU time and those with the highest peak memory have rows. Ended processes without a row
// are part of their parent's row.
func TestTable_SelectsRowsByCPUTimeAndMemory(t *testing.T) {
	f := newTableFixture(t, Options{})
	f.proc(200, 100, 1000, 0)
	all := 0
	for i := range 100 {
		f.put(treeLine{pid: 300 + i, parent: 200, start: 300, ticks: [4]int{i, 0, 0, 0}, pages: 1000 - i})
		all += i
	}
	treeRead(t, f.Tree)
	rows := f.Table()
	check.True(t, len(rows) == 2*rowsPerOrder && rows[0].PID == 200 && rows[1].PID == 399 && rows[19].PID == 381 && rows[20].PID == 319 && rows[39].PID == 300,
		"got %d rows, want %d by CPU time and by memory: %+v", len(rows), 2*rowsPerOrder, rows)

	for i := range 100 {
		f.end(300 + i)
	}
	f.proc(200, 100, 1000, all)
	treeRead(t, f.Tree)
	var sum float64
	for _, p := range f.Table() {
		sum += 100 * (p.CPUSeconds + p.EndedChildren)
	}
	check.True(t, math.Abs(sum-float64(1000+all)) <= 1e-6 && len(f.Table()) == 2*rowsPerOrder,
		"%d rows add up to %v ticks, want %d rows and %d ticks", len(f.Table()), sum, 2*rowsPerOrder, 1000+all)
	n := len(f.table.ended)
	check.True(t, n <= 2*rowsPerOrder, "%d ended processes are kept, want at most %d", n, 2*rowsPerOrder)
}

// The table's size does not grow with the number of processes.
func TestTable_SizeIsBounded(t *testing.T) {
	tree := NewTree(Options{Root: 1, Proc: t.TempDir()})
	must(t, tree.dir.open(tree.o.Proc, false))
	defer tree.dir.close()
	for round := range 5 {
		procs := make([]proc, 3*maxLiving)
		tree.jobProcs = tree.jobProcs[:0]
		for i := range procs {
			procs[i] = proc{pid: int32(10 + i), stat: stat{ppid: 1, own: float64(i), ticks: float64(i), start: uint64(round), threads: 1}}
			tree.jobProcs = append(tree.jobProcs, &procs[i])
		}
		tree.updateTable()
		if n, m := len(tree.table.living), len(tree.table.ended); n != maxLiving || m > maxEnded {
			t.Errorf("%d living and %d ended processes are tracked, want %d and at most %d", n, m, maxLiving, maxEnded)
		}
		rows := tree.Table()
		check.True(t, len(rows) <= 2*rowsPerOrder, "got %d rows, want at most %d", len(rows), 2*rowsPerOrder)
	}
}

// The command line and the peak memory are read once, and reread when they may have changed.
func TestTable_InspectsProcessesThatMayHaveChanged(t *testing.T) {
	f := newTableFixture(t, Options{Redact: func(args []string) []string {
		if len(args) > 1 && args[1] == "--token" {
			return []string{args[0], "--token", "***"}
		}
		return args
	}})
	line := treeLine{pid: 200, parent: 100, start: 200, comm: "sh", pages: 10, faults: 1, threads: 4}
	f.put(line)
	f.file(200, "cmdline", "/bin/sh\x00--token\x00s3cret\x00")
	f.file(200, "status", "VmPeak:\t 9999 kB\nVmHWM:\t   400 kB\nThreads:\t1\n")
	f.put(treeLine{pid: 201, parent: 200, start: 201, comm: "nameless"})
	f.put(treeLine{pid: 202, parent: 200, start: 202, state: "Z", comm: "zombie"})
	f.put(treeLine{pid: 203, parent: 200, start: 203, comm: "long"})
	f.file(203, "cmdline", strings.Repeat("ä\xff", 3000))

	look := func(command string, kib float64, threads int) {
		t.Helper()
		treeRead(t, f.Tree)
		for _, p := range f.Table() {
			if p.PID != 200 {
				continue
			}
			check.True(t, p.Command == command && p.PeakMemory == kib*1024 && p.Threads == threads,
				"row %+v, want command %q, peak %v KiB, %d threads", p, command, kib, threads)
		}
	}
	look("/bin/sh --token ***", 400, 4)

	f.file(200, "cmdline", "other\x00")
	f.file(200, "status", "VmHWM:\t   800 kB\n")
	look("/bin/sh --token ***", 400, 4) // nothing suggests a change of either

	line.pages, line.threads = 150, 2
	f.put(line)
	look("/bin/sh --token ***", 800, 4) // its resident size is above the last peak

	line.comm = "python3"
	f.put(line)
	look("other", 800, 4) // it has called exec

	line.faults = 2
	f.put(line)
	f.file(200, "status", "VmHWM:\t   900 kB\n")
	look("other", 800, 4) // it had page faults, but its peak was read just now
	f.table.living[0].peakReadAt -= inspectInterval
	look("other", 900, 4)

	for _, p := range f.Table() {
		switch want := map[int]string{201: "[nameless]", 202: "[zombie]", 203: strings.Repeat("ä�", 40)}[p.PID]; {
		case want != "" && p.Command != want:
			t.Errorf("process %d: command = %q, want %q", p.PID, p.Command, want)
		case len(p.Command) > maxCommand:
			t.Errorf("process %d: command has %d bytes, want at most %d", p.PID, len(p.Command), maxCommand)
		}
	}
}

// The number of inspections per scan is limited; later scans inspect the rest.
func TestTable_LimitsInspectionsPerScan(t *testing.T) {
	f := newTableFixture(t, Options{})
	f.proc(200, 100, 1000, 0)
	const n = maxInspections + 10
	for i := range n {
		f.put(treeLine{pid: 300 + i, parent: 200, start: 300})
		f.file(300+i, "cmdline", "a\x00b\x00")
	}
	read := func() (known int) {
		treeRead(t, f.Tree)
		for _, e := range f.table.living {
			if e.row.Command == "a b" {
				known++
			}
		}
		return known
	}
	if first, second := read(), read(); first != maxInspections-1 || second != n {
		t.Errorf("known commands after scans 1 and 2 = %d, %d; want %d, %d", first, second, maxInspections-1, n)
	}
}
