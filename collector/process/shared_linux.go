package process

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// sharedInterval is how often descriptors are read without a sign that files grew, sharedPart the share of a core
	// for reading them with one.
	sharedInterval = 10 * time.Second
	sharedPart     = 0.001
	// sharedMoves is by how many bytes the host's shared memory must change as a sign.
	sharedMoves = 1 << 20
	// maxDescriptors bounds how many descriptors are read at a time. The rest follows later.
	maxDescriptors = 1000
	// maxSharedTable bounds the size of a table of mounts or mappings.
	maxSharedTable = 4 << 20
	// maxMappings bounds how many processes' mappings are read at a time.
	maxMappings = 64
)

// sharedMemory is the job's shared memory that its processes have not mapped: files of tmpfs and of memfd_create(2)
// that they hold open. The kernel charges it to the job's control group, and to no process.
type sharedMemory struct {
	open  float64 // bytes
	files map[fileID]*openFile
	next  int32 // the process to continue with in this round
	round int

	begun  time.Time // older files may have content that is not the job's; zero = no file has
	before float64   // the host's shared memory, in bytes, when the Tree was created
	at     float64   // the same, when descriptors were last read
	most   float64   // the highest amount that was the job's, including files closed since
	due    time.Duration
	looked time.Duration
	known  bool // descriptors were read

	mounts    map[uint64]bool // by mount ID: is it a tmpfs; of the current read
	mountsPID int32           // the last process with mounts added
	file      procfile.Buffer
	linkBuf   [64]byte // the beginning of a link
}

// A fileID identifies a file on this host.
type fileID struct {
	dev uint64
	ino uint64
}

// An openFile is a file in memory that processes of the job hold open.
type openFile struct {
	bytes  uint64
	base   uint64 // its size before the job
	mapped uint64 // upper bound of the bytes that processes have mapped
	round  int    // in which it was last seen
}

// newSharedMemory returns the state before the job.
func newSharedMemory(running bool) sharedMemory {
	s := sharedMemory{before: readHost().shared, files: map[fileID]*openFile{}}
	s.at = s.before
	if !running {
		s.begun = time.Now()
	}
	return s
}

// hostMemory is the memory of the host, in bytes: its shared memory including all tmpfs (Shmem of /proc/meminfo), and
// its swap in use. NaN is unknown.
type hostMemory struct{ shared, swap float64 }

// readHost reads the memory of the host (sysinfo(2)), in less than a microsecond.
func readHost() hostMemory {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return hostMemory{math.NaN(), math.NaN()}
	}
	unit := float64(max(info.Unit, 1))
	return hostMemory{float64(info.Sharedram) * unit, (float64(info.Totalswap) - float64(info.Freeswap)) * unit}
}

// readShared reads the files that processes hold open, if due: at first, after the host's shared memory has changed,
// and every 10 s as long as the job has some.
func (t *Tree) readShared(begin clockReading) {
	s, host := &t.shared, t.host.shared
	t.use.Unowned = math.NaN()
	moved := math.Abs(host-s.at) >= max(sharedMoves, t.mapped/100)
	idle := s.open == 0 && t.rssOnly == nil || begin.mono < s.looked+sharedInterval
	if begin.mono < s.due || s.known && !moved && idle {
		return
	}

	from := t.clock()
	mapped := t.mappedShared()
	open := t.readOpenFiles(mapped)
	end := t.clock()
	s.due, s.looked, s.at = nextDue(from, end, sharedPart), end.mono, host
	if !s.known && t.o.Running {
		s.before -= mapped + open // the job had that already
	}
	s.known = true
	s.most = max(s.most, mapped+open)
	t.use.MemoryFresh = t.use.MemoryFresh || open != s.open
	s.open = open
	if t.measured == begin.mono || t.rssOnly != nil || t.isSteady(t.resident()) { // else mapped is outdated
		t.use.Unowned = s.beyond(min(host, readHost().shared))
	}
}

// beyond returns by how many bytes the host's shared memory has grown beyond the job's highest amount.
func (s *sharedMemory) beyond(host float64) float64 { return max(0, host-s.before-s.most) }

