package cgroup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// A JobGroup is a group that was created for a job, in one or several hierarchies. It is not safe for concurrent use.
type JobGroup struct {
	group       *Group
	v1          []hierarchyDir
	v2          *hierarchyDir
	agentDir    string   // v2 group that this process was moved to; "" = not moved
	enabled     []string // controllers that were enabled for the group
	missing     map[string]error
	controllers []string // controllers to enable
}

// A hierarchyDir holds the directory of the created group in one hierarchy, and its parent, perfagent's group.
type hierarchyDir struct{ dir, parent string }

// NewJobGroup creates a group below perfagent's group in the hierarchies with counters for a job: v2, and v1
// hierarchies with cpuacct, memory or pids. It does not change other hierarchies, because they have no counters. That
// includes v1's cpu if it is separate from cpuacct; a group in it would also change the job's share of the CPUs.
// Missing holds the reason for each hierarchy in which no group could be created. An error means that no group could be
// created that counts CPU time or memory. It contains the reason for each hierarchy, and nothing is left behind.
//
// In v2, NewJobGroup enables controllers for the group if possible. Controllers cannot be enabled while perfagent's
// group contains processes. If this process is the only one in its group, it moves to a separate group next to the
// job's until Remove is called. Without controllers, v2 still counts CPU time, pressure and processes.
func NewJobGroup(name string) (*JobGroup, error) {
	// Do not enable cpu: v2 counts CPU time without it, and with it the shares of the CPUs would change.
	return newJobGroup(name, []string{"memory", "io", "pids"})
}

func newJobGroup(name string, wanted []string) (*JobGroup, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\n") {
		return nil, fmt.Errorf("make control group %q: not the name of a directory", name)
	}
	g, err := Find(Options{})
	if err != nil {
		return nil, fmt.Errorf("make control group %s: %w", name, err)
	}

	m := &JobGroup{missing: map[string]error{}, controllers: wanted}
	for _, p := range []*membership{g.acct, g.memory, g.pids} {
		if p != nil && !p.v2 && !m.hasBelow(p.dir()) {
			m.addMissing(p.dir(), m.makeV1(p.dir(), name))
		}
	}

	if g.unified != nil {
		m.addMissing(g.unified.dir(), m.makeV2(g.unified, name))
	}
	m.group = g.childGroup(name, m.hasBelow)
	if !m.group.acct.hasCounters() && !m.group.memory.hasCounters() {
		byText := func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }
		reasons := errors.Join(slices.SortedFunc(maps.Values(m.missing), byText)...)
		return nil, errors.Join(fmt.Errorf("make control group %s: %w", name, reasons), m.Remove())
	}
	return m, nil
}

// Group returns the created group. In hierarchies in which no group could be created, it has limits but no counters.
func (m *JobGroup) Group() *Group { return m.group }

// Missing returns the reasons why parts of the setup failed. A key is the directory of perfagent's group if no group
// could be created below it, the cgroup.subtree_control of perfagent's group if controllers could not be enabled, or
// "thread" if a thread could not leave the created groups.
func (m *JobGroup) Missing() map[string]error { return m.missing }

// addMissing records err as the reason for the key dir of Missing, unless err is nil.
func (m *JobGroup) addMissing(dir string, err error) {
	if err != nil {
		m.missing[dir] = err
	}
}

// hasBelow reports whether a group was created below parentDir.
func (m *JobGroup) hasBelow(parentDir string) bool {
	return m.v2 != nil && m.v2.parent == parentDir || slices.ContainsFunc(m.v1,
		func(b hierarchyDir) bool { return b.parent == parentDir })
}

// makeV1 creates the group in one v1 hierarchy if a thread can enter and leave it.
func (m *JobGroup) makeV1(parentDir, name string) error {
	hierarchy, err := os.ReadFile(filepath.Join(parentDir, "memory.use_hierarchy"))
	if err == nil && string(hierarchy) == "0\n" && !isRoot(parentDir, false) {
		return fmt.Errorf("make group in %s: memory.use_hierarchy is 0, so a group below it would escape the limits",
			parentDir)
	}
	dir := filepath.Join(parentDir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make group: %w", err)
	}
	if err := cmp.Or(writable(filepath.Join(dir, "tasks")), writable(filepath.Join(parentDir, "tasks"))); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	m.v1 = append(m.v1, hierarchyDir{dir, parentDir})
	return nil
}

// makeV2 creates the group in v2 if a child can be started in it.
func (m *JobGroup) makeV2(p *membership, name string) error {
	parentDir, dir := p.dir(), filepath.Join(p.dir(), name)
	if err := checkCloneInto(); err != nil {
		return fmt.Errorf("make group in %s: the kernel does not start processes in a group (clone3 of Linux 5.7): %w",
			parentDir, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make group: %w", err)
	}

	err := cmp.Or(writable(filepath.Join(dir, "cgroup.procs")), writable(filepath.Join(parentDir, "cgroup.procs")))
	kind, errKind := os.ReadFile(filepath.Join(dir, "cgroup.type"))
	if err == nil && errKind == nil && string(kind) != "domain\n" {
		err = fmt.Errorf("make group in %s: its groups have type %q, and no process can be started in those",
			parentDir, bytes.TrimSpace(kind))
	}
	if err != nil {
		return errors.Join(err, os.Remove(dir))
	}

	m.v2 = &hierarchyDir{dir, parentDir}
	if err := m.enable(name); err != nil {
		m.missing[filepath.Join(parentDir, "cgroup.subtree_control")] = err
	}
	return nil
}

// writable returns an error if this process may not write to the file at path.
func writable(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "write to", Path: path, Err: err}
	}
	return nil
}

