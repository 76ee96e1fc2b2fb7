package process

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/procfile"
)

// noticeMessage returns a message of the process connector.
func noticeMessage(what uint32, at uint64, words ...uint32) []byte {
	m := make([]byte, exitMessage)
	binary.NativeEndian.PutUint32(m[connectorHead:], what)
	binary.NativeEndian.PutUint64(m[connectorHead+8:], at)
	for i, v := range words {
		binary.NativeEndian.PutUint32(m[connectorHead+16+4*i:], v)
	}
	return m
}

// Messages about anything except the end of a process that does not exit with 0 are ignored, and so are truncated
// messages.
func TestParseNotice_AcceptsOnlyFailedProcesses(t *testing.T) {
	killed := noticeMessage(eventExit, 5, 42, 42, 9, 17, 77, 77)
	for name, c := range map[string]struct {
		message []byte
		want    notice
	}{
		"killed":            {killed, notice{pid: 42, parent: 77, status: 9, at: 5}},
		"core dumped":       {noticeMessage(eventExit, 5, 42, 42, 0x80|11, 17, 77, 77), notice{pid: 42, parent: 77, status: 0x8b, at: 5}},
		"exit code 3":       {noticeMessage(eventExit, 5, 42, 42, 3<<8, 17, 0, 0), notice{pid: 42, status: 0x300, at: 5}},
		"core":              {noticeMessage(eventCore, 6, 43, 42, 77, 77), notice{pid: 42, parent: 77, core: true, at: 6}},
		"core, short":       {noticeMessage(eventCore, 6, 43, 42, 77, 77)[:coreMessage], notice{pid: 42, parent: 77, core: true, at: 6}},
		"core, truncated":   {noticeMessage(eventCore, 6, 43, 42, 77, 77)[:coreMessage-1], notice{}},
		"thread":            {noticeMessage(eventExit, 5, 43, 42, 9, 17, 77, 77), notice{}},
		"exit code 0":       {noticeMessage(eventExit, 5, 42, 42, 0, 17, 77, 77), notice{}},
		"fork":              {noticeMessage(1, 5, 42, 42, 9, 17, 77, 77), notice{}},
		"negative ID":       {noticeMessage(eventExit, 5, 1<<31, 1<<31, 9, 17, 77, 77), notice{}},
		"negative parent":   {noticeMessage(eventExit, 5, 42, 42, 9, 17, 1<<31, 1<<31), notice{}},
		"time out of range": {noticeMessage(eventExit, 1<<63, 42, 42, 9, 17, 77, 77), notice{}},
		"truncated":         {killed[:exitMessage-1], notice{}},
		"empty":             {nil, notice{}},
	} {
		got, ok := parseNotice(c.message)
		if ok != (c.want != notice{}) || ok && got != c.want {
			t.Errorf("%s: parsed %+v, %v; want %+v", name, got, ok, c.want)
		}
	}
}

func FuzzParseNotice(f *testing.F) {
	f.Add(noticeMessage(eventExit, 5, 42, 42, 9, 17, 77, 77))
	f.Add(noticeMessage(eventCore, 6, 43, 42, 77, 77)[:coreMessage])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, m []byte) {
		n, ok := parseNotice(m)
		if ok && (n.pid < 1 || n.parent < 0 || n.at < 0 || n.core == (n.status != 0) || n.status > 0xffff) {
			t.Errorf("%x: parsed %+v", m, n)
		}
	})
}

// watched returns a DeathWatch of the processes below pid. source is "connector" or "pidfd".
func watched(t *testing.T, source string, pid int) *Tree {
	t.Helper()
	tree := NewTree(Options{Members: []int{pid}})
	treeReadFreely(tree)
	w := OpenDeathWatch(tree)
	switch {
	case source == "connector" && w.exits == nil:
		t.Skipf("%s: run the tests outside of containers", w.deaths.Missing)
	case source == "pidfd":
		if w.exits != nil {
			w.exits.close()
		}
		if w.exits, w.pidfds = nil, openPidfds(); w.pidfds == nil {
			t.Skip("the kernel has no pidfds: run the tests on Linux 5.3 or newer")
		}
	}
	w.Start(nil)
	t.Cleanup(w.Close)
	t.Cleanup(tree.Close)
	return tree
}

