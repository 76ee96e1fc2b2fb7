//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// patience is the maximum time of a wait.
const patience = 4 * time.Minute

// settled waits until the perfagents of this job have taken their first sample: the ancestor of this process, and the
// perfagents of other tasks in the same Slurm step. Then it waits for a moment at which none of them is sampling, at 1
// Hz. A process that is killed for its memory takes some milliseconds to free it. Until then, the kernel may also kill
// other processes of the group that need a page, such as a perfagent that starts or samples (docs/wrapping.md).
func settled() error {
	journal := journalAbove(os.Getppid())
	if journal == "" {
		return nil
	}
	tasks, _ := strconv.Atoi(os.Getenv("SLURM_NTASKS"))
	tasks = max(1, tasks)

	var journals []string
	for begin := time.Now(); len(journals) < tasks; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > patience {
			return fmt.Errorf("guest: no first sample in %s within %v", filepath.Dir(journal), patience)
		}
		journals = sampled(filepath.Dir(journal))
	}
	// Above 1 Hz there is no such moment, so the wait is limited.
	for begin := time.Now(); !between(journals) && time.Since(begin) < 2*time.Second; {
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// resampled waits until the perfagent above this process has taken a sample that began after the call.
func resampled() error {
	journal := journalAbove(os.Getppid())
	var last time.Time
	begin := time.Now()
	for lines := 0; journal != "" && lines < 3; time.Sleep(time.Millisecond) { // the first change may be seen late
		if time.Since(begin) > patience {
			return fmt.Errorf("guest: no samples in %s within %v", journal, patience)
		}
		if info, err := os.Stat(journal); err == nil && info.ModTime() != last {
			last, lines = info.ModTime(), lines+1
		}
	}
	return nil
}

// meet waits until n processes have called it with the same folder and name.
func meet(dir, name string, n int) error {
	if err := os.WriteFile(fmt.Sprintf("%s/%s.%d", dir, name, os.Getpid()), nil, 0o600); err != nil {
		return err
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if met, _ := filepath.Glob(dir + "/" + name + ".*"); len(met) >= n {
			return nil
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("guest: fewer than %d processes in %s within %v", n, dir, patience)
		}
	}
}

// journalAbove returns the path of the journal that process pid or its nearest ancestor has open, or "".
func journalAbove(pid int) string {
	for pid > 0 {
		open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range open {
			if path, _ := os.Readlink(fd); filepath.Ext(path) == ".jsonl" {
				return path
			}
		}

		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return ""
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		pid, _ = strconv.Atoi(string(fields[1])) // proc_pid_stat(5): state, ppid
	}
	return ""
}

// sampled returns the journals in a folder that contain a sample. It reads only their beginnings, because the memory of
// this process is measured.
func sampled(dir string) (with []string) {
	journals, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	data := make([]byte, 64<<10)
	for _, path := range journals {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		n, _ := io.ReadFull(f, data)
		f.Close()
		if bytes.Contains(data[:n], []byte(`{"sample"`)) {
			with = append(with, path)
		}
	}
	return with
}

// between reports whether no journal has just received a sample or is about to receive one.
func between(journals []string) bool {
	for _, path := range journals {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		if age := time.Since(info.ModTime()); age < 200*time.Millisecond || age > 700*time.Millisecond {
			return false
		}
	}
	return true
}