// enable enables the requested controllers for the created group. If processes in the parent prevent this, enable calls
// moveAgent.
func (m *JobGroup) enable(name string) error {
	available, err := os.ReadFile(filepath.Join(m.v2.parent, "cgroup.controllers"))
	if err != nil {
		return err
	}

	control := filepath.Join(m.v2.parent, "cgroup.subtree_control")
	enabled, err := os.ReadFile(control)
	if err != nil {
		return err
	}

	var errs []error
	for _, c := range m.controllers {
		if !hasWord(available, c) || hasWord(enabled, c) {
			continue
		}
		err := writeFile(control, "+"+c)
		if errors.Is(err, unix.EBUSY) && m.agentDir == "" && m.moveAgent(name) == nil {
			err = writeFile(control, "+"+c)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.enabled = append(m.enabled, c)
	}

	if len(m.enabled) == 0 && m.agentDir != "" {
		errs = append(errs, m.restore())
	}
	return errors.Join(errs...)
}

// moveAgent moves this process to a separate group, NAME-agent. It fails if this process's group contains other
// processes.
func (m *JobGroup) moveAgent(name string) error {
	procs, err := os.ReadFile(filepath.Join(m.v2.parent, "cgroup.procs"))
	if err != nil {
		return err
	}
	if pids := procfile.AppendPIDs(nil, procs); len(pids) != 1 || pids[0] != os.Getpid() {
		return fmt.Errorf("%d processes in %s", len(pids), m.v2.parent)
	}
	agentDir := filepath.Join(m.v2.parent, name+"-agent")
	if err := os.Mkdir(agentDir, 0o755); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(agentDir, "cgroup.procs"), strconv.Itoa(os.Getpid())); err != nil {
		return errors.Join(err, os.Remove(agentDir))
	}

	m.agentDir = agentDir
	return nil
}

// restore undoes enable and moveAgent. The created group must have been removed.
func (m *JobGroup) restore() error {
	for len(m.enabled) > 0 {
		last := len(m.enabled) - 1
		if err := writeFile(filepath.Join(m.v2.parent, "cgroup.subtree_control"), "-"+m.enabled[last]); err != nil {
			return err
		}
		m.enabled = m.enabled[:last]
	}

	if m.agentDir == "" {
		return nil
	}
	if err := writeFile(filepath.Join(m.v2.parent, "cgroup.procs"), strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	if err := removeGroup(m.agentDir, time.Now().Add(retryTimeout)); err != nil {
		return err
	}

	m.agentDir = ""
	return nil
}

// hasWord reports whether list, which is separated by white space, contains word.
func hasWord(list []byte, word string) bool {
	return slices.Contains(strings.Fields(string(list)), word)
}

// writeFile writes text to an existing kernel file with one system call.
func writeFile(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		_, err := unix.Write(fd, []byte(text))
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return &os.PathError{Op: "write " + text + " to", Path: path, Err: err}
		}
	}
}

// cloneArgs is the kernel's struct clone_args up to cgroup (CLONE_ARGS_SIZE_VER2).
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// checkCloneInto returns an error if clone3 cannot start a child in a group. It passes a descriptor that does not
// belong to a group: a kernel that supports this returns EBADF and creates no child. Older kernels lack clone3 or its
// field cgroup, and some containers forbid clone3.
func checkCloneInto() error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	a := cloneArgs{flags: unix.CLONE_INTO_CGROUP, exitSignal: uint64(unix.SIGCHLD), cgroup: uint64(fd)}
	_, _, e := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a), 0)
	if e != unix.EBADF {
		return e
	}
	return nil
}

// childGroup returns the Group of a process in the groups that were created below the groups of g. In a hierarchy
// without a created group, it has the group of g, without counters.
func (g *Group) childGroup(name string, created func(own string) bool) *Group {
	in := newGroup(g.sys)
	in.version = g.version
	moved := map[*membership]*membership{nil: nil}
	move := func(p *membership) *membership {
		if q, ok := moved[p]; ok {
			return q
		}
		q := *p
		q.created = created(p.dir())
		if q.counts = q.created; q.created {
			q.dirs = append([]string{filepath.Join(p.dir(), name)}, p.dirs...)
			q.names = append([]string{filepath.Join(p.names[0], name)}, p.names...)
		}
		moved[p] = &q
		return &q
	}

	in.cpu, in.acct, in.cpuset = move(g.cpu), move(g.acct), move(g.cpuset)
	in.memory, in.pids, in.io, in.unified = move(g.memory), move(g.pids), move(g.io), move(g.unified)
	in.findFiles()
	return in
}

