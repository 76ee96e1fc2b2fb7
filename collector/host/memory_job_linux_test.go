package host

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/testenv"
)

// Swapped-out memory is part of the job's memory, and is also reported separately.
func TestReader_MemoryOfGroupIncludesSwap(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"memory.current":      "104857600\n",
		"memory.stat":         "anon 94371840\nfile 10485760\nshmem 0\ninactive_file 10485760\n",
		"memory.swap.current": "52428800\n",
	} {
		write(t, root, "sys/fs/cgroup/job/"+name, []byte(text))
	}
	r := NewReader(Options{Job: JobOptions{Source: JobFromCreated, Group: emptyGroupIn(t, root), Running: true}, JobOnly: true, Now: eachSecond()})
	t.Cleanup(r.Close)
	write(t, root, "sys/fs/cgroup/job/cgroup.procs", []byte("42\n"))
	use := r.Read().Job
	same(t, "memory and its swapped-out part, MiB", [2]float64{use.Memory / mib, use.Swap / mib}, [2]float64{140, 50})
	same(t, "MemoryKind", use.MemoryKind, MemoryGroup)
}

// memoryHolder is a program that uses memory in one of several ways, prints a line, and runs until its input ends.
const memoryHolder = `
import mmap, os, sys
how, mib = sys.argv[1], int(sys.argv[2])
size = mib << 20
if how == "anonymous":
    held = bytearray(size)
    for i in range(0, size, 4096): held[i] = 1
elif how == "open":
    held = os.memfd_create("held")
    for _ in range(mib): os.write(held, b"x" * (1 << 20))
else:
    held = mmap.mmap(-1, size)
    for i in range(0, size, 4096): held[i] = 1
    for _ in range(2):
        if os.fork() == 0:
            held[0] + sum(held[i] for i in range(0, size, 4096))
            os.write(1, b"child\n")
            sys.stdin.read()
            os._exit(0)
print("held", flush=True)
sys.stdin.read()
`

// The process tree and the control group agree on the memory of a job, for each kind of memory.
func TestTree_AgreesWithGroupOnMemory(t *testing.T) {
	testenv.SkipIfShort(t, "some seconds")
	python := os.Getenv("PERFAGENT_TEST_PYTHON")
	if python == "" {
		python = testenv.NeedsTool(t, "python3", "apt-get install python3, or make test")
	}
	for how, lines := range map[string]int{"anonymous": 1, "open": 1, "mapped": 3} {
		t.Run(how, func(t *testing.T) {
			made, err := cgroup.NewJobGroup(fmt.Sprintf("perfagent-test-%d-memory-%s", os.Getpid(), how))
			if err != nil {
				t.Skipf("cannot create a control group; run as root with writable control groups: %v", err)
			}
			defer func() { _ = made.Remove() }()

			tree := process.NewTree(process.Options{Root: os.Getpid()}) // before the job
			defer tree.Close()
			cmd := exec.Command(python, "-c", memoryHolder, how, "256")
			end := startInGroup(t, made, cmd, lines)
			defer end()
			c := made.Group().Read()
			group := c.Memory - c.PageCache
			if math.IsNaN(group) {
				t.Skip("needs the memory controller; run as root with writable control groups")
			}
			u, err := tree.Read()
			for tries := 1; u.MemoryKind != MemoryPSS && tries < 10; tries++ { // on a busy machine, a pass may not end in time
				u, err = tree.Read()
			}
			if err != nil || u.MemoryKind != MemoryPSS {
				t.Fatalf("usage = %+v, error = %v; want memory as PSS", u, err)
			}
			t.Logf("group %.1f MiB, tree %.1f MiB", group/mib, u.Memory/mib)
			if math.Abs(u.Memory-group) > 0.05*group {
				t.Errorf("memory of the tree = %.1f MiB, want the group's %.1f MiB within 5 %%", u.Memory/mib, group/mib)
			}
		})
	}
}

// startInGroup starts cmd in the group made, waits for the given number of lines of output, and returns a function that
// ends it.
func startInGroup(t *testing.T, made *cgroup.JobGroup, cmd *exec.Cmd, lines int) (end func()) {
	t.Helper()
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	input, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	err = made.Enter(func(fd int) error {
		if fd >= 0 {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
		}
		return cmd.Start()
	})
	must(t, err)
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // ends the read below
	from := bufio.NewReader(out)
	for range lines {
		if _, err := from.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		_ = input.Close()
		_, _ = io.Copy(io.Discard, from) // until all processes of cmd have ended
		_ = cmd.Wait()
		late.Stop()
	}
}
