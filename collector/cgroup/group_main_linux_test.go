package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// groupMode is the environment variable that makes the test binary run one of the programs below.
const groupMode = "PERFAGENT_GROUP_TEST"

func TestMain(m *testing.M) {
	modes := map[string]func() error{
		"where": groupWhere, "eat": groupEat, "burn": groupBurn, "quit": func() error { return nil },
		"hold": groupHold, "v2": groupInV2View, "namespace": groupInNamespace, "readonly": groupReadOnly, "alone": groupAlone}
	mode := os.Getenv(groupMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	defer func() {
		if err := recover(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}()
	try(modes[mode]())
}

// try ends a program below if err is not nil. TestMain prints the error.
func try(err error) {
	if err != nil {
		panic(err)
	}
}

// tried is like try, and returns v otherwise.
func tried[T any](v T, err error) T {
	try(err)
	return v
}

// groupCommand returns a command that runs this binary in the given mode.
func groupCommand(mode string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), groupMode+"="+mode)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	return cmd
}

// groupWhere prints the groups of this process and of a child, each followed by an empty line. It then waits for the
// end of its input.
func groupWhere() error {
	data := tried(os.ReadFile("/proc/self/cgroup"))

	if len(os.Args) > 1 {
		fmt.Println(string(data))
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}

	cmd := groupCommand("where", "child")
	out := tried(cmd.StdoutPipe())
	in := tried(cmd.StdinPipe())
	try(cmd.Start())

	fmt.Println(string(data))
	r := bufio.NewReader(out)
	for line := "x"; strings.TrimSpace(line) != ""; {
		line = tried(r.ReadString('\n'))
		fmt.Print(line)
	}

	io.Copy(io.Discard, os.Stdin)
	in.Close()
	return cmd.Wait()
}

// groupEat uses 256 MiB of memory.
func groupEat() error {
	eaten := make([]byte, 256<<20)
	for i := 0; i < len(eaten); i += 4096 {
		eaten[i] = 1
	}
	runtime.KeepAlive(eaten)
	return nil
}

// groupHold allocates 64 MiB of memory, prints a line, and keeps the memory until its input ends.
func groupHold() error {
	held := make([]byte, 64<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(held)
	return nil
}

// groupBurn uses 300 ms of CPU time after SIGUSR1. If a cpu.stat file is given, it continues until the file shows eight
// more throttled periods.
func groupBurn() error {
	start := make(chan os.Signal, 1)
	signal.Notify(start, unix.SIGUSR1)
	fmt.Println("ready")
	<-start
	throttled := func() float64 {
		if len(os.Args) < 2 {
			return math.Inf(1)
		}
		var v [1]float64
		data, _ := os.ReadFile(os.Args[1])
		parseKeys(data, []string{"nr_throttled"}, v[:])
		return v[0]
	}

	used, least, begin := procfile.Clock(unix.CLOCK_PROCESS_CPUTIME_ID), throttled()+8, time.Now()
	for procfile.Clock(unix.CLOCK_PROCESS_CPUTIME_ID)-used < 300*time.Millisecond || throttled() < least && time.Since(begin) < 5*time.Minute {
	}
	return nil
}

// groupOwnMounts makes this process's mounts private. The process must have been started with CLONE_NEWNS.
func groupOwnMounts() error {
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// groupInV2View runs all checks with only cgroup2 mounted, without controllers.
func groupInV2View() error {
	err := errors.Join(groupOwnMounts(), unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH),
		unix.Mount("none", "/sys/fs/cgroup", "cgroup2", 0, ""))
	try(err)
	m := tried(NewJobGroup(os.Args[1]))
	defer m.Remove()
	g := m.Group()
	if g.Version() != "v2" || g.Path() != g.unified.names[1]+os.Args[1] && g.Path() != g.unified.names[1]+"/"+os.Args[1] {
		return fmt.Errorf("version = %s, path = %s; want v2 and a path with the created group", g.Version(), g.Path())
	}

	var pids []int
	err = m.Enter(func(fd int) error {
		cmd := groupCommand("burn")
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			return err
		}
		bufio.NewReader(out).ReadString('\n')
		pids, _ = g.PIDs()
		cmd.Process.Signal(unix.SIGUSR1)
		if !slices.Equal(pids, []int{cmd.Process.Pid}) {
			return fmt.Errorf("PIDs = %v, want %d", pids, cmd.Process.Pid)
		}
		return cmd.Wait()
	})

	c := g.Read()
	if err != nil || c.CPUSeconds < .29 || c.CPUSeconds > 3 || c.Processes != 0 || c.Pressure.CPU.Some != c.Pressure.CPU.Some {
		return fmt.Errorf("error = %v, counters = %+v; want 0.29 to 3 s of CPU time, 0 processes and known pressure", err, c)
	}
	return m.Remove()
}

