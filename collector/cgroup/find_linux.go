package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// A membership is the group of a process in one hierarchy.
type membership struct {
	// dirs are the directories of the group and its visible ancestors, nearest first. names are the paths of these groups
	// in /proc/PID/cgroup.
	dirs, names []string

	v2      bool
	counts  bool // false for the root of the hierarchy: its counters are the machine's
	created bool // created by perfagent for a job; all these memberships have the same processes
	hidden  bool // some ancestors are not visible

	paths []levelFile // cache of the results of path
}

// A levelFile is the path of a file of the group or of an ancestor. level is the index in dirs.
type levelFile struct {
	level      int
	name, path string
}

// path returns the path of the file name in the group at the given level of dirs. It caches the result.
func (p *membership) path(level int, name string) string {
	for i := range p.paths {
		if f := &p.paths[i]; f.level == level && f.name == name {
			return f.path
		}
	}
	f := levelFile{level, name, filepath.Join(p.dirs[level], name)}
	p.paths = append(p.paths, f)
	return f.path
}

// dir returns the directory of the group.
func (p *membership) dir() string { return p.dirs[0] }

// hasCounters reports whether the group exists and has counters. A nil membership has none.
func (p *membership) hasCounters() bool { return p != nil && p.counts }

// A view is the visible part of all hierarchies.
type view struct {
	pid     int // in this process's PID namespace
	entries []entry
	mounts  []mount
	errs    []error // why some hierarchies are not visible
}

// Find finds the groups of the process selected by o. If no group is visible, the error wraps ErrNoGroups and the
// reason.
func Find(o Options) (*Group, error) {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	g := newGroup(cmp.Or(o.Sys, "/sys"))
	v, err := g.readView(o)
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w: %w", ErrNoGroups, err)
	}

	g.unified = v.membership("")
	hasV1 := false
	// pick returns the membership in v1 or, if v1 does not have the controller, in v2.
	pick := func(controller string) *membership {
		p := v.membership(controller)
		if p == nil && v.entry(controller) == nil {
			return g.unified
		}
		hasV1 = hasV1 || p != nil
		return p
	}
	g.cpu, g.acct, g.cpuset = pick("cpu"), pick("cpuacct"), pick("cpuset")
	g.memory, g.pids, g.io = pick("memory"), pick("pids"), pick("blkio")
	switch {
	case g.unified == nil && !hasV1:
		return nil, fmt.Errorf("find control groups: %w: %w", ErrNoGroups, v.reason())
	case g.unified == nil:
		g.version = "v1"
	case hasV1:
		g.version = "hybrid"
	default:
		g.version = "v2"
	}

	g.findFiles()
	return g, nil
}

// readView reads the memberships of the process selected by o, and the mounts of this process. If o selects another
// process, it also reads the mounts of that process, as seen through that process's root directory.
func (g *Group) readView(o Options) (*view, error) {
	who := "self"
	if o.PID != 0 {
		who = strconv.Itoa(o.PID)
	}
	data := []byte(o.Groups)
	if o.Groups == "" {
		var err error
		if data, err = g.r.ReadOnce(filepath.Join(o.Proc, who, "cgroup"), maxTable); err != nil {
			return nil, err
		}
	}
	v := &view{pid: cmp.Or(o.PID, os.Getpid()), entries: parseEntries(data)}
	if len(v.entries) == 0 {
		return nil, fmt.Errorf("%s names no group", filepath.Join(o.Proc, who, "cgroup"))
	}

	own, errOwn := g.r.ReadOnce(filepath.Join(o.Proc, "self/mountinfo"), maxTable)
	if errOwn == nil {
		v.mounts = relocateMounts(parseMounts(own), g.sys)
	}
	if who == "self" {
		return v, errOwn
	}
	theirs, err := g.r.ReadOnce(filepath.Join(o.Proc, who, "mountinfo"), maxTable)
	if err != nil {
		return v, errOwn // use only this process's mounts
	}

	for _, m := range parseMounts(theirs) {
		if o.Sys == "" {
			m.point = filepath.Join(o.Proc, who, "root", m.point)
			v.mounts = append(v.mounts, m)
			continue
		}
		v.mounts = append(v.mounts, relocateMounts([]mount{m}, g.sys)...)
	}

	return v, nil
}

// relocateMounts moves the mounts below /sys to sys and drops all other mounts. If sys is /sys, it returns mounts
// unchanged.
func relocateMounts(mounts []mount, sys string) []mount {
	if sys == "/sys" {
		return mounts
	}
	var moved []mount
	for _, m := range mounts {
		if rest, ok := strings.CutPrefix(m.point, "/sys/"); ok {
			m.point = filepath.Join(sys, rest)
			moved = append(moved, m)
		}
	}
	return moved
}

