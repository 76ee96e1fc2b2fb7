package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// An optionalHost is a host of testdata/optional with a clock of the test.
type optionalHost struct {
	*Reader
	proc, sys string
	now       time.Duration
}

func openOptional(t testing.TB, name string) *optionalHost {
	t.Helper()
	proc, sys := collectortest.OptionalDevices(t, name)
	h := &optionalHost{proc: proc, sys: sys}
	h.Reader = NewReader(Options{Proc: proc, Sys: sys, DiskPaths: []string{t.TempDir()},
		Now: func() Instant { return instant(h.now) }})
	h.disks.timeout = time.Minute
	t.Cleanup(h.Close)
	return h
}

// begin takes the baseline and returns the Reading of the deferred sources.
func (h *optionalHost) begin() *Reading { return h.ReadDeferred(h.Baseline()) }

// after advances the clock by d and takes a Reading.
func (h *optionalHost) after(d time.Duration) *Reading {
	h.now += d
	return h.Read()
}

// failedOptional joins the failures of optional sources.
func failedOptional(r *Reading) error {
	return errors.Join(r.Failed[SourceNFS], r.Failed[SourceLustre], r.Failed[SourceEnergy], r.Failed[SourceThermal])
}

// mountText describes a mount on one line.
func mountText(m Mount) string {
	ops := make([]string, 0, len(m.Ops))
	for _, o := range m.Ops {
		if o.Name == "READ" || o.Name == "GETATTR" || o.Name == "open" {
			ops = append(ops, fmt.Sprintf("%s %d %d %d %d", o.Name, o.Calls, o.Queue, o.RTT, o.Execute))
		}
	}
	return fmt.Sprintf("%s %s %s on %s: %d, %d; %d operations, %s", m.ID, m.Type, m.Source, strings.Join(m.Paths, " and "),
		m.Read, m.Written, len(m.Ops), strings.Join(ops, ", "))
}

func TestReader_ReadsNFSAndLustreMounts(t *testing.T) {
	for name, want := range map[string][]string{
		"nfs-shared": {
			"0:48 nfs 1.2.3.4:/storage/home on /nfs/home and /nfs/projects: 1134399088816, 407107155723; 21 operations, " +
				"GETATTR 100 105 106 107, READ 600 605 606 607",
			"0:49 nfs 1.2.3.4:/archive on /nfs/archive: 0, 0; 3 operations, GETATTR 12 0 7 9"},
		"nfs-bound": {
			"0:42 nfs4 192.168.1.1:/srv/test on /mnt/nfs/test and /mnt/nfs/test-dupe: 1210214218, 0; 1 operations, " +
				"READ 1298 6 79386 79407",
			"0:44 nfs 192.168.1.1:/srv/test on /mnt/nfs/test-dupe: 1210214218, 0; 2 operations, READ 1298 6 79386 79407"},
		"nfs-4.1": {
			"0:45 nfs4 fs.example.com:/home on /home: 1788561151, 39087991255; 28 operations, " +
				"READ 34096 2272 464840 467945, GETATTR 52480 2930 30069 34502"},
		"nfs-rdma": {
			"0:61 nfs storage.example.com:/apps on /storage/apps: 1048576, 0; 5 operations, GETATTR 3 2 4 7, READ 4 1 8 9",
			"0:62 nfs storage.example.com:/data on /storage/data: 2013200952170479, 0; 8 operations, " +
				"GETATTR 512052 107131 612667 751847, READ 2654501510 6347457114 31407021389 37927280438",
			"0:63 nfs storage.example.com:/apps on /storage/apps: 8192, 0; 3 operations, GETATTR 1 0 1 1, READ 1 0 2 2"},
		"lustre-2.10": {"lustrefs-ffff88105db50000 lustre lustrefs on : 4194304, 93813797294080; 0 operations, "},
		"lustre-2.14": {"ai400x2-ff47bce9ca35d800 lustre ai400x2 on : 0, 0; 11 operations, open 35955554 0 0 3393651645"},
		"amd":         nil,
	} {
		t.Run(name, func(t *testing.T) {
			h := openOptional(t, name)
			r := h.begin()
			var got []string
			devices := len(r.Devices[NFSMounts]) + len(r.Devices[LustreMounts])
			for _, m := range r.Mounts {
				got = append(got, mountText(m))
			}
			same(t, "mounts", got, want)
			same(t, "devices", devices, len(want))
			err := failedOptional(r)
			check.True(t, err == nil && r.Missing == nil, "failure = %v, missing = %v; want neither", err, r.Missing)
		})
	}
}

