package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/timeout"
)

// maxLlite is the maximum size of the statistics of one Lustre mount, in bytes. They have a line for each of about
// forty calls.
const maxLlite = 1 << 20

func openLustre(r *Reader) deviceReader { return newLustre(r).read }

func newLustre(r *Reader) *mountReader {
	f := &lliteFiles{
		proc:  filepath.Join(r.proc, "fs", "lustre", "llite"),
		sys:   filepath.Join(r.sys, "fs", "lustre", "llite"),
		debug: filepath.Join(r.sys, "kernel", "debug", "lustre", "llite"),
	}
	return &mountReader{
		host:        r,
		caller:      timeout.NewCaller[mountResult](),
		client:      []string{f.proc, f.sys},
		readMounts:  func() mountResult { return measureRead(f.read) },
		timeoutText: "the statistics of Lustre's mounts could not be read in time",
		rootOnly: series.Missing{What: SourceLustre, Code: RootOnly,
			Why: f.debug + ": only root may read the statistics of Lustre's mounts"},
	}
}

// lliteFiles are the directories with one entry per mount, in procfs, sysfs and debugfs. The client's counters,
// llite/*/stats, are in procfs before Lustre 2.12. Since then they are in debugfs, which only root may enter, and sysfs
// lists the mounts for all users.
type lliteFiles struct {
	proc, sys, debug string
	buf              procfile.Buffer
}

func (f *lliteFiles) read(a *mountResult) error {
	errs := f.readIn(f.proc, f.proc, a)
	if len(a.mounts) == 0 && len(errs) == 0 {
		errs = f.readIn(f.sys, f.debug, a)
	}
	return errors.Join(errs...)
}

// readIn appends to a the mounts that the directory list contains. Their statistics are in the directory stats.
func (f *lliteFiles) readIn(list, stats string, a *mountResult) (errs []error) {
	for _, id := range readNames(list) {
		m, err := f.mount(stats, id)
		switch {
		case err == nil:
			a.mounts = append(a.mounts, m)
		case list == stats && errors.Is(err, fs.ErrNotExist): // newer versions of Lustre keep the statistics elsewhere
		case list != stats && (isForbidden(err) || errors.Is(err, fs.ErrNotExist)): // debugfs is forbidden or not mounted
			a.forbidden = true
		default:
			errs = append(errs, err)
		}
	}
	return errs
}

// mount reads the statistics of the mount id in the directory dir.
func (f *lliteFiles) mount(dir, id string) (Mount, error) {
	m := Mount{Kind: LustreMounts, ID: id, Type: "lustre", Source: lustreName(id), Unit: time.Microsecond}
	path := filepath.Join(dir, id, "stats")
	data, err := f.buf.Read(path, maxLlite)
	if err != nil {
		return m, err
	}
	if err = parseLlite(data, &m); err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
	}
	return m, err
}

// readNames returns the sorted names in the directory dir, at most 1024 of them; nil if the directory cannot be read.
func readNames(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(1024)
	slices.Sort(names)
	return names
}

// lustreName returns the name of the file system of the mount id, "scratch" for "scratch-ffff88105db50000".
func lustreName(id string) string {
	if at := strings.LastIndexByte(id, '-'); at > 0 {
		return id[:at]
	}
	return id
}

// parseLlite sets the counters of m from its statistics, which are lines "NAME COUNT samples [UNIT] MIN MAX SUM SUMSQ".
// A call that was never made has no line. Only newer versions of Lustre report times.
func parseLlite(data []byte, m *Mount) error {
	for line := range bytes.Lines(data) {
		var w [7][]byte
		n := procfile.SplitFields(line, w[:])
		if n < 4 || string(w[2]) != "samples" {
			continue // time of the snapshot, or a line of a newer version
		}
		name, unit := string(w[0]), string(w[3])
		isTime := (unit == "[usec]" || unit == "[usecs]") && name != "openclosetime"
		if name != "read_bytes" && name != "write_bytes" && !isTime {
			continue
		}

		count, okCount := procfile.ParseCount(w[1])
		sum, okSum := procfile.ParseCount(w[6])
		if n < 7 || !okCount || !okSum {
			return fmt.Errorf("%.60q is not understood", bytes.TrimSuffix(line, []byte{'\n'}))
		}
		switch name {
		case "read_bytes":
			m.Read = sum
		case "write_bytes":
			m.Written = sum
		default:
			m.Ops = append(m.Ops, MountOp{Name: name, Calls: count, Execute: sum})
		}
	}
	return nil
}