// killed returns the process that SIGKILL ended since the last scan.
func (w *DeathWatch) killed() (pid int, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.pending, func(e deathEvent) bool { return e.Signal == "SIGKILL" && e.relation == InJob })
	if i < 0 {
		return 0, false
	}
	return w.pending[i].PID, true
}

// untilProcess waits until a process is as wanted, for at most treePatience.
func untilProcess(pid int, wanted func(procfile.Process) bool) {
	for deadline := time.Now().Add(treePatience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if p, _ := procfile.ReadProcess(pid); wanted(p) {
			return
		}
	}
}

// story returns the deaths as text, without the values that differ between runs.
func story(list []Death) string {
	var out []string
	for _, d := range list {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s%d %s", d.Command, d.Signal, d.ExitCode, d.How)))
	}
	return strings.Join(out, ", ")
}

// The connector reports a process that no scan has seen, with its parent. Normal failures are only counted.
func TestDeathWatch_ConnectorReportsShortLivedProcesses(t *testing.T) {
	j := treeStart(t, exec.Command("sh", "-c", `echo $$; read -r go
sh -c 'exit 3'; false | true; sh -c 'kill -PIPE $$'; sh -c 'sleep 60 & kill -KILL $!; wait; read -r go'
sh -c 'kill -SEGV $$'; echo done; read -r go`))
	var shell int
	check.Value(fmt.Sscan(j.line(t), &shell))(t)
	tree := watched(t, DeathConnector, shell)
	treeRead(t, tree)
	other := exec.Command("sh", "-c", "kill -SEGV $$")
	_ = other.Run()
	fmt.Fprintln(j.input, "go")
	killed := func() bool { _, found := tree.deaths.killed(); return found }
	for deadline := time.Now().Add(treePatience); !killed() && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	} // until then, the parent lives
	fmt.Fprintln(j.input, "go")
	j.line(t)
	treeRead(t, tree)

	d := tree.Deaths()
	list, quiet := d.Of(shell, false, 0)
	segv := slices.IndexFunc(list, func(d Death) bool { return d.Signal == "SIGSEGV" })
	kill := slices.IndexFunc(list, func(d Death) bool { return d.Signal == "SIGKILL" })
	if len(list) != 2 || kill != 0 || segv != 1 || quiet != 3 || d.Dropped != 0 {
		t.Fatalf("deaths %s, %d quiet; want one SIGKILL, then one SIGSEGV, and 3 quiet", story(list), quiet)
	}
	crash := list[segv]
	named := crash.Command == "sh" && crash.Start > 0 || crash.Command == "" && crash.Start == 0 // it may have been too fast
	if crash.PPID != shell || !named || crash.Struck < crash.Start || crash.End < crash.Struck {
		t.Errorf("crash = %+v, want its parent %d, its name, and Start ≤ Struck ≤ End", crash, shell)
	}
	if again := tree.Deaths(); again != d {
		t.Error("Deaths returned another value, although nothing has changed")
	}
}

