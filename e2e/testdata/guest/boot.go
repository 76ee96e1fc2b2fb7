//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// trial is a command for the virtual machine to run. The test has the same type.
type trial struct {
	Name   string      `json:"name"`
	Groups []groupSpec `json:"groups"`
	In     string      `json:"in"`    // group in which the command starts
	Args   []string    `json:"args"`  // the command
	Watch  []string    `json:"watch"` // patterns of files in groups; their contents before and after are reported
}

// groupSpec is a group to create, with the contents to write to its files, in order.
type groupSpec struct {
	Path  string      `json:"path"`
	Files [][2]string `json:"files"`
}

// result is the result of a trial.
type result struct {
	Name   string            `json:"name"`
	Error  string            `json:"error,omitempty"`
	Code   int               `json:"code"`
	Out    string            `json:"out"`
	Err    string            `json:"err"`
	Report string            `json:"report"`
	Before map[string]string `json:"before"`
	After  map[string]string `json:"after"`
	Took   float64           `json:"took"` // duration in seconds, by the guest's clock
}

const groups = "/sys/fs/cgroup"

// boot is the main function of the first process of a virtual machine. It runs the trials in /trials.json, writes a
// line with the result of each to /dev/vdb, and switches the machine off.
func boot() {
	if err := bootAll(); err != nil {
		fmt.Println("guest: FAILED:", err)
	} else {
		fmt.Println("guest: PASSED")
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

func bootAll() error {
	if err := prepare(); err != nil {
		return err
	}
	data, err := os.ReadFile("/trials.json")
	if err != nil {
		return err
	}

	var trials []trial
	if err := json.Unmarshal(data, &trials); err != nil {
		return err
	}

	disk, err := os.OpenFile("/dev/vdb", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer disk.Close()

	for _, t := range trials {
		line, err := json.Marshal(t.run())
		if err != nil {
			line = fmt.Appendf(nil, `{"name":%q,"error":%q}`, t.Name, err)
		}
		if _, err := disk.Write(append(line, '\n')); err != nil {
			return err
		}
		if err := disk.Sync(); err != nil {
			return err
		}
	}

	return nil
}

// prepare mounts the usual file systems, and loads the kernel modules for the disks.
func prepare() error {
	mounts := [][2]string{
		{"proc", "/proc"},
		{"sysfs", "/sys"},
		{"devtmpfs", "/dev"},
		{"cgroup2", groups},
		{"tmpfs", "/tmp"},
	}
	for _, m := range mounts {
		if err := os.MkdirAll(m[1], 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}

	modules := []string{
		"virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk",
	}
	for _, name := range modules {
		if err := load("/mod/" + name + ".ko"); err != nil {
			return err
		}
	}
	return os.WriteFile(groups+"/cgroup.subtree_control", []byte("+cpu +memory +io +pids +cpuset"), 0)
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}

// run runs the command in its group, and returns its outcome, the kernel's counters and the report.
func (t *trial) run() (r result) {
	r.Name = t.Name
	start := time.Now()
	if err := t.try(&r); err != nil {
		r.Error = err.Error()
	}
	if err := t.clear(); err != nil {
		r.Error = strings.TrimSpace(r.Error + " clear: " + err.Error())
	}
	r.Took = time.Since(start).Seconds()
	return r
}

func (t *trial) try(r *result) error {
	if err := t.makeGroups(); err != nil {
		return err
	}
	r.Before = t.watched()
	out := "/tmp/" + t.Name
	stdout, err := os.Create(out + ".stdout")
	if err != nil {
		return err
	}
	defer stdout.Close()

	stderr, err := os.Create(out + ".stderr")
	if err != nil {
		return err
	}
	defer stderr.Close()

	group, err := os.Open(filepath.Join(groups, t.In))
	if err != nil {
		return err
	}
	defer group.Close()

	cmd := exec.Command(t.Args[0], t.Args[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = []string{"PATH=/bin", "HOME=/", "PERFAGENT_OUT=" + out}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	late := time.AfterFunc(longest, t.late)
	err = cmd.Run()
	if !late.Stop() {
		return fmt.Errorf("still running after %v", longest)
	}

	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}

	r.Code = cmd.ProcessState.ExitCode()
	r.After = t.watched()
	said, _ := os.ReadFile(out + ".stdout")
	complaints, _ := os.ReadFile(out + ".stderr")
	r.Out, r.Err = string(said), string(complaints)
	return r.readReport(out)
}

// longest is the time limit of a trial. A trial usually takes seconds, because the machine is slow.
const longest = 5 * time.Minute

// late prints the kernel stacks of the machine's processes, and kills the processes of the trial.
func (t *trial) late() {
	fmt.Printf("guest: %s is not over after %v\n", t.Name, longest)
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/*")
	for _, task := range tasks {
		name, _ := os.ReadFile(task + "/comm")
		stack, _ := os.ReadFile(task + "/stack")
		if _, err := os.Readlink(task + "/exe"); err == nil { // skip kernel threads, which have no executable
			fmt.Printf("guest: %s %s%s", task, name, stack)
		}
	}
	for _, g := range t.Groups {
		_ = os.WriteFile(filepath.Join(groups, g.Path, "cgroup.kill"), []byte("1"), 0)
	}
}

// readReport adds the report to the result. There must be exactly one.
func (r *result) readReport(out string) error {
	paths, _ := filepath.Glob(out + "/*/node-*.json")
	if len(paths) != 1 {
		return fmt.Errorf("found %d reports, want 1", len(paths))
	}
	data, err := os.ReadFile(paths[0])
	r.Report = string(data)
	return err
}

func (t *trial) makeGroups() error {
	for _, g := range t.Groups {
		dir := filepath.Join(groups, g.Path)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		for _, f := range g.Files {
			if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// watched returns the contents of the files that match Watch.
func (t *trial) watched() map[string]string {
	out := map[string]string{}
	for _, pattern := range t.Watch {
		paths, _ := filepath.Glob(filepath.Join(groups, pattern))
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				data = []byte(err.Error())
			}
			out[strings.TrimPrefix(path, groups+"/")] = string(data)
		}
	}
	return out
}

// clear kills the remaining processes of the trial and removes its groups.
func (t *trial) clear() error {
	for _, g := range slices.Backward(t.Groups) {
		top := filepath.Join(groups, g.Path)
		_ = os.WriteFile(filepath.Join(top, "cgroup.kill"), []byte("1"), 0)
		if err := await(func() bool { return empty(top) }); err != nil {
			return fmt.Errorf("%s is not empty: %w", top, err)
		}

		var dirs []string
		_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})

		for _, dir := range slices.Backward(dirs) {
			if err := await(func() bool { return os.Remove(dir) == nil }); err != nil {
				return fmt.Errorf("remove %s: %w", dir, err)
			}
		}
	}
	return nil
}

// empty reports whether the group dir and all groups below it have no processes. It first reaps orphans that have
// ended, because this is the first process of the machine.
func empty(dir string) bool {
	for {
		var status unix.WaitStatus
		if pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	return err != nil || bytes.Contains(data, []byte("populated 0"))
}

func await(done func() bool) error {
	const polls = 60000
	for range polls {
		if done() {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("still false after " + strconv.Itoa(polls) + " polls")
}
