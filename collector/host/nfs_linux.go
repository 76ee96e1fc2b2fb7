package host

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/timeout"
)

// maxMountstats is the maximum size of mountstats and mountinfo, in bytes. An NFS mount takes about 5 KiB.
const maxMountstats = 16 << 20

func openNFS(r *Reader) deviceReader { return newNFS(r).read }

func newNFS(r *Reader) *mountReader {
	dir := filepath.Join(r.proc, "self")
	if r.hostProc {
		dir = filepath.Join(r.proc, "1")
	}
	files := &nfsFiles{
		stats: filepath.Join(dir, "mountstats"),
		info:  filepath.Join(dir, "mountinfo"),
		names: make(map[string]string),
	}
	return &mountReader{
		host:   r,
		caller: timeout.NewCaller[mountResult](),
		client: []string{filepath.Join(r.proc, "fs", "nfsfs")},
		readMounts: func() mountResult {
			return measureRead(func(a *mountResult) error { return files.read(a, time.Now()) })
		},
		timeoutText: files.stats + " did not answer",
		rootOnly: series.Missing{What: SourceNFS, Code: RootOnly,
			Why: files.stats + ": only root may read the mounts of other users' processes"},
	}
}

// nfsFiles reads the NFS client's counters of each superblock from /proc/self/mountstats (fs/nfs/super.c,
// net/sunrpc/stats.c), and the mounts from mountinfo. Only mountinfo has the superblock of a mount. The source does not
// identify it, because a superblock with several mounted directories has several sources. mountinfo is read again when
// the mounts have changed, and once a minute.
type nfsFiles struct {
	stats, info      string
	statBuf, infoBuf procfile.Buffer
	mountPoints      []mountPoint
	looked           time.Time
	names            map[string]string
}

// A mountPoint is an NFS mount in mountinfo, which lists mounts in the same order as mountstats.
type mountPoint struct{ path, fstype, superblock string }