// LeftoverShared returns the shared memory that a job without processes may have left on the host, see
// TreeUsage.Unowned. NaN is unknown.
func (t *Tree) LeftoverShared() float64 { return t.shared.beyond(readHost().shared) }

// mappedShared returns the shared memory that the job's processes have mapped. Without PSS it reads their status, which
// also has their swap.
func (t *Tree) mappedShared() (sum float64) {
	for i, p := range t.jobProcs {
		if !p.dead() && i < maxDescriptors && (t.rssOnly != nil || p.pss > 0 && !p.parts) {
			r, err := t.status(p)
			switch {
			case err != nil:
			case t.rssOnly != nil:
				p.rollup = r
			default:
				p.shmem = r.shmem
			}
		}
		sum += float64(p.shmem)
	}
	return sum
}

// readOpenFiles returns the bytes of memory files that processes hold open but have not mapped.
func (t *Tree) readOpenFiles(mapped float64) float64 {
	s := &t.shared
	s.mounts, s.mountsPID = map[uint64]bool{}, 0 // mount IDs are reused
	left := maxDescriptors
	first := 0
	for i, p := range t.jobProcs {
		if p.pid < s.next {
			first = i + 1
		}
	}
	for i := first; i < len(t.jobProcs) && left > 0; i++ {
		left -= t.readDescriptors(t.jobProcs[i], left)
		s.next = t.jobProcs[i].pid + 1
	}
	if left > 0 { // all processes were read
		t.endRound()
	}

	var all, both float64
	known := len(s.files) == 0 || mapped == 0 || t.readMappings()
	for _, f := range s.files {
		own := f.bytes - min(f.bytes, f.base)
		all += float64(own)
		both += float64(min(f.mapped, own))
	}
	if !known {
		both = all
	}
	return all - min(both, mapped) // not all mapped pages have been touched
}

// endRound forgets the files that no process held open in this round, and starts the next.
func (t *Tree) endRound() {
	s := &t.shared
	for id, f := range s.files {
		if f.round != s.round {
			delete(s.files, id)
		}
	}
	s.round++
	s.next = 0
}

// readDescriptors reads at most so many descriptors of a process, and returns their number.
func (t *Tree) readDescriptors(p *proc, most int) (n int) {
	if p.dead() || p.state == 'D' {
		return 0
	}
	fd, err := t.dir.openAs(p.pid, "fd", unix.O_DIRECTORY)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)

	for {
		size, err := unix.Getdents(fd, t.dir.list)
		if err != nil || size <= 0 {
			return n
		}
		for name, _, rest := nextEntry(t.dir.list[:size]); name != nil; name, _, rest = nextEntry(rest) {
			if name[0] == '.' {
				continue
			}
			if n++; n > most {
				return most
			}
			t.readDescriptor(p, fd, string(name))
		}
	}
}

// readDescriptor records the size of a memory file that a process holds open. It does not stat other files: a file
// server might never answer.
func (t *Tree) readDescriptor(p *proc, dir int, name string) {
	s := &t.shared
	n, err := unix.Readlinkat(dir, name, s.linkBuf[:])
	if err != nil || !t.inMemory(p, name, s.linkBuf[:n]) {
		return
	}
	const wanted = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_BLOCKS | unix.STATX_CTIME | unix.STATX_BTIME
	var x unix.Statx_t
	if unix.Statx(dir, name, 0, wanted, &x) != nil || x.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}

	id := fileID{deviceOf(uint64(x.Dev_major), uint64(x.Dev_minor)), x.Ino}
	f := s.files[id]
	if f == nil {
		f = &openFile{}
		if s.predatesJob(&x) {
			f.base = x.Blocks * blockSize
		}
		s.files[id] = f
	}
	f.bytes, f.round = x.Blocks*blockSize, s.round
}

// blockSize is the unit of st_blocks (stat(3type)).
const blockSize = 512

// clockStep is by how much the times of files may lag: one tick of the kernel.
const clockStep = 10 * time.Millisecond