// Enter calls start, which must fork one child, so that the child begins in the created groups. In v2, start must pass
// fd as SysProcAttr.CgroupFD, unless fd is -1, which means that there is no v2 group. In v1, the calling thread enters
// the groups, and the child inherits them. In this case, start runs in a new goroutine that is locked to its thread.
//
// Enter returns the error of start, or an error if the groups could not be entered and start was not called. The thread
// returns to its previous groups before Enter returns. If the kernel does not allow that, the thread ends, so that no
// part of this process stays in the job's groups, and Missing holds the reason.
func (m *JobGroup) Enter(start func(fd int) error) error {
	if len(m.v1) == 0 { // no thread has to move, so call start on this thread
		err, _ := m.enter(start)
		return err
	}
	result := make(chan error, 1)
	go m.enterLocked(start, result)
	return <-result
}

// enterLocked calls enter in a goroutine that is locked to its thread. The thread ends if it cannot leave the groups.
func (m *JobGroup) enterLocked(start func(fd int) error, result chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() { // the runtime never ends the main thread
		defer runtime.UnlockOSThread()
		done := make(chan error, 1)
		go m.enterLocked(start, done)
		result <- <-done
		return
	}

	err, back := m.enter(start)
	if back == nil {
		runtime.UnlockOSThread() // otherwise, the thread ends with this goroutine
	}
	m.addMissing("thread", back)
	result <- err
}

// enter implements Enter on the calling thread. back is the reason why the thread is still in the groups; nil means
// that it has left them.
func (m *JobGroup) enter(start func(fd int) error) (err, back error) {
	fd := -1
	if m.v2 != nil {
		fd, err = unix.Open(m.v2.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "enter control group", Path: m.v2.dir, Err: err}, nil
		}
		defer unix.Close(fd)
	}

	tid := strconv.Itoa(unix.Gettid())
	in := 0
	for _, b := range m.v1 {
		if err = writeFile(filepath.Join(b.dir, "tasks"), tid); err != nil {
			err = fmt.Errorf("enter control group: %w", err)
			break
		}
		in++
	}

	if err == nil {
		err = start(fd)
	}

	for _, b := range m.v1[:in] {
		back = errors.Join(back, retryUntil(time.Now().Add(retryTimeout), func() error {
			return writeFile(filepath.Join(b.parent, "tasks"), tid)
		}, unix.EAGAIN, unix.EBUSY, unix.ENOMEM))
	}

	return err, back
}

// retryTimeout is the time for which to retry an operation that the kernel may reject temporarily.
const retryTimeout = 100 * time.Millisecond

// retryUntil repeats f as long as it fails with one of the temporary errors, but not after the time until.
func retryUntil(until time.Time, f func() error, temporary ...error) error {
	for {
		err := f()
		again := slices.ContainsFunc(temporary, func(r error) bool { return errors.Is(err, r) })
		if !again || time.Now().After(until) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// Remove removes the created groups and all groups that the job created below them. It waits briefly for processes that
// are ending. If processes are left, it removes nothing and returns ErrBusy, and Remove may be called again. After a
// success, further calls do nothing. Remove must not run concurrently with a Read of Group.
func (m *JobGroup) Remove() error {
	if m.group != nil {
		m.group.Close() // otherwise, an open file would keep the kernel's memory for the removed group
	}
	dirs := slices.Clone(m.v1)
	if m.v2 != nil {
		dirs = append(dirs, *m.v2)
	}
	if err := awaitEmpty(dirs); err != nil {
		return err
	}

	until := time.Now().Add(exitTimeout)
	for _, b := range dirs {
		if err := removeGroup(b.dir, until); err != nil {
			return err
		}
	}

	m.v1 = nil
	if m.v2 != nil {
		if err := m.restore(); err != nil {
			return fmt.Errorf("restore control group %s: %w", m.v2.parent, err)
		}
	}

	m.v2 = nil
	return nil
}

// removeGroup removes the group dir and the groups below it, deepest first. A process that has just ended may keep its
// group busy for a moment, so removeGroup retries until the given time.
func removeGroup(dir string, until time.Time) error {
	var all []string
	err := walk(dir, func(d string) error {
		all = append(all, d)
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove control group %s: %w", dir, err)
	}

	for _, d := range slices.Backward(all) {
		err := retryUntil(until, func() error { return unix.Rmdir(d) }, unix.EBUSY)
		switch {
		case errors.Is(err, unix.EBUSY):
			return fmt.Errorf("remove control group %s: %w", d, ErrBusy)
		case err != nil && !errors.Is(err, unix.ENOENT):
			return &os.PathError{Op: "remove control group", Path: d, Err: err}
		}
	}
	return nil
}

// Kill atomically sends SIGKILL to all processes of the created group and the groups below it, so a process that is
// being forked cannot escape. This needs v2 and Linux 5.14 (cgroup.kill); otherwise Kill returns an error.
func (m *JobGroup) Kill() error {
	if m.v2 == nil {
		return fmt.Errorf("kill the processes of a control group: %w", unix.ENOTSUP)
	}

	return writeFile(filepath.Join(m.v2.dir, "cgroup.kill"), "1")
}
