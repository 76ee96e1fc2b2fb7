//go:build linux

// Command guest is a program that tests run where there are no other programs: in containers without files, and in a
// virtual machine, where it is also the first process. It is statically linked.
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

// play runs one part of a job.
func play(part string, args []string) error {
	switch part {
	case "burn": // SECONDS THREADS [PULSES]: uses CPU time, then works briefly PULSES times
		burn(number(args[0]), int(number(args[1])))
		if len(args) > 2 {
			pulse(int(number(args[2])))
		}
	case "children": // N SECONDS: runs N processes that use CPU time, two at a time
		return children(int(number(args[0])), args[1])
	case "hog": // MiB SECONDS [DIR N]: allocates memory, and keeps it for a time, while N such processes keep theirs
		return hog(int(number(args[0])), number(args[1]), args[2:])
	case "write": // FILE MiB: writes to the device, not only to a cache
		return writeSync(args[0], int(number(args[1])))
	case "parent": // CODE PART...: runs a part as a child, and exits with CODE if the child fails
		if self(args[1:]...).Run() != nil {
			os.Exit(int(number(args[0])))
		}
	case "daemon": // SECONDS: leaves a process running, and prints its ID
		return daemon(args[0])
	case "sleep": // SECONDS: sleeps
		time.Sleep(seconds(number(args[0])))
	case "truth": // PART...: runs a part, and prints the kernel's counters before and after it
		return truth(args)
	case "namespaced": // MOUNT PROGRAM...: runs a program in a control group namespace; MOUNT "new" mounts cgroupfs again
		return namespaced(args[0], args[1:])
	case "nfs": // PROGRAM...: runs a program on a machine that mounts its own NFS export
		return nfs(args)
	case "usenfs": // MiB FILES: writes and reads data, and looks up files, over NFS
		return useNFS(int(number(args[0])), int(number(args[1])))
	case "hangnfs": // SECONDS: stops the NFS server for a time
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

// self prepares this program to run another part as a child process.
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

// burn uses CPU time until this process has used budget seconds since its start.
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

// pulse uses a millisecond of CPU time every 100 ms, n times.
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

// hog allocates memory, and keeps it for a number of seconds and until perfagent has measured it. It maps all memory in
// one call: while the victim of an out-of-memory kill is in mmap, the kernel cannot reclaim its memory, and may kill
// another process as well.
func hog(mib int, keep float64, others []string) error {
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
	if len(others) > 0 {
		if err := meet(others[0], "keeps", int(number(others[1]))); err != nil {
			return err
		}
	}
	time.Sleep(seconds(keep))
	if keep > 0 {
		err = resampled()
	}
	if len(others) > 0 {
		err = errors.Join(err, meet(others[0], "kept", int(number(others[1]))))
	}
	return err
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

// counters holds the kernel's counters of this process's control group.
type counters struct {
	CPU          float64 `json:"cpu"`   // seconds
	Agent        float64 `json:"agent"` // CPU time of perfagent in seconds
	Periods      float64 `json:"periods"`
	Throttled    float64 `json:"throttled"`
	OOMKills     float64 `json:"oom_kills"`
	Peak         float64 `json:"peak"`          // bytes
	ThrottledFor float64 `json:"throttled_for"` // seconds
	Own          float64 `json:"own"`           // CPU time of this process in seconds
}

// truth runs a part, and then prints the kernel's counters before and after it.
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

// namespaced replaces this process with another program in a new control group namespace. To that program, its group is
// the root.
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

// agentCPU returns the CPU time of the parent process in seconds, with nanosecond resolution.
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