func (f *nfsFiles) read(a *mountResult, now time.Time) error {
	if len(f.mountPoints) == 0 || now.Sub(f.looked) >= rescanInterval {
		if err := f.readMountinfo(now); err != nil || len(f.mountPoints) == 0 {
			return err
		}
	}

	data, err := f.statBuf.Read(f.stats, maxMountstats)
	if isForbidden(err) {
		a.forbidden = true
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := f.parse(data)
	if !f.assignSuperblocks(entries) {
		if err := f.readMountinfo(now); err != nil {
			return err
		}
		f.assignSuperblocks(entries)
	}
	a.mounts = superblocks(entries)
	return err
}

// readMountinfo reads mountinfo.
func (f *nfsFiles) readMountinfo(now time.Time) error {
	data, err := f.infoBuf.Read(f.info, maxMountstats)
	if err != nil {
		return err
	}
	f.mountPoints, f.looked = parseMountPoints(data), now
	return nil
}

// assignSuperblocks sets the ID of each entry to the superblock of its mount point, and reports whether all were found.
// An entry without a mount point is mounted outside perfagent's root directory.
func (f *nfsFiles) assignSuperblocks(entries []nfsEntry) bool {
	next, all := 0, true
	for i := range entries {
		e := &entries[i]
		skipped := slices.IndexFunc(f.mountPoints[next:], func(p mountPoint) bool {
			return p.path == e.path && p.fstype == e.Type
		})
		if skipped < 0 {
			e.ID, all = "", false
			continue
		}
		next += skipped + 1
		e.ID = f.mountPoints[next-1].superblock
	}
	return all
}

// superblocks returns one mount per superblock, with all paths of the superblock. It omits entries without an ID.
func superblocks(entries []nfsEntry) []Mount {
	mounts := make([]Mount, 0, len(entries))
	for _, e := range entries {
		if e.ID == "" {
			continue
		}
		i := slices.IndexFunc(mounts, func(m Mount) bool { return m.ID == e.ID })
		if i < 0 {
			i = len(mounts)
			mounts = append(mounts, e.Mount)
		}
		mounts[i].Paths = append(mounts[i].Paths, procfile.Unescape(e.path))
	}
	return mounts
}

// isNFS reports whether file systems of the given type have NFS counters.
func isNFS(fstype []byte) bool { return string(fstype) == "nfs" || string(fstype) == "nfs4" }

// parseMountPoints returns the NFS mounts in data, a mountinfo file (proc_pid_mountinfo(5)).
func parseMountPoints(data []byte) []mountPoint {
	var mountPoints []mountPoint
	for line := range bytes.Lines(data) {
		where, what, ok := bytes.Cut(line, []byte(" - "))
		var f [5][]byte
		var fstype [1][]byte
		if !ok || procfile.SplitFields(where, f[:]) < len(f) || procfile.SplitFields(what, fstype[:]) == 0 {
			continue
		}
		if !isNFS(fstype[0]) {
			continue
		}
		mountPoints = append(mountPoints, mountPoint{path: string(f[4]), fstype: string(fstype[0]), superblock: string(f[2])})
	}
	return mountPoints
}

// An nfsEntry is a mount in mountstats.
type nfsEntry struct {
	Mount
	path     string // with the file's octal escapes
	hasBytes bool   // its line "bytes:" was found
}

// parse returns the NFS mounts in data, a mountstats file. It omits entries that it cannot parse and reports them in
// the error.
func (f *nfsFiles) parse(data []byte) ([]nfsEntry, error) {
	var entries []nfsEntry
	var e *nfsEntry // the current entry; nil in an entry of another file system
	var errs []error
	end := func() {
		if e != nil && !e.hasBytes {
			errs = append(errs, fmt.Errorf("read %s: no bytes of %s", f.stats, e.path))
			entries = entries[:len(entries)-1]
		}
		e = nil
	}

	for line := range bytes.Lines(data) {
		var w [10][]byte
		switch n := procfile.SplitFields(line, w[:]); {
		case n >= 8 && string(w[0]) == "device" && string(w[6]) == "fstype":
			if end(); isNFS(w[7]) {
				entries = append(entries, f.entry(w[:]))
				e = &entries[len(entries)-1]
			}
		case n > 0 && string(w[0]) == "no": // "no device mounted on" ends the previous entry
			end()
		case e != nil && n > 1:
			if err := f.line(e, w[:n]); err != nil {
				errs = append(errs, fmt.Errorf("read %s: %s: %w", f.stats, e.path, err))
				entries, e = entries[:len(entries)-1], nil
			}
		}
	}
	end()
	return entries, errors.Join(errs...)
}

// entry parses the first line of an entry: "device S mounted on P with fstype T statvers=1.1".
func (f *nfsFiles) entry(w [][]byte) nfsEntry {
	return nfsEntry{path: f.name(w[4]), Mount: Mount{
		Kind: NFSMounts, Source: procfile.Unescape(f.name(w[1])), Type: f.name(w[7]), Unit: time.Millisecond,
	}}
}

// line parses a further line of entry e, split into the words w.
func (f *nfsFiles) line(e *nfsEntry, w [][]byte) error {
	switch name := w[0]; {
	case string(name) == "age:":
		age, ok := procfile.ParseCount(w[1])
		if !ok {
			return fmt.Errorf("the age %.20q is not a number", w[1])
		}
		e.Age = age
	case string(name) == "bytes:":
		if len(w) < 7 {
			return fmt.Errorf("%d counts of bytes", len(w)-1)
		}
		read, okRead := procfile.ParseCount(w[5])
		written, okWritten := procfile.ParseCount(w[6])
		if !okRead || !okWritten {
			return fmt.Errorf("%.20q bytes read, %.20q written", w[5], w[6])
		}
		e.Read, e.Written, e.hasBytes = read, written, true
	case e.hasBytes && isOperation(name):
		return f.operation(e, w)
	}
	return nil
}

// isOperation reports whether name belongs to an operation, like "READ:", and not to something else, like "xprt:".
func isOperation(name []byte) bool {
	word, isName := bytes.CutSuffix(name, []byte{':'})
	other := func(c byte) bool { return !(c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') }
	return isName && len(word) > 0 && !slices.ContainsFunc(word, other)
}

// operation parses the line of an operation: its name; the numbers of calls, transmissions and timeouts; the bytes sent
// and received; and the milliseconds in the queue, from the transmission to the reply, and in total.
func (f *nfsFiles) operation(e *nfsEntry, w [][]byte) error {
	if string(w[1]) == "0" { // never called
		return nil
	}
	var n [8]uint64
	for i := range n {
		ok := false
		if i+1 < len(w) {
			n[i], ok = procfile.ParseCount(w[i+1])
		}
		if !ok {
			return fmt.Errorf("%.40q is not understood", bytes.Join(w, []byte(" ")))
		}
	}
	if n[0] > 0 {
		name := f.name(w[0][:len(w[0])-1])
		e.Ops = append(e.Ops, MountOp{Name: name, Calls: n[0], Sent: n[1], Timeouts: n[2],
			Queue: n[5], RTT: n[6], Execute: n[7]})
	}
	return nil
}

// maxNames is the largest number of cached names of mounts and operations.
const maxNames = 4096

// name returns word as a cached string.
func (f *nfsFiles) name(word []byte) string {
	if s, ok := f.names[string(word)]; ok {
		return s
	}
	if len(f.names) >= maxNames {
		clear(f.names)
	}
	s := string(word)
	f.names[s] = s
	return s
}
