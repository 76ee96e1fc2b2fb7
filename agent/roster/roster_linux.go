package roster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// Offsets of the locks. The locks are owned by an open file description (F_OFD_SETLK, fcntl(2)), and lock bytes that
// need not exist. The kernel releases them when the process ends.
const (
	hostByte    = 0       // held by the agent that measures the host
	leavingByte = 1       // serializes leaving if the number of agents is unknown
	firstAgent  = 1 << 10 // the first of the agents' bytes; each agent locks one
	allAgents   = 0       // as a length: all bytes up to the end
)

const (
	// tries and pause bound the wait for an agent that is emptying or removing the roster. That takes microseconds, or
	// longer if many processes wait for a CPU.
	tries = 500
	pause = 200 * time.Microsecond

	leavePause = time.Millisecond

	// abandonedAfter is how long a roster without a living agent is kept, for late ranks.
	abandonedAfter = 24 * time.Hour
)

// leaveTimeout bounds the wait for other agents that are leaving.
var leaveTimeout = 500 * time.Millisecond

// A Roster represents an agent's membership in a roster.
type Roster struct {
	file         *os.File
	lock         int64
	hasOthers    bool // whether other agents are known to have joined
	joinIndex    int
	round        int   // number of agents of the same rank that joined earlier
	id           int64 // the lock of the first agent
	measuresHost bool
}

// Join joins the roster of key in the first of dirs in which that is possible. rank is the agent's rank, or nil if no
// launcher sets one. Join takes less than a millisecond and does not wait until other agents have joined. The error
// contains the reason for each directory.
func Join(dirs []string, key Key, rank *int) (*Roster, error) {
	var whys []string
	for _, dir := range dirs {
		r, err := join(key.path(dir), rank)
		if err == nil || errors.Is(err, ErrNested) {
			return r, err
		}
		whys = append(whys, err.Error())
	}

	return nil, fmt.Errorf("join the perfagents of this node: %s", strings.Join(whys, "; "))
}

// join joins the roster in the file at path.
func join(path string, rank *int) (*Roster, error) {
	for range tries {
		r, err := openRoster(path, rank)
		if !errors.Is(err, errBusy) {
			return r, err
		}
		time.Sleep(pause)
	}

	return nil, fmt.Errorf("%s is busy", path)
}

// errBusy is the error of openRoster while the last agent of a roster is removing it.
var errBusy = errors.New("busy")

// openRoster opens the file, takes a lock in it, and appends the agent's first line.
func openRoster(path string, rank *int) (*Roster, error) {
	// If all users may write to the directory, the file may belong to another user.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	r := &Roster{file: f, lock: firstAgent + rand.Int64N(1<<40)}
	if err = r.acquire(rank); err == nil {
		err = r.sign(rank)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// acquire takes the agent's lock in the file, which must belong to this user and must not have been removed.
func (r *Roster) acquire(rank *int) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(r.file.Fd()), &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%s is not a file of this user", r.file.Name())
	}
	if st.Size > 0 {
		if err := r.forget(rank); err != nil {
			return err
		}
	}

	free, err := r.tryLock(r.lock, 1)
	if err == nil {
		err = unix.Fstat(int(r.file.Fd()), &st)
	}
	if err == nil && (!free || st.Nlink == 0) {
		err = errBusy
	}
	return err
}

// forget empties the file if none of its agents is alive, because the file is then left over from an earlier launch
// with the same key. The file is kept if rank is set and has no line in it, because the lines may be from the current
// launch.
func (r *Roster) forget(rank *int) error {
	free, err := r.tryLock(firstAgent, allAgents)
	if err != nil || !free {
		return err
	}

	in, _, err := r.lines()
	if err == nil && (rank == nil || slices.ContainsFunc(in, func(l line) bool { return l.isOf(rank) })) {
		err = r.file.Truncate(0)
	}

	return errors.Join(err, r.unlock(firstAgent, allAgents))
}

// sign appends the agent's first line, unless this process runs in the job of another agent.
func (r *Roster) sign(rank *int) error {
	earlier, gone, err := r.lines()
	if err != nil {
		return err
	}
	if len(earlier) > 0 && r.isNested(earlier, gone) {
		return ErrNested
	}
	for _, l := range earlier {
		if l.isOf(rank) {
			r.round++
		}
	}
	if err := r.append(line{Lock: r.lock, PID: os.Getpid(), Rank: rank, Round: r.round}); err != nil {
		return err
	}

	all, _, err := r.lines() // read again, because others may have signed before us
	if err != nil {
		return err
	}
	r.joinIndex = max(0, slices.IndexFunc(all, r.own))
	r.hasOthers, r.id = len(all) > 1, r.lock
	if len(all) > 0 {
		r.id = all[0].Lock
	}

	return nil
}

// isNested reports whether this process descends from one of agents that is alive and has not left.
func (r *Roster) isNested(agents, gone []line) bool {
	var above []int
	for p := range procfile.Ancestors() {
		above = append(above, p.PID)
	}

	return slices.ContainsFunc(agents, func(l line) bool {
		return slices.Contains(above, l.PID) &&
			!slices.ContainsFunc(gone, func(g line) bool { return g.Lock == l.Lock }) && r.alive(l)
	})
}

// alive reports whether the agent of l still holds its lock.
func (r *Roster) alive(l line) bool {
	probe := lockOf(unix.F_WRLCK, l.Lock, 1)
	err := unix.FcntlFlock(r.file.Fd(), unix.F_OFD_GETLK, &probe)

	return err == nil && probe.Type != unix.F_UNLCK
}

