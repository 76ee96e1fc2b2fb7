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
	// sharedInterval is the interval at which descriptors are read if nothing suggests that files grew. Otherwise,
	// reading them may take the share sharedPart of a core.
	sharedInterval = 10 * time.Second
	sharedPart     = 0.001
	// sharedMoves is the change of the host's shared memory, in bytes, that suggests that files grew.
	sharedMoves = 1 << 20
	// maxDescriptors is the maximum number of descriptors that are read at a time. Later reads continue with the rest.
	maxDescriptors = 1000
	// maxSharedTable is the maximum size of a process's mountinfo or maps.
	maxSharedTable = 4 << 20
	// maxMappings is the maximum number of processes with mappings that are read at a time.
	maxMappings = 64
)

// sharedMemory tracks the job's shared memory that its processes hold open but have not mapped: files of tmpfs and of
// memfd_create(2). The kernel charges it to the job's control group, but to no process.
type sharedMemory struct {
	open  float64 // bytes
	total float64 // bytes of open and mapped memory, when open was read
	files map[fileID]*openFile
	next  int32 // ID of the process to continue with in this round
	round int

	begun  time.Time // start of the job, as the content of older files may not be the job's; zero = all content counts
	before float64   // the host's shared memory, in bytes, when the Tree was created
	at     float64   // the host's shared memory when descriptors were last read
	most   float64   // the highest amount of shared memory that belonged to the job, including files closed since
	due    time.Duration
	looked time.Duration
	known  bool // descriptors were read at least once

	mounts    map[uint64]bool // whether a mount is a tmpfs, by mount ID; for the current read only
	mountsPID int32           // the process from which mounts were last added
	file      procfile.Buffer
	linkBuf   [64]byte // the beginning of a link's text
}

// A fileID identifies a file on this host.
type fileID struct {
	dev uint64
	ino uint64
}

// An openFile is a file in memory that processes of the job hold open.
type openFile struct {
	bytes  uint64
	base   uint64 // bytes before the job began
	mapped uint64 // upper bound of the part of bytes that processes have mapped
	round  int    // the round in which the file was last seen
}

// newSharedMemory returns the state before the first Read. running reports whether the job is already running.
func newSharedMemory(running bool) sharedMemory {
	s := sharedMemory{before: readHost().shared, files: map[fileID]*openFile{}}
	s.at = s.before
	if !running {
		s.begun = time.Now()
	}
	return s
}

// hostMemory holds the host's shared memory including all tmpfs (Shmem of /proc/meminfo), and its swap in use, in
// bytes. NaN means unknown.
type hostMemory struct{ shared, swap float64 }

// readHost reads the hostMemory with sysinfo(2), in less than a microsecond.
func readHost() hostMemory {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return hostMemory{math.NaN(), math.NaN()}
	}
	unit := float64(max(info.Unit, 1))
	return hostMemory{float64(info.Sharedram) * unit, (float64(info.Totalswap) - float64(info.Freeswap)) * unit}
}

// readShared reads the files that processes hold open, if due: the first time, after the host's shared memory has
// changed, and every 10 s while the job has such files.
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
		s.before -= mapped + open // the job already had this memory at the first Read
	}
	s.known = true
	s.most = max(s.most, mapped+open)
	t.use.MemoryFresh = t.use.MemoryFresh || open != s.open
	s.open, s.total = open, mapped+open
	if t.measured == begin.mono || t.rssOnly != nil || t.isSteady(t.resident()) { // otherwise mapped is outdated
		t.use.Unowned = s.beyond(min(host, readHost().shared))
	}
}

// beyond returns the growth of the host's shared memory, in bytes, minus the job's highest amount. host is the current
// shared memory of the host.
func (s *sharedMemory) beyond(host float64) float64 { return max(0, host-s.before-s.most) }

// LeftoverShared returns how many bytes of shared memory a job may have left on the host after its last process ended,
// see TreeUsage.Unowned. NaN means unknown.
func (t *Tree) LeftoverShared() float64 { return t.shared.beyond(readHost().shared) }

// mappedShared returns the shared memory that the job's processes have mapped, in bytes. If smaps_rollup does not
// report the amount, it reads the process's status instead, and without PSS also takes the swap from there.
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

