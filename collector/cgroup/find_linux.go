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

// place is where the process stands in one hierarchy.
type place struct {
	// dirs are the directories of the group and of its visible ancestors, nearest
	// first; names their paths as /proc/PID/cgroup has them.
	dirs, names []string

	v2     bool
	counts bool // not the hierarchy's root, whose counters are the machine's
	made   bool // by us, for a job: all such places have the same processes
	hidden bool // it has ancestors that cannot be seen
}

func (p *place) dir() string { return p.dirs[0] }

// hasCounters is false for no place, too.
func (p *place) hasCounters() bool { return p != nil && p.counts }

// view is what is known of all hierarchies.
type view struct {
	pid     int // as our own pid namespace has it
	members []membership
	mounts  []mount
	why     []error // why some hierarchy could not be seen
}

// Find finds the groups of a process. Where there are none to be seen the error is
// ErrNone, with the reason.
func Find(o Options) (*Group, error) {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	g := newGroup(cmp.Or(o.Sys, "/sys"))
	v, err := g.look(o)
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w: %w", ErrNone, err)
	}

	g.unified = v.place("")
	var v1 [len(controllers)]*place
	for i, name := range controllers {
		v1[i] = v.place(name)
	}
	if g.unified == nil && v1 == [len(controllers)]*place{} {
		return nil, fmt.Errorf("find control groups: %w: %w", ErrNone, v.reason())
	}

	g.settle(v1, v.onV1)
	return g, nil
}

// controllers are those that we read, by their index in Group.settle.
var controllers = [...]string{"cpu", "cpuacct", "cpuset", "memory", "pids", "blkio"}

// look reads where the process stands and what is mounted. The mounts are our own;
// where these show nothing of it, those of the process, by its root directory.
func (g *Group) look(o Options) (*view, error) {
	who := "self"
	if o.PID != 0 {
		who = strconv.Itoa(o.PID)
	}
	data, err := g.r.read(filepath.Join(o.Proc, who, "cgroup"), maxTable)
	if err != nil {
		return nil, err
	}
	v := &view{pid: cmp.Or(o.PID, os.Getpid()), members: parseMemberships(data)}
	if len(v.members) == 0 {
		return nil, fmt.Errorf("%s names no group", filepath.Join(o.Proc, who, "cgroup"))
	}

	own, errOwn := g.r.read(filepath.Join(o.Proc, "self/mountinfo"), maxTable)
	if errOwn == nil {
		v.mounts = beneath(parseMounts(own), g.sys)
	}
	if who == "self" {
		return v, errOwn
	}
	theirs, err := g.r.read(filepath.Join(o.Proc, who, "mountinfo"), maxTable)
	if err != nil {
		return v, errOwn // then our own must do
	}

	for _, m := range parseMounts(theirs) {
		if o.Sys == "" {
			m.point = filepath.Join(o.Proc, who, "root", m.point)
			v.mounts = append(v.mounts, m)
			continue
		}
		v.mounts = append(v.mounts, beneath([]mount{m}, g.sys)...)
	}

	return v, nil
}

// beneath prepares mounts for another sysfs than /sys. If some are below it, it is the
// host's in a container, and all are as they say. If not, it is a copied tree, in which
// those below /sys are to be found.
func beneath(mounts []mount, sys string) []mount {
	if sys == "/sys" || slices.ContainsFunc(mounts, func(m mount) bool { return strings.HasPrefix(m.point, sys+"/") }) {
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

// onV1 tells whether a controller belongs to a v1 hierarchy, seen or not. Then v2
// does not have it.
func (v *view) onV1(controller string) bool { return v.member(controller) != nil }

func (v *view) member(controller string) *membership {
	for i, m := range v.members {
		if controller == "" && m.controllers == nil || slices.Contains(m.controllers, controller) {
			return &v.members[i]
		}
	}
	return nil
}

// place finds the group in the hierarchy of a controller ("" = v2), by the mount
// that shows most of its ancestors; nil where none shows it.
func (v *view) place(controller string) *place {
	member := v.member(controller)
	if member == nil {
		return nil
	}

	var best *place
	for i, m := range v.mounts {
		if m.v2 != (controller == "") || !m.v2 && !slices.Contains(m.controllers, controller) {
			continue
		}
		if v.covered(i) {
			continue
		}
		p, err := m.locate(member.path, v.pid)
		if err != nil {
			v.why = append(v.why, err)
		} else if best == nil || len(p.dirs) > len(best.dirs) {
			best = p
		}
	}
	return best
}

// covered tells whether a later mount lies over this one.
func (v *view) covered(i int) bool {
	for _, m := range v.mounts[i+1:] {
		if m.point == v.mounts[i].point {
			return true
		}
	}
	return false
}

// locate finds a group below a mount point.
func (m *mount) locate(path string, pid int) (*place, error) {
	rest, ok := below(path, m.root)
	if !ok {
		rest, ok = m.search(path, pid)
	}
	if !ok {
		return nil, fmt.Errorf("group %s is outside of %s, which shows %s", path, m.point, m.root)
	}

	p := &place{v2: m.v2}
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

// parent is the path of the group above, which may be outside of the namespace.
func parent(path string) string {
	path = strings.TrimRight(path, "/")
	if ups, rest := outside(path); rest == "" {
		return strings.Repeat("/..", ups+1)
	}
	return cmp.Or(path[:strings.LastIndexByte(path, '/')], "/")
}

// outside splits a path as a control group namespace has it, "/../../x/y": how many
// levels above the namespace it begins, and what comes then.
func outside(path string) (ups int, rest string) {
	for rest = strings.TrimRight(path, "/"); rest == "/.." || strings.HasPrefix(rest, "/../"); ups++ {
		rest = rest[len("/.."):]
	}
	return ups, rest
}

// search finds a group below a mount that begins further above our namespace than the
// group does: a host's mount in a container. The names of the levels between are
// not told, so that the group with the process is looked for, or the only one of that
// name.
func (m *mount) search(path string, pid int) (string, bool) {
	top, rootRest := outside(m.root)
	ups, rest := outside(path)
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

	var r reader
	var named []string
	for _, dir := range level {
		data, err := r.read(dir+rest+"/cgroup.procs", maxTable)
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

// isRoot tells the root of a hierarchy from the top of what a container may see:
// only there v1 has release_agent, and v2 has no cgroup.events.
func isRoot(dir string, v2 bool) bool {
	if v2 {
		return !exists(filepath.Join(dir, "cgroup.events"))
	}
	return exists(filepath.Join(dir, "release_agent"))
}

// reason says why nothing is visible.
func (v *view) reason() error {
	if len(v.why) > 0 {
		return v.why[0]
	}
	if len(v.mounts) == 0 {
		return errors.New("none is mounted here")
	}
	return errors.New("no hierarchy that is mounted here has the process")
}