// A pidfd shows how a scanned process ended, whoever waits for it. A process that exits with 0 is no death.
func TestDeathWatch_PidfdReportsScannedProcesses(t *testing.T) {
	j := treeStart(t, exec.Command("sh", "-c", `echo $$; sleep 60 & a=$!; sleep 60 & b=$!
sh -c 'kill -STOP $$; exit 3' & c=$!; sh -c 'kill -STOP $$; exit 0' & d=$!; echo $a $b $c $d
read -r go; for p in $a $b; do [ $p = $a ] && kill -BUS $p || kill $p; wait $p; done 2>/dev/null
kill -CONT $c $d; wait $c $d; echo done; read -r go`))
	var shell, bus, term, failed, fine int
	check.Value(fmt.Sscan(j.line(t), &shell))(t)
	check.Value(fmt.Sscan(j.line(t), &bus, &term, &failed, &fine))(t)
	for _, pid := range []int{bus, term, failed, fine} {
		untilProcess(pid, func(p procfile.Process) bool { return p.Name == "sleep" || p.State == 'T' })
	}
	tree := watched(t, DeathPidfd, shell)
	treeRead(t, tree)
	treeRead(t, tree)
	fmt.Fprintln(j.input, "go")
	for j.line(t) != "done" {
	}
	treeRead(t, tree)

	list, quiet := tree.Deaths().Of(shell, true, 1<<62)
	ended := make(map[int]Death)
	for _, d := range list {
		ended[d.PID] = d
	}
	if ended[bus].Signal != "SIGBUS" || ended[term].Signal != "SIGTERM" || ended[fine].How != "" || len(list) < 2 ||
		len(list)+int(quiet) != 3 || ended[failed].How != "" && ended[failed].ExitCode != 3 {
		t.Errorf("deaths %s, %d quiet; want SIGBUS of %d, SIGTERM of %d, and exit code 3 of %d", story(list), quiet, bus, term, failed)
	}
	if d := ended[bus]; d.PPID != shell || d.Command != "sleep 60" || d.Start == 0 || d.How != DeathZombie && d.How != DeathPidfd {
		t.Errorf("%+v, want its parent %d, command and start, from its stat or pidfd", d, shell)
	}
}

// Without any source, a process that two scans saw has vanished.
func TestDeathWatch_ProcessWithoutSourceVanishes(t *testing.T) {
	j := treeStart(t, exec.Command("sh", "-c", "echo $$; sleep 60 & p=$!; echo $p; read -r go; kill -9 $p; wait $p; echo done; read -r go"))
	var shell, pid int
	check.Value(fmt.Sscan(j.line(t), &shell))(t)
	check.Value(fmt.Sscan(j.line(t), &pid))(t)
	tree := watched(t, DeathPidfd, shell)
	tree.deaths.pidfds.most = 0
	treeRead(t, tree)
	treeRead(t, tree)
	fmt.Fprintln(j.input, "go")
	j.line(t)
	treeRead(t, tree)
	list, _ := tree.Deaths().Of(shell, true, 1<<62)
	if len(list) != 1 || list[0].PID != pid || list[0].How != DeathUnknown || list[0].Signal != "" {
		t.Errorf("deaths %+v, want process %d of unknown end", list, pid)
	}
	if list, _ := tree.Deaths().Of(shell, false, 1<<62); len(list) != 0 {
		t.Errorf("deaths of a job that succeeded: %+v, want none", list)
	}
}

// Of many deaths, those by a signal are kept.
func TestDeaths_AddKeepsSignals(t *testing.T) {
	var d Deaths
	d.Add(Death{PID: 1, Signal: "SIGSEGV"})
	for i := range 3 * maxDeaths {
		d.Add(Death{PID: 10 + i, ExitCode: 1})
	}
	if len(d.List) != maxDeaths || d.List[0].PID != 1 || d.List[maxDeaths-1].PID != 9+3*maxDeaths || d.Dropped != 2*maxDeaths+1 {
		t.Errorf("%d deaths, the first %+v, the last %+v, %d dropped; want the signal, then the newest",
			len(d.List), d.List[0], d.List[len(d.List)-1], d.Dropped)
	}
	for i := range maxDeaths {
		d.Add(Death{PID: 10_000 + i, Signal: "SIGKILL"})
	}
	if len(d.List) != maxDeaths || d.List[0].PID != 10_000 {
		t.Errorf("%d deaths, the first %+v; want the newest signals", len(d.List), d.List[0])
	}
}