// predatesJob reports whether a file existed before the job. Old kernels do not report when a file was created.
func (s *sharedMemory) predatesJob(x *unix.Statx_t) bool {
	made := x.Ctime
	if x.Mask&unix.STATX_BTIME != 0 {
		made = x.Btime
	}
	return time.Unix(made.Sec, int64(made.Nsec)).Before(s.begun.Add(-clockStep))
}

// deviceOf returns the device number of a fileID.
func deviceOf(major, minor uint64) uint64 { return major<<32 | minor }

// inMemory reports whether a descriptor refers to a memory file, according to its link: of memfd_create(2), or on a
// tmpfs.
func (t *Tree) inMemory(p *proc, name string, link []byte) bool {
	switch {
	case bytes.HasPrefix(link, []byte("/memfd:")):
		return true
	case len(link) == 0 || link[0] != '/':
		return false // a pipe, a socket
	case bytes.HasPrefix(link, []byte("/dev/")) && !bytes.HasPrefix(link, []byte("/dev/shm/")):
		return false // devices
	}
	data, err := t.dir.read(p.pid, "fdinfo/"+name)
	if err != nil {
		return false
	}
	id, ok := parseValue(data, "mnt_id")
	return ok && t.isTmpfs(p, id)
}

// isTmpfs reports whether a mount is a tmpfs. A process may have mounts that others do not see.
func (t *Tree) isTmpfs(p *proc, mount uint64) bool {
	s := &t.shared
	is, known := s.mounts[mount]
	if !known && s.mountsPID != p.pid {
		s.mountsPID = p.pid
		data, _ := s.file.Read(t.fileOf(p, "mountinfo"), maxSharedTable)
		s.addMounts(data)
		is, known = s.mounts[mount]
	}
	if !known { // internal to the kernel
		s.mounts[mount] = false
	}
	return is
}

// addMounts adds the mounts of /proc/PID/mountinfo.
func (s *sharedMemory) addMounts(table []byte) {
	for line := range bytes.Lines(table) {
		first, _, _ := bytes.Cut(line, []byte{' '})
		_, kind, found := bytes.Cut(line, []byte(" - "))
		if id, ok := procfile.ParseCount(first); ok && found {
			s.mounts[id] = bytes.HasPrefix(kind, []byte("tmpfs "))
		}
	}
}

// fileOf returns the path of a file of a process.
func (t *Tree) fileOf(p *proc, name string) string {
	return t.proc() + "/" + strconv.Itoa(int(p.pid)) + "/" + name
}

// readMappings determines how much of the open files processes have mapped. It reports false if the mappings of some
// process are unknown.
func (t *Tree) readMappings() (whole bool) {
	s := &t.shared
	for _, f := range s.files {
		f.mapped = 0
	}
	whole = true
	tables := 0
	for _, p := range t.jobProcs {
		if p.shmem == 0 || p.dead() {
			continue
		}
		if tables++; tables > maxMappings || p.state == 'D' {
			whole = false
			continue
		}
		data, err := s.file.Read(t.fileOf(p, "maps"), maxSharedTable)
		s.addMappings(data)
		whole = whole && (err == nil || isGone(err))
	}
	return whole
}

// addMappings adds the mappings of /proc/PID/maps: lines "from-to perms offset major:minor inode path".
func (s *sharedMemory) addMappings(table []byte) {
	for line := range bytes.Lines(table) {
		var f [6][]byte
		if procfile.SplitFields(line, f[:]) < len(f) {
			continue
		}
		ino, ok := procfile.ParseCount(f[4])
		if !ok || ino == 0 {
			continue
		}
		major, minor, ok := parsePair(f[3], ':')
		if !ok {
			continue
		}
		if file := s.files[fileID{deviceOf(major, minor), ino}]; file != nil {
			if from, to, ok := parsePair(f[0], '-'); ok && to > from {
				file.mapped += to - from
			}
		}
	}
}

// parsePair parses two hexadecimal numbers separated by a byte.
func parsePair(text []byte, between byte) (a, b uint64, ok bool) {
	first, second, _ := bytes.Cut(text, []byte{between})
	a, err := strconv.ParseUint(string(first), 16, 64)
	if err != nil {
		return 0, 0, false
	}
	b, err = strconv.ParseUint(string(second), 16, 64)
	return a, b, err == nil
}
