package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// optionalJob runs a job on a host of testdata/optional. The job waits until the journal contains word, and then for
// another second, because the summary of a shorter job has no rows of the node. Then it changes the host's counters.
func optionalJob(t *testing.T, proc, sys, word, change string) clitest.Outcome {
	t.Helper()
	job := `until grep -q '` + word + `' perfagent-out/*/node-0.jsonl 2>/dev/null; do sleep 0.02; done; sleep 1; cd "$0"; ` + change
	cmd := clitest.Perfagent(t, "run", "--interval", "100ms", "--summary", "always", "--", "sh", "-euc", job, filepath.Dir(proc))
	return mustExit(t, 0, with(cmd, "HOST_PROC="+proc, "HOST_SYS="+sys))
}

// optionalTree unpacks a host of testdata/optional into one directory with proc and sys.
func optionalTree(t *testing.T, name string) (proc, sys string) {
	t.Helper()
	dir := clitest.OpenTemp(t)
	fromProc, fromSys := collectortest.OptionalDevices(t, name)
	for part, from := range map[string]string{"proc": fromProc, "sys": fromSys} {
		check.Must(t, os.CopyFS(filepath.Join(dir, part), os.DirFS(from)))
	}
	return filepath.Join(dir, "proc"), filepath.Join(dir, "sys")
}

// The exact change of a host's counters during the job is in the report and in the output of show.
func TestOptionalDevices_ReportsGrowthOfCounters(t *testing.T) {
	t.Parallel()
	const sample = `"sample"`
	for name, c := range map[string]struct {
		word, change string
		want         map[string]float64
		says         string
	}{
		"nfs-4.1": {sample, // 10 MiB read, 3 MiB written, 100 GETATTR calls of 2.5 s in total
			`sed -i 's/1788561151 39087991255 442605/1799046911 39091136983 442605/; s/GETATTR: 52480 52480 0 10015464 12694076 2930 30069 34502/GETATTR: 52580 52581 1 10015464 12694076 3330 32069 37002/' proc/1/mountstats`,
			map[string]float64{"total_nfs_read_mb": 10, "total_nfs_write_mb": 3}, "\nNFS "},
		"lustre-2.10": {sample, `sed -i 's/1 samples .bytes. 4194304 4194304 4194304/2 samples [bytes] 4194304 4194304 9437184/' proc/fs/lustre/llite/*/stats`,
			map[string]float64{"total_lustre_read_mb": 5, "total_lustre_write_mb": 0}, "\nLustre "},
		"intel-four": {sample, `echo 100050000000 >sys/class/powercap/intel-rapl:0/energy_uj; echo 37881987688 >sys/class/powercap/intel-rapl:0:0/energy_uj; ` +
			`echo 9999999999 >sys/class/powercap/intel-rapl:4/energy_uj`, map[string]float64{"node_energy_joules": 60}, "\nenergy "},
		"intel": {"cpu_throttle_event[s]", `echo 33 >sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count; ` +
			`echo 7 >sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count; echo 93500 >sys/class/hwmon/hwmon1/temp1_input`,
			map[string]float64{"total_cpu_throttle_events": 5, "max_t_cpu_temperature_celsius": 93.5, "node_energy_joules": 0}, "clocked down 5 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proc, sys := optionalTree(t, name)
			o := optionalJob(t, proc, sys, c.word, c.change)
			n := o.Report(t).Nodes["0"]
			for metric, want := range c.want {
				if got, ok := n.Metrics[metric]; !ok || math.Abs(got-want) > 1e-6 {
					t.Errorf("%s is %v (known: %v), want %v", metric, got, ok, want)
				}
			}
			if shown := call("show", theReport(t, o)); !strings.Contains(shown.Out, c.says) {
				t.Errorf("show lacks %q:\n%s", c.says, shown.Out)
			}
			if name == "nfs-4.1" && (len(n.Mounts) != 1 || n.Mounts[0].Calls != 100 || n.Mounts[0].ExecuteSeconds != 2.5 ||
				*n.Mounts[0].Retransmissions != 1 || *n.Mounts[0].QueueSeconds != 0.4 || *n.Mounts[0].RTTSeconds != 2 || n.Mounts[0].Operations[0].Name != "GETATTR") {
				t.Errorf("mounts %+v, want one with 100 calls of 2.5 s and 1 retransmission, GETATTR first", n.Mounts)
			}
		})
	}
}

// The report lists counters that the user may not read as missing, with the reason. The summary does not mention them.
func TestOptionalDevices_ReportsCountersThatUserMayNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ files, lacks []string }{ // lacks begins with the source
		"nfs-4.1":     {[]string{"proc/1/mountstats"}, []string{"nfs", "total_nfs_read_mb", "total_nfs_write_mb"}},
		"lustre-2.14": {[]string{"sys/kernel/debug"}, []string{"lustre", "total_lustre_read_mb", "total_lustre_write_mb"}},
		"intel": {[]string{"sys/class/powercap/intel-rapl:0/energy_uj", "sys/class/powercap/intel-rapl:0:0/energy_uj"},
			[]string{"energy", "max_t_node_power_watts", "node_energy_joules"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proc, sys := optionalTree(t, name)
			for _, file := range c.files {
				path := filepath.Join(filepath.Dir(proc), file)
				check.Must(t, os.Chmod(path, 0))
				t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
			}
			cmd := clitest.Perfagent(t, "run", "--interval", "100ms", "--summary", "always", "--", "sleep", "0.3")
			o := mustExit(t, 0, clitest.AsNobody(t, with(cmd, "HOST_PROC="+proc, "HOST_SYS="+sys)))
			n := o.Report(t).Nodes["0"]
			var got []string
			said := strings.Join(strings.Fields(o.Err), " ")
			for _, m := range n.Missing {
				if m.Code != "root_only" {
					continue
				}
				if got = append(got, m.What); strings.Contains(said, m.Why) {
					t.Errorf("the summary mentions why %s is missing, want no mention:\n%s", m.What, o.Err)
				}
			}
			if slices.Sort(got); !slices.Equal(got, c.lacks) {
				t.Errorf("missing as root_only: %q, want %q; all: %+v", got, c.lacks, n.Missing)
			}
			if strings.Contains(o.Err, c.lacks[0]) {
				t.Errorf("the summary mentions %s, want no mention:\n%s", c.lacks[0], o.Err)
			}
		})
	}
}

// Devices that the host lacks do not appear in the report, the journal or the summary.
func TestOptionalDevices_AbsentDevicesAreNotMentioned(t *testing.T) {
	t.Parallel()
	proc, sys := optionalTree(t, "amd")
	check.Must(t, os.RemoveAll(filepath.Join(sys, "class", "hwmon")))
	o := optionalJob(t, proc, sys, `"sample"`, `cp "$OLDPWD"/perfagent-out/*/node-0.jsonl journal`)
	all := string(encoded(t, o.Report(t))) + clitest.Read(t, filepath.Join(filepath.Dir(proc), "journal")) + o.Err
	for _, word := range []string{"nfs", "lustre", "energy", "temperature", "throttle_", "mounts", "thermal", "NFS", "Lustre"} {
		if at := strings.Index(all, word); at >= 0 {
			t.Errorf("output mentions %s, which the host lacks: …%s…", word, all[max(0, at-60):min(len(all), at+60)])
		}
	}
}
