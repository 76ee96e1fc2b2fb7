//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// settled waits until perfagent, if this process is below one, and those of the other tasks of its Slurm step have taken
// their first sample, and then for a moment between two samples of each, if there is one. For some milliseconds after a
// kill for memory the victim has not given it back, and the kernel no longer counts it as dying: who needs a page then is
// killed, too, which may be a perfagent that starts or samples (docs/limits.md).
func settled() error {
	journal := journalAbove(os.Getppid())
	if journal == "" {
		return nil
	}
	tasks, _ := strconv.Atoi(os.Getenv("SLURM_NTASKS"))
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		begun, between := sampled(filepath.Dir(journal))
		if begun >= max(1, tasks) && (between == begun || time.Since(begin) > 5*time.Second) {
			return nil
		}
	}
	return fmt.Errorf("guest: no first sample in %s within a minute", filepath.Dir(journal))
}

// journalAbove returns the path of the journal that the nearest ancestor with one has open, or "".
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

// sampled returns how many journals in a folder have a sample, and how many of these are not about to get another one at
// 1 Hz.
func sampled(dir string) (begun, between int) {
	journals, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, path := range journals {
		data, err := os.ReadFile(path)
		info, err2 := os.Stat(path)
		if err != nil || err2 != nil || !bytes.Contains(data, []byte(`{"sample"`)) {
			continue
		}
		begun++
		if age := time.Since(info.ModTime()); age > 200*time.Millisecond && age < 700*time.Millisecond {
			between++
		}
	}
	return begun, between
}