// Of orders deaths by when they began, and adds the last failure only to a job that failed just after it.
func TestDeaths_OfFiltersAndOrders(t *testing.T) {
	const s = time.Second
	d := &Deaths{Quiet: 4, Last: &Death{PID: 9, ExitCode: 1, End: 10 * s}, List: []Death{
		{PID: 7, ExitCode: 1, End: 11 * s}, {PID: 2, Signal: "SIGTERM", End: 5 * s},
		{PID: 3, Signal: "SIGSEGV", Struck: 4 * s, End: 6 * s}, {PID: 4, How: DeathUnknown, End: 1 * s},
	}}
	for _, c := range []struct {
		failed bool
		end    time.Duration
		want   []int
		quiet  int64
	}{
		{true, 11 * s, []int{4, 3, 2, 9}, 3},
		{true, 12 * s, []int{4, 3, 2}, 4},
		{false, 11 * s, []int{3, 2}, 4},
	} {
		list, quiet := d.Of(7, c.failed, c.end)
		var pids []int
		for _, e := range list {
			pids = append(pids, e.PID)
		}
		if !slices.Equal(pids, c.want) || quiet != c.quiet {
			t.Errorf("failed %v, end %v: processes %v, %d quiet; want %v, %d", c.failed, c.end, pids, quiet, c.want, c.quiet)
		}
	}
	d.List = append(d.List, Death{PID: 8, ExitCode: 2, End: 11 * s})
	if list, quiet := d.Of(7, true, 11*s); quiet != 4 || len(list) != 4 {
		t.Errorf("with a later failure in the list: %s, %d quiet; want 4 deaths and 4 quiet", story(list), quiet)
	}
	if list, quiet := (*Deaths)(nil).Of(7, true, 0); list != nil || quiet != 0 {
		t.Errorf("deaths of none: %v, %d", list, quiet)
	}
}

// An end that Root has waited for is not counted again if the connector reported it before.
func TestDeathWatch_ReapedProcessCountsOnce(t *testing.T) {
	var ends []ReapedProcess
	tree := NewTree(Options{Root: os.Getpid(), Reaped: func() []ReapedProcess { return ends }})
	w := &DeathWatch{tree: tree, cores: map[int]deathEvent{}, filed: map[int]deathEvent{}}
	tree.deaths = w
	now := procfile.Clock(unix.CLOCK_BOOTTIME)
	event := func(pid, parent, status int, relation Relation) {
		e := deathEvent{Death: Death{PID: pid, PPID: parent, End: now, How: DeathConnector}, relation: relation}
		e.setStatus(status)
		w.enqueue(e)
	}
	wait := func(pid, status int, cpu float64) {
		ends = append(ends, ReapedProcess{PID: pid, Status: status, CPUSeconds: cpu, At: now})
	}

	event(100, 5, 11, InJob)
	event(101, 5, 1<<8, InJob)
	event(102, 0, 9, UnknownRelation) // resolved by wait4
	event(103, 5, 9, UnknownRelation) // its parent fails, too
	event(104, 6, 9, UnknownRelation) // nothing is known about it
	event(5, 4, 2<<8, InJob)
	wait(101, 1<<8, 0.2)
	wait(102, 9, 0)
	wait(105, int(syscall.SIGBUS)|0x80, 0)
	wait(106, 0, 9)
	ends = append(ends, ReapedProcess{Failed: 3, Killed: 2})
	w.scanned(tree, ends)
	ends = nil
	wait(100, 11, 0) // a zombie, after the end of its parent
	w.scanned(tree, ends)

	var got []string
	for _, e := range tree.Deaths().List {
		got = append(got, fmt.Sprintf("%d %s%d %v %s", e.PID, e.Signal, e.ExitCode, e.CoreDumped, e.How))
	}
	want := []string{"100 SIGSEGV0 false connector", "101 1 false wait", "102 SIGKILL0 false wait", "103 SIGKILL0 false connector",
		"105 SIGBUS0 true wait"}
	d := tree.Deaths()
	if !slices.Equal(got, want) || d.Quiet != 4 || d.Dropped != 2 || d.Last == nil || d.Last.PID != 5 {
		t.Errorf("deaths %q, %d quiet, %d dropped, last %+v; want %q, 4, 2, process 5", got, d.Quiet, d.Dropped, d.Last, want)
	}
}