// The job waits for the baseline, so the baseline does not read optional sources.
func TestReader_BaselineReadsNoOptionalDevices(t *testing.T) {
	for _, name := range []string{"nfs-bound", "lustre-2.10", "intel-four"} {
		r := openOptional(t, name).Baseline()
		check.True(t, r.Mounts == nil && r.Energy == nil && r.Thermal == nil && r.Devices[NFSMounts] == nil && r.Devices[LustreMounts] == nil,
			"%s: baseline = %+v, want no optional devices", name, r)
	}
}

// edit replaces all occurrences of old in the file at path.
func edit(t *testing.T, path, old, now string) {
	t.Helper()
	data := check.Value(os.ReadFile(path))(t)
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not contain %q", path, old)
	}
	must(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(data), old, now)), 0o666))
}

func (h *optionalHost) mountstats() string { return filepath.Join(h.proc, "1", "mountstats") }
func (h *optionalHost) mountinfo() string  { return filepath.Join(h.proc, "1", "mountinfo") }

// bytesOf lists the devices of a kind with their bytes. Added devices are marked with F.
func bytesOf(kind DeviceKind, r *Reading) (list []string) {
	for _, d := range r.Devices[kind] {
		text := fmt.Sprintf("%s %d %d", d.Name, d.In, d.Out)
		if d.Class&Added != 0 {
			text += " F"
		}
		list = append(list, text)
	}
	return list
}

func TestReader_ReadsNFSAtItsInterval(t *testing.T) {
	h := openOptional(t, "nfs-4.1")
	h.begin()
	edit(t, h.mountstats(), "1788561151 39087991255", "1788561251 39087991455")
	for _, c := range []struct {
		after time.Duration
		held  bool
	}{{100 * time.Millisecond, true}, {700 * time.Millisecond, true}, {200 * time.Millisecond, false}, {time.Millisecond, true}} {
		r := h.after(c.after)
		same(t, fmt.Sprintf("held %v after another %v", r.Skipped[NFSMounts], c.after), r.Skipped[NFSMounts], c.held)
		if !c.held {
			same(t, "bytes", bytesOf(NFSMounts, r), []string{"0:45 1788561251 39087991455"})
		}
	}
	r := h.Final()
	same(t, "bytes at the end", bytesOf(NFSMounts, r), []string{"0:45 1788561251 39087991455"})
}

func TestPollTimer_LimitsTimeSpentOnReads(t *testing.T) {
	var p pollTimer
	p.done(0, 10*time.Millisecond, true)
	for at, want := range map[time.Duration]bool{time.Second: false, 9 * time.Second: false, 10 * time.Second: true} {
		same(t, at.String(), p.due(at, false), want)
	}
	same(t, "due in the last Reading", p.due(time.Second, true), true)
	p.done(0, 0, false)
	for at, want := range map[time.Duration]bool{time.Second: false, 59 * time.Second: false, time.Minute: true} {
		same(t, at.String(), p.due(at, false), want)
	}
	same(t, "due in the last Reading, 1 ms after a search", p.due(time.Millisecond, true), false)
	same(t, "due in the last Reading, 2 s after a search", p.due(2*time.Second, true), true)
}

