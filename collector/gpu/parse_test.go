package gpu

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

var gpuUpdate = flag.Bool("update", false, "write the golden files anew")

// all accepts any number of bytes.
func all(int) bool { return true }

// gpuBoard feeds a transcript to a vendorState, as Run does.
func gpuBoard(data []byte, now time.Time) *vendorState {
	b := &vendorState{queryStarted: now}
	q := newQuery()
	readLines(bytes.NewReader(data), func(line []byte) {
		if len(line) > 0 && line[0] == '#' {
			return
		}
		if r, err := q.parse(line); err == nil {
			b.put(r, now)
		} else if text := clean(string(line)); text != "" {
			b.message, b.messageAt = text, now
		}
	}, all)
	return b
}

// gpuDump formats a reading.
func gpuDump(r Reading) []byte {
	var b bytes.Buffer
	for i, d := range r.Devices {
		s := r.States[i]
		fmt.Fprintf(&b, "%d %s %q %s: %v MiB, %v W, MIG %t\n", d.Index, d.Vendor, d.Name, d.UUID, d.MemoryMB, d.PowerLimitWatts, d.MIG)
		fmt.Fprintf(&b, "  %v %%, %v MiB, %v W, %v °C, %v MHz, %v J, %v\n", s.UtilizationPct, s.MemoryUsedMB, s.PowerWatts,
			s.TemperatureCelsius, s.ClockMHz, s.EnergyJoules, s.Throttle)
	}
	for _, g := range r.Missing {
		fmt.Fprintf(&b, "missing %s: %s\n", g.What, g.Why)
	}
	fmt.Fprintf(&b, "error: %v\n", r.Err)
	return b.Bytes()
}

func TestVendorState_MatchesGoldenTranscripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) < 9 {
		t.Fatalf("fixtures = %v, want at least 9", files)
	}

	for _, file := range files {
		data := check.Value(os.ReadFile(file))(t)
		now := time.Now()
		var r Reading
		gpuBoard(data, now).add(&r, now, time.Minute, 0)
		gpuGolden(t, strings.TrimSuffix(file, ".txt")+".golden", gpuDump(r))
	}
}

// The rows of a real device have all values, and the error message of its driver names the unknown field.
func TestQuery_ParsesRealDevice(t *testing.T) {
	rows := check.Value(os.ReadFile("testdata/device/query-ours.txt"))(t)
	for line := range bytes.Lines(rows) {
		if r, err := newQuery().parse(bytes.TrimSpace(line)); err != nil || len(r.missing) > 0 || r.PowerWatts < 70 || r.PowerWatts > 121 {
			t.Errorf("row %s = %+v, error = %v; want all values, and 70 to 121 W", line, r, err)
		}
	}

	message := check.Value(os.ReadFile("testdata/device/refused.txt"))(t)
	got := parseInvalidField(string(message))
	check.True(t, got == "no.such.field", "parseInvalidField(%s) = %q, want no.such.field", message, got)
}

// gpuGolden compares got with a golden file.
func gpuGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *gpuUpdate {
		must(t, os.WriteFile(file, got, 0o644))
	}
	want := check.Value(os.ReadFile(file))(t)
	check.True(t, bytes.Equal(got, want), "%s:\n%s\nwant:\n%s", file, got, want)
}

func TestReadLines_TruncatesLongLines(t *testing.T) {
	text := "a\n\nb\n" + strings.Repeat("x", 3*maxLine) + "\nc\nrest"
	for size := 1; size < len(text); size = size*3 + 1 {
		var got []string
		var parts []io.Reader
		for part := range slices.Chunk([]byte(text), size) {
			parts = append(parts, bytes.NewReader(part))
		}
		readLines(io.MultiReader(parts...), func(line []byte) { got = append(got, string(line)) }, all)
		want := []string{"a", "", "b", strings.Repeat("x", maxLine), "c"}
		check.True(t, slices.Equal(got, want), "in pieces of %d bytes: lines = %.80q, want %.80q", size, got, want)
	}
}

func TestParseThrottle_NamesKnownReasons(t *testing.T) {
	for text, want := range map[string]string{
		"0x0000000000000000": "", "0x0000000000000001": "",
		"0x00000000000001FF": "applications_clocks_setting sw_power_cap hw_slowdown sync_boost sw_thermal_slowdown hw_thermal_slowdown hw_power_brake_slowdown display_clock_setting",
		"0xFFFFFFFFFFFFFE00": "", "0x8": "hw_slowdown",
	} {
		got, ok := parseThrottle(text)
		check.True(t, ok && strings.Join(got, " ") == want, "parseThrottle(%q) = %v, %v; want %q", text, got, ok, want)
	}

	for _, text := range []string{"", "0x", "12", "[N/A]", "0x11111111111111111", "Active"} {
		got, ok := parseThrottle(text)
		check.True(t, !ok && got == nil, "parseThrottle(%q) = %v, %v; want nil, false", text, got, ok)
	}
}

