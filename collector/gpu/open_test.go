package gpu

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestOpen_IgnoresUnusableNvidiaSMI(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // the working directory belongs to the job and is not searched
	for _, name := range []string{"plain/nvidia-smi", "dir/nvidia-smi/x"} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte("#!/bin/sh\n"), 0o644))
	}

	must(t, os.WriteFile("nvidia-smi", []byte("#!/bin/sh\n"), 0o755))
	sep := string(os.PathListSeparator)
	for _, path := range []string{"", ".", sep, "plain", filepath.Join(dir, "plain"), filepath.Join(dir, "dir") + sep + "/nowhere"} {
		if smi := findSMI([]string{"PATH=" + path}); smi != "" {
			t.Errorf("PATH=%q: findSMI = %s, want no file", path, smi)
		}
	}

	m := Open(Options{Sys: dir, Env: []string{}})
	m.Run(t.Context()) // returns, because there is nothing to monitor
	if r := m.Read(); m.smi != "" || len(r.Devices) != 0 || len(r.Missing) != 0 || r.Err != nil {
		t.Errorf("without PATH: found %q, Reading = %+v; want no file, no devices and no error", m.smi, r)
	}
}

// The interval is at least a second, because the driver's window may last that long.
func TestOpen_IntervalIsAtLeastOneSecond(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "nvidia-smi"), nil, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "nvidia-smi.exe"), nil, 0o755))

	for interval, want := range map[time.Duration][2]time.Duration{
		0: {time.Second, 5 * time.Second}, 100 * time.Millisecond: {time.Second, 5 * time.Second},
		2500 * time.Millisecond: {2500 * time.Millisecond, 7500 * time.Millisecond}, time.Minute: {time.Minute, 3 * time.Minute},
	} {
		m := Open(Options{Env: []string{"PATH=" + dir}, Interval: interval})
		if m.timing.interval != want[0] || m.timing.stale != want[1] {
			t.Errorf("interval %v: timing = %+v, want interval %v and stale %v", interval, m.timing, want[0], want[1])
		}
	}
}