// If the NFS client is loaded during the run, it is found within a minute.
func TestReader_FindsNFSClientLoadedDuringRunWithinAMinute(t *testing.T) {
	h := openOptional(t, "nfs-4.1")
	client := filepath.Join(h.proc, "fs", "nfsfs")
	hidden := client + "-hidden"
	must(t, os.Rename(client, hidden))
	r := h.begin()
	same(t, "mounts without the client", []any{bytesOf(NFSMounts, r), r.Skipped[NFSMounts], failedOptional(r)}, []any{[]string(nil), false, nil})
	must(t, os.Rename(hidden, client))
	same(t, "mounts within the minute", bytesOf(NFSMounts, h.after(59*time.Second)), []string(nil))

	// The file system was mounted 83520 s ago but was not visible. Its earlier bytes do not belong to the run.
	same(t, "mounts after the minute", bytesOf(NFSMounts, h.after(time.Second)), []string{"0:45 1788561151 39087991255"})
	must(t, os.Rename(h.mountstats(), h.mountstats()+"-hidden"))
	r = h.after(time.Second)
	if !errors.Is(r.Failed[SourceNFS], fs.ErrNotExist) || r.Devices[NFSMounts] != nil {
		t.Errorf("without mountstats: failure = %v, devices = %v; want ErrNotExist and no devices",
			r.Failed[SourceNFS], r.Devices[NFSMounts])
	}
	must(t, os.Rename(h.mountstats()+"-hidden", h.mountstats()))
	same(t, "mounts when mountstats is back", bytesOf(NFSMounts, h.after(time.Minute)), []string{"0:45 1788561151 39087991255"})
}

// A file system that the job has mounted, directly or through an automounter, counts from its first byte.
func TestReader_NFSMountedDuringTheRunCountsFromZero(t *testing.T) {
	h := openOptional(t, "nfs-4.1")
	stats := check.Value(os.ReadFile(h.mountstats()))(t)
	info := check.Value(os.ReadFile(h.mountinfo()))(t)
	h.begin()
	add := func(path, id, dir, age string) {
		block := string(stats[strings.Index(string(stats), "device fs.example"):strings.Index(string(stats), "device tmpfs mounted on /run/user")])
		block = strings.NewReplacer("mounted on /home ", "mounted on "+path+" ", "fs.example.com:/home", "fs.example.com:"+dir,
			"age:\t83520", "age:\t"+age).Replace(block)
		line := "300 60 " + id + " / " + path + " rw - nfs4 fs.example.com:" + dir + " rw\n"
		for file, text := range map[string]string{h.mountstats(): block, h.mountinfo(): line} {
			f := check.Value(os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0))(t)
			_, err := f.WriteString(text)
			must(t, errors.Join(err, f.Close()))
		}
	}

	const home = "0:45 1788561151 39087991255"
	add(`/data/a\040b`, "0:50", "/data", "3")
	r := h.after(10 * time.Second)
	same(t, "mounts with a new one", bytesOf(NFSMounts, r), []string{home, "0:50 1788561151 39087991255 F"})
	same(t, "path of the new mount", r.Mounts[1].Paths, []string{"/data/a b"})
	same(t, "mounts a second later", bytesOf(NFSMounts, h.after(time.Second)), []string{home, "0:50 1788561151 39087991255"})

	// An old mount that is now bound to a visible path.
	add("/opt", "0:51", "/opt", "4000")
	same(t, "old mount that became visible", bytesOf(NFSMounts, h.after(time.Second))[2], "0:51 1788561151 39087991255")

	// A mount that was unmounted and mounted again between two Readings, with the same ID.
	edit(t, h.mountstats(), "age:\t3\n", "age:\t1\n")
	same(t, "mount that was mounted again", bytesOf(NFSMounts, h.after(time.Second))[1], "0:50 1788561151 39087991255 F")

	for file, data := range map[string][]byte{h.mountstats(): stats, h.mountinfo(): info} {
		must(t, os.WriteFile(file, data, 0o666))
	}
	same(t, "mounts after an unmount", bytesOf(NFSMounts, h.after(time.Second)), []string{home})
}

