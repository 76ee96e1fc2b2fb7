//go:build linux

// Command guest is what the tests run where there is nothing else: in containers without
// files, and in a virtual machine, where it also is the first process. It is built static.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if os.Getpid() == 1 && len(os.Args) == 1 {
		boot()
	}
	if len(os.Args) < 2 {
		fail(errors.New("guest: no part"))
	}
	if err := play(os.Args[1], os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(99)
}

// play is one part of a job.
func play(part string, args []string) error {
	switch part {
	case "burn": // SECONDS THREADS [PULSES]: so much CPU time, then so often a little of it
		burn(number(args[0]), int(number(args[1])))
		if len(args) > 2 {
			pulse(int(number(args[2])))
		}
	case "children": // N SECONDS: N processes of so much CPU time each, two at a time
		return children(int(number(args[0])), args[1])
	case "hog": // MiB SECONDS: takes so much memory, and keeps it so long
		return hog(int(number(args[0])), number(args[1]))
	case "write": // FILE MiB: to the device, not to a cache
		return writeSync(args[0], int(number(args[1])))
	case "parent": // CODE PART...: ends with CODE when the part that it started failed
		if self(args[1:]...).Run() != nil {
			os.Exit(int(number(args[0])))
		}
	case "daemon": // SECONDS: leaves a process behind, and prints its id
		return daemon(args[0])
	case "sleep": // SECONDS
		time.Sleep(seconds(number(args[0])))
	case "truth": // PART...: a part, and what the kernel's counters say of it
		return truth(args)
	case "namespaced": // MOUNT PROGRAM...: in a control group namespace; MOUNT "new": with its own mount
		return namespaced(args[0], args[1:])
	case "nfs": // PROGRAM...: on a machine that mounts what it serves
		return nfs(args)
	case "usenfs": // MiB FILES
		return useNFS(int(number(args[0])), int(number(args[1])))
	case "hangnfs": // SECONDS: for which the server does not answer
		return hangNFS(seconds(number(args[0])))
	default:
		return fmt.Errorf("guest: no part %q", part)
	}
	return nil
}

func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		fail(err)
	}
	return v
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// self prepares another part as a child.
func self(args ...string) *exec.Cmd {
	cmd := exec.Command(program(), args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// program returns the path of this program.
func program() string {
	path, err := os.Executable()
	if err != nil {
		fail(err)
	}
	return path
}

// burn uses so much CPU time, this process's whole life counted.
func burn(budget float64, threads int) {
	var wait sync.WaitGroup
	for range threads {
		wait.Go(func() {
			runtime.LockOSThread()
			for x := 1.0; used() < budget; {
				for range 20000 {
					x = x*1.0000001 + 1e-9
				}
			}
		})
	}
	wait.Wait()
}

// pulse works a little every 100 ms.
func pulse(n int) {
	for range n {
		time.Sleep(100 * time.Millisecond)
		burn(used()+0.001, 1)
	}
}

// used returns the CPU time of this process, in seconds.
func used() float64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		fail(err)
	}
	return time.Duration(now.Nano()).Seconds()
}

func children(n int, budget string) error {
	slots := make(chan struct{}, 2)
	errs := make(chan error, n)
	for range n {
		slots <- struct{}{}
		go func() {
			errs <- self("burn", budget, "1").Run()
			<-slots
		}()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return all
}

// hog maps it all at once: while the victim of an out-of-memory kill is in mmap, the kernel
// cannot take its memory away, and may then kill another process, too.
func hog(mib int, keep float64) error {
	if err := settled(); err != nil {
		return err
	}
	mem, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
	time.Sleep(seconds(keep))
	return nil
}

func writeSync(path string, mib int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_SYNC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for data := make([]byte, 1<<20); mib > 0; mib-- {
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func daemon(keep string) error {
	cmd := exec.Command(program(), "sleep", keep)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	return nil
}

// counters are the kernel's, of the control group that this process is in.
type counters struct {
	CPU          float64 `json:"cpu"` // seconds
	Agent        float64 `json:"agent"`
	Periods      float64 `json:"periods"`
	Throttled    float64 `json:"throttled"`
	OOMKills     float64 `json:"oom_kills"`
	Peak         float64 `json:"peak"`          // bytes
	ThrottledFor float64 `json:"throttled_for"` // seconds
	Own          float64 `json:"own"`           // CPU seconds of this process
}

// truth plays a part, then writes what the kernel counted before and after it.
func truth(args []string) error {
	before, err := json.Marshal(readCounters())
	if err != nil {
		return err
	}
	err = self(args...).Run()
	after, errJSON := json.Marshal(readCounters())
	if errJSON != nil {
		return errJSON
	}
	fmt.Printf("truth [%s,%s]\n", before, after)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(1)
	}
	return err
}

// namespaced becomes another program in a new control group namespace: its group is the
// root that it sees.
func namespaced(mount string, args []string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if mount == "new" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make the mounts private: %w", err)
		}
		if err := unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount: %w", err)
		}
		if err := unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""); err != nil {
			return fmt.Errorf("mount cgroup2: %w", err)
		}
	}
	return unix.Exec(args[0], args, os.Environ())
}

// agentCPU returns the CPU time of the process above us, to the nanosecond.
func agentCPU() float64 {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(os.Getppid()) + "/task/*/schedstat")
	sum := 0.0
	for _, path := range tasks {
		var nanos float64
		if data, err := os.ReadFile(path); err == nil {
			_, _ = fmt.Sscan(string(data), &nanos)
		}
		sum += nanos
	}
	return sum / 1e9
}