func TestParseInvalidField_FindsQuotedName(t *testing.T) {
	for line, want := range map[string]string{
		`Field "mig.mode.current" is not a valid field to query.`: "mig.mode.current",
		`Field "" is not a valid field to query.`:                 "",
		`Field "a`: "", `Field "a" is fine`: "", "": "",
	} {
		same(t, fmt.Sprintf("parseInvalidField(%q)", line), parseInvalidField(line), want)
	}
	q := newQuery()
	check.True(t, !q.dropField("foo") && !q.dropField("index") && len(q.fields) == len(newQuery().fields),
		"dropField dropped a field that was not requested, or the required index")
}

// The first round shows all devices. A device that is absent from later rounds is missing.
func TestVendorState_VanishedDeviceIsMissing(t *testing.T) {
	data := check.Value(os.ReadFile("testdata/a100x8.txt"))(t)
	start := time.Now()
	b := gpuBoard(data, start)
	check.True(t, !b.complete, "complete = true before the second round")
	later := start.Add(6 * time.Second)
	q := newQuery()
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n"))[2:] {
		if i == 3 {
			continue
		}
		if i > 3 { // nvidia-smi renumbers the devices
			line = append([]byte{line[0] - 1}, line[1:]...)
		}
		r := check.Value(q.parse(line))(t)
		b.put(r, later)
	}

	var r Reading
	b.add(&r, later, 5*time.Second, 0)
	check.True(t, len(r.Devices) == 8 && math.IsNaN(r.States[3].PowerWatts) && r.States[7].PowerWatts == 277.41 && b.complete,
		"Reading = %s, want 8 devices, no power for device 3, 277.41 W for device 7", gpuDump(r))
	check.True(t, len(r.Missing) == 1 && r.Missing[0] == (series.Missing{What: "gpu_3", Code: Silent, Why: "no reading for 6 s"}),
		"missing = %v, want only gpu_3, without a reading for 6 s", r.Missing)
}

func TestVendorState_MonitorsAtMost16Devices(t *testing.T) {
	data := check.Value(os.ReadFile("testdata/h100x16.txt"))(t)
	more := "16, GPU-x, NVIDIA H100, 1, 1, 1, 1, 1, 1, 1, 1, Disabled, 0x0\n17, GPU-y, NVIDIA H100, 1, 1, 1, 1, 1, 1, 1, 1, Disabled, 0x0\n"
	data = append(data, more...)
	now := time.Now()
	b := gpuBoard(slices.Repeat(data, 5), now)
	var r Reading
	b.add(&r, now, time.Minute, 0)
	check.True(t, len(r.Devices) == 16 && len(r.Missing) == 1 && r.Missing[0].Why == "18 devices: only the first 16 are followed",
		"%d devices, missing = %v; want 16 devices, and a note that there are 18", len(r.Devices), r.Missing)
}

func FuzzGPULines(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		f.Add(data)
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		now := time.Now()
		var r Reading
		gpuBoard(data, now).add(&r, now, time.Minute, 0)
		if len(r.Devices) > maxDevices || len(r.Devices) != len(r.States) {
			t.Fatalf("%d devices, %d states; want the same number, at most %d", len(r.Devices), len(r.States), maxDevices)
		}
		for i, s := range r.States {
			for _, v := range []float64{s.UtilizationPct, s.MemoryUsedMB, s.PowerWatts, s.TemperatureCelsius, s.ClockMHz, float64(r.Devices[i].MemoryMB)} {
				if v < 0 || v > maxMiB || math.IsInf(v, 0) {
					t.Fatalf("value = %v, want one from 0 to %d, in %s", v, maxMiB, gpuDump(r))
				}
			}
		}
		for _, g := range r.Missing {
			if strings.ContainsAny(g.Why, "\n\x00\x1b") || len(g.Why) > 400 {
				t.Fatalf("reason = %q, want one line of at most 400 bytes", g.Why)
			}
		}
		parseInvalidField(string(data))
	})
}

// BenchmarkGPUNone measures the total cost on a node without a GPU: one Open and one Run.
func BenchmarkGPUNone(b *testing.B) {
	o := Options{Env: []string{"HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	for b.Loop() {
		m := Open(o)
		m.Run(b.Context())
		if m.smi != "" || len(m.cards) > 0 {
			b.Skip("needs a machine without a GPU")
		}
	}
}

// must ends a test on an error. same compares two values.
var must, same = check.Must, collectortest.Same

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
		smi := findSMI([]string{"PATH=" + path})
		check.True(t, smi == "", "PATH=%q: findSMI = %s, want no file", path, smi)
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
		check.True(t, m.timing.interval == want[0] && m.timing.stale == want[1],
			"interval %v: timing = %+v, want interval %v and stale %v", interval, m.timing, want[0], want[1])
	}
}
