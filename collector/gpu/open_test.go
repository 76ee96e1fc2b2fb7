package gpu

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestOpen_IgnoresUnusableNvidiaSMI(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // the working directory is the job's, and not searched
	for _, name := range []string{"plain/nvidia-smi", "dir/nvidia-smi/x"} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	must(t, os.WriteFile("nvidia-smi", []byte("#!/bin/sh\n"), 0o755))
	sep := string(os.PathListSeparator)
	for _, path := range []string{"", ".", sep, "plain", filepath.Join(dir, "plain"), filepath.Join(dir, "dir") + sep + "/nowhere"} {
		if smi := findSMI([]string{"PATH=" + path}); smi != "" {
			t.Errorf("PATH=%q: found %s, want nothing", path, smi)
		}
	}

	m := Open(Options{Sys: dir, Env: []string{}})
	m.Run(t.Context()) // there is nothing to monitor
	if r := m.Read(); m.smi != "" || len(r.Devices) != 0 || len(r.Missing) != 0 || r.Err != nil {
		t.Errorf("without PATH: found %q, Reading %+v; want nothing, and no error", m.smi, r)
	}
}

// The interval is at least a second: the driver's window is up to that long.
func TestOpen_IntervalIsAtLeastOneSecond(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "nvidia-smi"), nil, 0o755))
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi.exe"), nil, 0o755); err != nil {
		t.Fatal(err)
	}

	for interval, want := range map[time.Duration][2]time.Duration{
		0: {time.Second, 5 * time.Second}, 100 * time.Millisecond: {time.Second, 5 * time.Second},
		2500 * time.Millisecond: {2500 * time.Millisecond, 7500 * time.Millisecond}, time.Minute: {time.Minute, 3 * time.Minute},
	} {
		m := Open(Options{Env: []string{"PATH=" + dir}, Interval: interval})
		if m.timing.interval != want[0] || m.timing.stale != want[1] {
			t.Errorf("interval %v: timing %+v, want interval %v and stale %v", interval, m.timing, want[0], want[1])
		}
	}
}