// A mount outside perfagent's root directory is only in mountstats. The job cannot use it either.
func TestReader_OmitsNFSMountsOutsideTheRoot(t *testing.T) {
	h := openOptional(t, "nfs-bound")
	edit(t, h.mountinfo(), "/mnt/nfs/test rw shared:144", "/elsewhere rw shared:144")
	edit(t, h.mountstats(), "mounted on /mnt/nfs/test with", "mounted on /unseen with")
	r := h.begin()
	same(t, "mounts", bytesOf(NFSMounts, r), []string{"0:42 1210214218 0", "0:44 1210214218 0"})
	same(t, "paths", r.Mounts[0].Paths, []string{"/mnt/nfs/test-dupe"})
}

func TestReader_RejectsDamagedNFSStats(t *testing.T) {
	for _, c := range []struct{ old, now, why string }{
		{"bytes:\t2021340783 39056395530 0 0 1788561151", "bytes:\t2021340783 39056395530 0 0 many", `"many" bytes read`},
		{"bytes:\t2021340783 39056395530 0 0 1788561151 39087991255 442605 9557343", "bytes:\t4365236327", "1 counts of bytes"},
		{"bytes:", "octets:", "no bytes of /home"},
		{"READ: 34096 34096 0", "READ: 34096 x 0", `"READ: 34096 x 0`},
		{"READ: 34096 34096 0 7103096 1792122744 2272 464840 467945 0", "READ: 34096", `"READ: 34096" is not understood`},
		{"age:\t83520", "age:\tlong", `the age "long" is not a number`},
	} {
		h := openOptional(t, "nfs-4.1")
		edit(t, h.mountstats(), c.old, c.now)
		r := h.begin()
		wantError(t, c.now, r.Failed[SourceNFS], c.why, h.mountstats())
		check.True(t, len(r.Devices[NFSMounts]) == 0, "%s: mounts = %v, want none", c.now, bytesOf(NFSMounts, r))
	}

	// All other mounts count.
	h := openOptional(t, "nfs-bound")
	edit(t, h.mountstats(), "READ: 1298 1298 0 207680 1210292152 6 79386 79407\n\t       WRITE: 0 0 0 0 0 0 0 0\n\ndevice", "READ: x\n\ndevice")
	r := h.begin()
	same(t, "mounts other than the damaged one", bytesOf(NFSMounts, r), []string{"0:42 1210214218 0", "0:44 1210214218 0"})
	check.True(t, r.Failed[SourceNFS] != nil, "no failure for a damaged entry")
}

// A kernel that hangs delays one Reading by 200 ms, and later Readings not at all.
func TestReader_DoesNotWaitForPendingNFSCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openOptional(t, "nfs-4.1")
		h.disks.timeout = statfsTimeout
		must(t, os.Remove(h.mountstats()))
		must(t, unix.Mkfifo(h.mountstats(), 0o600)) // pread of a FIFO fails
		release := make(chan struct{})
		n := h.nfsReader()
		n.caller.Start(func() mountResult { <-release; return mountResult{} })
		begin := time.Now()
		r := h.begin()
		wantError(t, "a pending call", r.Failed[SourceNFS], "did not answer within 200ms")
		took := time.Since(begin)
		check.True(t, took == 0, "Read waited %v for a pending call, want no wait", took)
		close(release)
	})
}

// nfsReader replaces the host's NFS reader with a reader that the test can access.
func (h *optionalHost) nfsReader() *mountReader {
	n := newNFS(h.Reader)
	h.devices[NFSMounts] = n.read
	return n
}

// asNobody runs do as an unprivileged user. do must stay on its thread.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, unix.Setfsuid(65534))
	defer unix.Setfsuid(0)
	do()
}