// entry returns the line of the controller ("" = v2) in /proc/PID/cgroup, or nil if there is none.
func (v *view) entry(controller string) *entry {
	for i, m := range v.entries {
		if controller == "" && m.controllers == nil || slices.Contains(m.controllers, controller) {
			return &v.entries[i]
		}
	}
	return nil
}

// membership finds the group in the hierarchy of the controller ("" = v2), in the mount that shows the most ancestors
// of the group. It returns nil if no mount shows the group.
func (v *view) membership(controller string) *membership {
	member := v.entry(controller)
	if member == nil {
		return nil
	}

	var best *membership
	for i, m := range v.mounts {
		if m.v2 != (controller == "") || !m.v2 && !slices.Contains(m.controllers, controller) {
			continue
		}
		if slices.ContainsFunc(v.mounts[i+1:], func(later mount) bool { return later.point == m.point }) {
			continue // a later mount hides this mount
		}
		p, err := m.locate(member.path, v.pid)
		if err != nil {
			v.errs = append(v.errs, err)
		} else if best == nil || len(p.dirs) > len(best.dirs) {
			best = p
		}
	}
	return best
}

// locate finds the group with the given path, as in /proc/PID/cgroup, below the mount point.
func (m *mount) locate(path string, pid int) (*membership, error) {
	rest, ok := relativePath(path, m.root)
	if !ok {
		rest, ok = m.search(path, pid)
	}
	if !ok {
		return nil, fmt.Errorf("group %s is outside %s, where %s is mounted", path, m.point, m.root)
	}

	p := &membership{v2: m.v2}
	for dir, name := m.point+rest, path; ; dir, name = filepath.Dir(dir), parent(name) {
		p.dirs, p.names = append(p.dirs, filepath.Clean(dir)), append(p.names, name)
		if rest == "" {
			break
		}
		rest = strings.TrimRight(rest[:strings.LastIndexByte(rest, '/')], "/")
	}

	if err := unix.Access(filepath.Join(p.dir(), "cgroup.procs"), unix.F_OK); err != nil {
		return nil, &os.PathError{Op: "look for group", Path: p.dir(), Err: err}
	}
	p.counts = !isRoot(p.dir(), m.v2)
	p.hidden = p.counts
	if top := p.dirs[len(p.dirs)-1]; top != p.dir() {
		p.hidden = !isRoot(top, m.v2)
	}
	return p, nil
}

// parent returns the path of the group above path. The result may be outside the namespace.
func parent(path string) string {
	path = strings.TrimRight(path, "/")
	if ups, rest := cutParentRefs(path); rest == "" {
		return strings.Repeat("/..", ups+1)
	}
	return cmp.Or(path[:strings.LastIndexByte(path, '/')], "/")
}

// cutParentRefs splits a path such as "/../../x/y", which begins above the root of the control group namespace, into
// the number of levels above that root (2) and the rest ("/x/y").
func cutParentRefs(path string) (ups int, rest string) {
	for rest = strings.TrimRight(path, "/"); rest == "/.." || strings.HasPrefix(rest, "/../"); ups++ {
		rest = rest[len("/.."):]
	}
	return ups, rest
}

// search finds the group with the given path below a mount with a root that is further above this process's namespace
// than the path, such as the host's mount in a container. The names of the levels between them are unknown. So it
// searches for the group that contains the process pid, or else for the only group that matches the rest of the path.
func (m *mount) search(path string, pid int) (string, bool) {
	top, rootRest := cutParentRefs(m.root)
	ups, rest := cutParentRefs(path)
	if rootRest != "" || top <= ups || strings.Contains(rest+"/", "/../") {
		return "", false
	}

	level := []string{m.point}
	for range top - ups {
		var next []string
		for _, dir := range level {
			if next = append(next, children(dir)...); len(next) > maxGroups {
				return "", false
			}
		}
		level = next
	}

	var file procfile.Buffer
	var named []string
	for _, dir := range level {
		data, err := file.Read(dir+rest+"/cgroup.procs", maxTable)
		if err != nil {
			continue
		}
		if slices.Contains(procfile.AppendPIDs(nil, data), pid) {
			return dir[len(m.point):] + rest, true
		}
		named = append(named, dir[len(m.point):]+rest)
	}

	if rest != "" && len(named) == 1 {
		return named[0], true
	}
	return "", false
}

// isRoot reports whether dir is the root of a hierarchy, rather than the topmost visible group in a container. In v1
// only the root has release_agent; in v2 only the root lacks cgroup.events.
func isRoot(dir string, v2 bool) bool {
	if v2 {
		return !exists(filepath.Join(dir, "cgroup.events"))
	}
	return exists(filepath.Join(dir, "release_agent"))
}

// reason returns the reason why no hierarchy is visible.
func (v *view) reason() error {
	if len(v.errs) > 0 {
		return v.errs[0]
	}
	if len(v.mounts) == 0 {
		return errors.New("none is mounted here")
	}
	return errors.New("the process is in no hierarchy that is mounted here")
}