// A process that began after the end of another one with the same ID is not confused with it.
func TestDeathWatch_ReusedIDIsToldApart(t *testing.T) {
	const s = time.Second
	w := &DeathWatch{filed: map[int]deathEvent{}}
	row := &entry{row: Process{PID: 9, Start: 10 * s, CPUSeconds: 7}}
	b := &table{living: []*entry{row}}
	for _, e := range []deathEvent{
		{Death: Death{PID: 9, End: 9 * s}},                // before it began
		{Death: Death{PID: 9, Start: 3 * s, End: 12 * s}}, // another one, according to its stat
	} {
		if w.complete(b, &e); e.relation != UnknownRelation || e.CPUSeconds != 0 || row.endKnown {
			t.Errorf("end of another process, completed to %+v", e)
		}
	}
	e := deathEvent{Death: Death{PID: 9, Start: 10 * s, End: 12 * s}}
	if w.complete(b, &e); e.relation != InJob || e.CPUSeconds != 7 || !row.endKnown {
		t.Errorf("end of the process, completed to %+v; want the row's values", e)
	}
	child := deathEvent{Death: Death{PID: 20, PPID: 9, End: 5 * s}} // its parent had the ID before
	w.pending = []deathEvent{child}
	b.now = 5*s + 1
	w.resolve(b)
	if got := w.pending[0].relation; got != UnknownRelation {
		t.Errorf("child of another process with the ID: relation %v, want unknown", got)
	}
}

// The status of another user's process is known once it was waited for.
func TestDeathWatch_HiddenStatusIsReadFromPidfd(t *testing.T) {
	j := treeStart(t, exec.Command("sh", "-c", "echo $$; sleep 60 & echo $!; wait; echo done; read -r go"))
	var shell, pid int
	check.Value(fmt.Sscan(j.line(t), &shell))(t)
	check.Value(fmt.Sscan(j.line(t), &pid))(t)
	untilProcess(pid, func(p procfile.Process) bool { return p.Name == "sleep" })
	tree := watched(t, DeathPidfd, shell)
	treeRead(t, tree)
	w := tree.deaths
	w.mu.Lock()
	w.pidfds.open[int32(pid)].hidden = true
	w.mu.Unlock()
	must(t, unix.Kill(shell, unix.SIGSTOP)) // it does not wait for its child meanwhile
	untilProcess(shell, func(p procfile.Process) bool { return p.State == 'T' })
	must(t, unix.Kill(pid, unix.SIGKILL))
	untilProcess(pid, func(p procfile.Process) bool { return p.State == 'Z' })
	treeRead(t, tree)
	if d := tree.Deaths(); d.total() != 0 {
		t.Errorf("deaths %s before the parent has waited, want none", story(d.List))
	}
	must(t, unix.Kill(shell, unix.SIGCONT))
	j.line(t)
	treeRead(t, tree)
	list, _ := tree.Deaths().Of(shell, true, 1<<62)
	switch {
	case isLinux(6, 15) && story(list) != "sleep 60 SIGKILL0 pidfd":
		t.Errorf("deaths %s, want SIGKILL from the pidfd", story(list))
	case !isLinux(6, 15) && (story(list) != "sleep 60 0 unknown" || !strings.Contains(tree.Deaths().Missing, "another user's process")):
		t.Errorf("deaths %s, missing %q; want an unknown end, and why", story(list), tree.Deaths().Missing)
	}
}

// A job with more failures than are kept between two scans still counts them all.
func TestDeathWatch_CountsFailuresBeyondItsBounds(t *testing.T) {
	tree := NewTree(Options{Members: []int{os.Getpid()}})
	w := &DeathWatch{tree: tree, cores: map[int]deathEvent{}, filed: map[int]deathEvent{}}
	tree.deaths = w
	for i := range 2 * maxPending {
		e := deathEvent{Death: Death{PID: 10 + i, PPID: 5, End: time.Hour}, relation: InJob}
		e.setStatus(9)
		if i%2 == 0 {
			e = deathEvent{Death: Death{PID: 10 + i, PPID: 5, End: time.Hour}, relation: InJob}
			e.setStatus(1 << 8)
		}
		w.enqueue(e)
	}
	w.scanned(tree, nil)
	if d := tree.Deaths(); d.Quiet != maxPending || int64(len(d.List))+d.Dropped != maxPending {
		t.Errorf("%d quiet, %d listed, %d dropped; want %d quiet and as many others", d.Quiet, len(d.List), d.Dropped, maxPending)
	}
}