// groupInNamespace runs in a v1 memory group with a limit and in a new control group namespace. It mounts the hierarchy
// as a container does.
func groupInNamespace() error {
	dir := tried(os.MkdirTemp("", "group"))
	defer os.Remove(dir)
	err := errors.Join(groupOwnMounts(), unix.Unmount("/sys/fs/cgroup/memory", unix.MNT_DETACH),
		unix.Mount("none", dir, "cgroup", 0, "memory"))
	try(err)
	g := tried(Find(Options{}))
	if l := g.Limits(); l.Memory != 128<<20 || g.memory.names[0] != "/" || l.MemoryGroup != "/" || !g.memory.counts {
		return fmt.Errorf("limits = %+v of groups %v, want 128 MiB of /", l, g.memory.names)
	}
	if c := g.Read(); c.Memory < 4096 || c.LimitPeak < c.Memory/2 {
		return fmt.Errorf("counters = %+v, want memory in use and a peak of the limit", c)
	}
	return unix.Unmount(dir, unix.MNT_DETACH)
}

// groupReadOnly tries to create a group while the control groups are mounted read-only.
func groupReadOnly() error {
	try(groupOwnMounts())
	mounts := tried(os.ReadFile("/proc/self/mountinfo"))

	// At first, all hierarchies except pids are read-only. A group only in pids is useless and must not be left behind.
	for _, pids := range []bool{false, true} {
		for _, m := range parseMounts(mounts) {
			if slices.Contains(m.controllers, "pids") != pids {
				continue
			}
			try(unix.Mount("", m.point, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
		}
		m, err := NewJobGroup(os.Args[1])
		if m != nil || !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), os.Args[1]) {
			return fmt.Errorf("NewJobGroup = %v, %v; want EROFS with the name", m, err)
		}
		if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + os.Args[1]); left != nil {
			return fmt.Errorf("groups left = %v, want none", left)
		}
	}

	return nil
}

// groupAlone runs as the only process of a v2 group. hugetlb can be enabled in that group only after the process has
// left it.
func groupAlone() error {
	g := tried(Find(Options{}))

	own := g.unified.dir()
	m := tried(newJobGroup(os.Args[1], []string{"hugetlb"}))
	defer m.Remove()
	control, _ := os.ReadFile(own + "/cgroup.subtree_control")
	there, _ := os.ReadFile(m.v2.dir + "/cgroup.controllers")
	if !hasWord(control, "hugetlb") || !hasWord(there, "hugetlb") || m.agentDir == "" {
		return fmt.Errorf("controllers enabled = %q, in the job's group = %q, agentDir = %q, Missing = %v; want hugetlb in both", control, there, m.agentDir, m.Missing())
	}
	if pids, err := m.Group().PIDs(); err != nil || len(pids) != 0 {
		return fmt.Errorf("PIDs = %v, error = %v; want none", pids, err)
	}
	err := m.Enter(func(fd int) error {
		cmd := groupCommand("quit")
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
		return cmd.Run()
	})

	try(err)
	try(m.Remove())

	control, _ = os.ReadFile(own + "/cgroup.subtree_control")
	procs, _ := os.ReadFile(own + "/cgroup.procs")
	if hasWord(control, "hugetlb") || string(procs) != fmt.Sprintln(os.Getpid()) || len(children(own)) != 0 {
		return fmt.Errorf("after Remove: controllers = %q, processes = %q, groups = %v; want only this process", control, procs, children(own))
	}
	return nil
}