// A source that only root may read is not a failure.
func TestReader_ReportsSourcesOnlyRootMayRead(t *testing.T) {
	closed := func(h *optionalHost, path string) {
		for _, dir := range []string{h.proc, h.sys} {
			must(t, os.Chmod(filepath.Dir(dir), 0o755))
		}
		must(t, os.Chmod(path, 0))
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
	}

	h := openOptional(t, "nfs-4.1")
	closed(h, h.mountstats())
	asNobody(t, func() {
		a := h.nfsReader().readMounts()
		same(t, "NFS: forbidden, mounts and error", []any{a.forbidden, a.mounts, a.err}, []any{true, []Mount(nil), nil})
	})

	h = openOptional(t, "lustre-2.14")
	closed(h, filepath.Join(h.sys, "kernel", "debug"))
	asNobody(t, func() {
		a := newLustre(h.Reader).readMounts()
		same(t, "Lustre: forbidden, mounts and error", []any{a.forbidden, a.mounts, a.err}, []any{true, []Mount(nil), nil})
	})

	h = openOptional(t, "intel-four")
	file := filepath.Join(h.sys, "class/powercap/intel-rapl:0/energy_uj")
	closed(h, file)
	asNobody(t, func() {
		same(t, "energy", new(energyReader).findZones(h.sys), series.Missing{What: SourceEnergy, Code: RootOnly, Why: file + ": only root may read the energy counters"})
	})
}

func TestReader_FollowsLustreMountsAndUnmounts(t *testing.T) {
	h := openOptional(t, "lustre-2.10")
	h.begin()
	const first = "lustrefs-ffff88105db50000 4194304 93813797294080"
	same(t, "Lustre was skipped after 1 ms", h.after(time.Millisecond).Skipped[LustreMounts], true)
	stats := "snapshot_time 1510950459.7 secs.nsecs\nwrite_bytes 1 samples [bytes] 4096 4096 4096\n"
	write(t, h.proc, "fs/lustre/llite/home-ffff0001/stats", []byte(stats))
	r := h.after(time.Second)
	same(t, "mounts with a new one", bytesOf(LustreMounts, r), []string{"home-ffff0001 0 4096 F", first})
	same(t, "mounts a second later", bytesOf(LustreMounts, h.after(time.Second)), []string{"home-ffff0001 0 4096", first})
	must(t, os.RemoveAll(filepath.Join(h.proc, "fs/lustre/llite/home-ffff0001")))
	same(t, "mounts after an unmount", bytesOf(LustreMounts, h.after(time.Second)), []string{first})
	must(t, os.RemoveAll(filepath.Join(h.proc, "fs/lustre")))
	r = h.after(time.Second)
	same(t, "mounts and failures without the client", []any{bytesOf(LustreMounts, r), failedOptional(r)}, []any{[]string(nil), nil})
	same(t, "Lustre was skipped without the client", h.after(time.Second).Skipped[LustreMounts], false)
}

func TestReader_RejectsDamagedLustreStats(t *testing.T) {
	for _, line := range []string{
		"read_bytes 1 samples [bytes] 4194304 4194304", "read_bytes 1 samples [bytes] 0 0 -4", "write_bytes many samples [bytes] 1 2 3",
		"open 3 samples [usecs] 1 2",
	} {
		h := openOptional(t, "lustre-2.10")
		write(t, h.proc, "fs/lustre/llite/lustrefs-ffff88105db50000/stats", []byte("snapshot_time 1 secs.nsecs\n"+line+"\n"))
		r := h.begin()
		wantError(t, line, r.Failed[SourceLustre], `stats: "`+line+`" is not understood`)
		same(t, line, bytesOf(LustreMounts, r), []string(nil))
	}
}

// debugfs is restricted to root and may not be mounted. On a host with Lustre, this is reported.
func TestReader_ReportsLustreWithoutDebugfs(t *testing.T) {
	h := openOptional(t, "lustre-2.14")
	debug := filepath.Join(h.sys, "kernel/debug")
	must(t, os.RemoveAll(debug))
	r := h.begin()
	same(t, "number of missing parts", len(r.Missing), 1)
	if g := r.Missing[0]; g.What != SourceLustre || g.Code != RootOnly || !strings.HasPrefix(g.Why, debug) || failedOptional(r) != nil {
		t.Errorf("missing = %+v, failure = %v; want that only root may read %s, and no failure", g, failedOptional(r), debug)
	}
}