// ID returns a string shared by exactly the agents of this roster.
func (r *Roster) ID() string { return strconv.FormatInt(r.id, 10) }

// JoinIndex returns how many agents joined before this agent.
func (r *Roster) JoinIndex() int { return r.joinIndex }

// HasOthers reports whether another agent has joined, before or after this one.
func (r *Roster) HasOthers() bool {
	if !r.hasOthers {
		in, _, _ := r.lines()
		r.hasOthers = len(in) > 1
	}

	return r.hasOthers
}

// TakeHost tries to become the agent that measures the host, and reports whether this agent measures it. At most one
// agent measures the host at any time.
func (r *Roster) TakeHost() bool {
	if !r.measuresHost {
		r.measuresHost, _ = r.tryLock(hostByte, 1)
	}
	return r.measuresHost
}

// ReleaseHost lets another agent measure the host. r may be nil.
func (r *Roster) ReleaseHost() {
	if r != nil && r.measuresHost {
		_ = r.unlock(hostByte, 1)
		r.measuresHost = false
	}
}

// Leave records that this agent has written its report to part ("" if that failed) and closes the roster, which must
// not be used afterwards. announced is the number of ranks that the launcher started on the node, or 0 if unknown. For
// the last agent to leave, Leave returns the paths of all reports, including the agent's own, and the agent must
// combine them. For the other agents it returns nil.
func (r *Roster) Leave(part string, announced int) []string {
	defer r.file.Close()

	if announced > 0 {
		return r.leaveAnnounced(part, announced)
	}
	for begun := time.Now(); ; time.Sleep(leavePause) {
		if alone, err := r.tryLock(leavingByte, 1); alone || err != nil || time.Since(begun) > leaveTimeout {
			break
		}
	}

	return r.leaveUncounted(part)
}

// leaveAnnounced leaves a roster with a known number of agents. The agent that completes the number is the last to
// leave. If the ranks run several commands one after the other, each command is a round with a separate last agent.
func (r *Roster) leaveAnnounced(part string, announced int) []string {
	if r.append(line{Lock: r.lock, Left: true, Part: part, Round: r.round}) != nil {
		return nil
	}
	_, gone, err := r.lines()
	if err != nil {
		return nil
	}
	gone = slices.DeleteFunc(gone, func(l line) bool { return l.Round != r.round })
	if len(gone) < announced || !r.own(gone[announced-1]) {
		return nil
	}
	if r.isEmpty() {
		r.remove()
	}

	return partPaths(gone[:announced])
}

// isEmpty reports whether there is no other agent in the roster. If so, it locks the roster. It waits briefly for
// agents that have left and still hold their locks.
func (r *Roster) isEmpty() bool {
	for range tries {
		if alone, err := r.tryLock(firstAgent, allAgents); alone || err != nil {
			return alone
		}
		in, out, err := r.lines()
		if err != nil || len(out) < len(in) {
			return false
		}
		time.Sleep(pause)
	}

	return false
}

// leaveUncounted leaves a roster with an unknown number of agents. The last to leave is the agent that finds no other
// agent.
func (r *Roster) leaveUncounted(part string) []string {
	if r.append(line{Lock: r.lock, Left: true, Part: part}) != nil {
		return nil
	}
	if last, err := r.tryLock(firstAgent, allAgents); !last || err != nil {
		return nil
	}
	in, out, err := r.lines()
	r.remove()
	if err != nil || len(out) < len(in) { // an agent was killed
		return nil
	}

	return partPaths(out)
}

// remove removes the roster, and abandoned rosters of this user in the same directory, because they occupy memory and
// are otherwise never removed.
func (r *Roster) remove() {
	os.Remove(r.file.Name())

	pattern := prefix() + strings.Repeat("?", nameLength)
	paths, _ := filepath.Glob(filepath.Join(filepath.Dir(r.file.Name()), pattern))
	for _, path := range paths {
		if st, err := os.Lstat(path); err != nil || time.Since(st.ModTime()) < abandonedAfter {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if free, _ := (&Roster{file: f}).tryLock(firstAgent, allAgents); free { // an agent that joins now gets errBusy
			os.Remove(path)
		}
		f.Close()
	}
}

// own reports whether l belongs to this agent.
func (r *Roster) own(l line) bool { return l.Lock == r.lock }

// append writes l in a single call, so that the lines of different agents are not interleaved.
func (r *Roster) append(l line) error {
	data, _ := json.Marshal(l) // numbers and a path never fail
	_, err := r.file.Write(append(data, '\n'))
	return err
}

// lines reads the file and returns its lines, split as by parse.
func (r *Roster) lines() (in, out []line, err error) {
	data, err := io.ReadAll(io.NewSectionReader(r.file, 0, maxSize))
	if err != nil {
		return nil, nil, err
	}
	in, out = parse(data)
	return in, out, nil
}

// tryLock takes the lock on length bytes beginning at start, and reports whether the lock was free.
func (r *Roster) tryLock(start, length int64) (bool, error) {
	l := lockOf(unix.F_WRLCK, start, length)
	err := unix.FcntlFlock(r.file.Fd(), unix.F_OFD_SETLK, &l)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return false, nil
	case err != nil: // the file system may not support locks
		return false, &os.PathError{Op: "lock", Path: r.file.Name(), Err: err}
	}

	return true, nil
}

// unlock releases a lock.
func (r *Roster) unlock(start, length int64) error {
	l := lockOf(unix.F_UNLCK, start, length)
	return unix.FcntlFlock(r.file.Fd(), unix.F_OFD_SETLK, &l)
}

func lockOf(kind int16, start, length int64) unix.Flock_t {
	return unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: start, Len: length}
}