// readOpenFiles returns the bytes of memory files that processes hold open but have not mapped. mapped is the shared
// memory that they have mapped.
func (t *Tree) readOpenFiles(mapped float64) float64 {
	s := &t.shared
	s.mounts, s.mountsPID = map[uint64]bool{}, 0 // the kernel may have reused mount IDs
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
	return all - min(both, mapped) // at most mapped: mappings also count pages that were never touched
}

// endRound forgets the files that no process held open in this round, and starts a new round.
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

// readDescriptors reads up to most descriptors of p, and returns how many it has read.
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

// readDescriptor records the size of the file that p holds open as the descriptor name, if it is in memory. It does not
// call stat on other files, because a file server might never answer.
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

	id := fileID{unix.Mkdev(x.Dev_major, x.Dev_minor), x.Ino}
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

// clockStep is the maximum lag of file times behind the clock: one tick of the kernel.
const clockStep = 10 * time.Millisecond

// predatesJob reports whether the file existed before the job. Old kernels do not report when a file was created; on
// these, it uses the time of the last change.
func (s *sharedMemory) predatesJob(x *unix.Statx_t) bool {
	made := x.Ctime
	if x.Mask&unix.STATX_BTIME != 0 {
		made = x.Btime
	}
	return time.Unix(made.Sec, int64(made.Nsec)).Before(s.begun.Add(-clockStep))
}

// inMemory reports whether the descriptor name of p refers to a file in memory, according to its link: a file of
// memfd_create(2), or one on a tmpfs.
func (t *Tree) inMemory(p *proc, name string, link []byte) bool {
	switch {
	case bytes.HasPrefix(link, []byte("/memfd:")):
		return true
	case len(link) == 0 || link[0] != '/':
		return false // a pipe or socket, for example
	case bytes.HasPrefix(link, []byte("/dev/")) && !bytes.HasPrefix(link, []byte("/dev/shm/")):
		return false // a device
	}
	data, err := t.dir.read(p.pid, "fdinfo/"+name)
	if err != nil {
		return false
	}
	id, ok := parseValue(data, "mnt_id")
	return ok && t.isTmpfs(p, id)
}

// isTmpfs reports whether the mount with the given ID is a tmpfs. If the ID is unknown, it reads the mounts of p, which
// may have mounts that other processes do not have.
func (t *Tree) isTmpfs(p *proc, mount uint64) bool {
	s := &t.shared
	is, known := s.mounts[mount]
	if !known && s.mountsPID != p.pid {
		s.mountsPID = p.pid
		data, _ := s.file.Read(t.fileOf(p, "mountinfo"), maxSharedTable)
		s.addMounts(data)
		is, known = s.mounts[mount]
	}
	if !known { // a mount that is internal to the kernel
		s.mounts[mount] = false
	}
	return is
}

// addMounts adds the mounts in table, a /proc/PID/mountinfo, to s.mounts.
func (s *sharedMemory) addMounts(table []byte) {
	for line := range bytes.Lines(table) {
		first, _, _ := bytes.Cut(line, []byte{' '})
		_, kind, found := bytes.Cut(line, []byte(" - "))
		if id, ok := procfile.ParseCount(first); ok && found {
			s.mounts[id] = bytes.HasPrefix(kind, []byte("tmpfs "))
		}
	}
}

// fileOf returns the path of the file with the given name in p's procfs directory.
func (t *Tree) fileOf(p *proc, name string) string {
	return t.o.Proc + "/" + strconv.Itoa(int(p.pid)) + "/" + name
}

// readMappings sets the mapped part of each open file. It reports false if it could not read the mappings of all
// processes.
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

// addMappings adds the mappings in table, a /proc/PID/maps, to the open files. A line is "from-to perms offset
// major:minor inode path".
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
		if file := s.files[fileID{unix.Mkdev(uint32(major), uint32(minor)), ino}]; file != nil {
			if from, to, ok := parsePair(f[0], '-'); ok && to > from {
				file.mapped += to - from
			}
		}
	}
}

// parsePair parses two hexadecimal numbers separated by the byte between.
func parsePair(text []byte, between byte) (a, b uint64, ok bool) {
	first, second, _ := bytes.Cut(text, []byte{between})
	a, err := strconv.ParseUint(string(first), 16, 64)
	if err != nil {
		return 0, 0, false
	}
	b, err = strconv.ParseUint(string(second), 16, 64)
	return a, b, err == nil
}
