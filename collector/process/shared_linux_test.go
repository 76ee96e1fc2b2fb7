package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/testenv"
)

// treeHold allocates mib MiB in a memory file after one byte of input, and releases them after another byte.
func treeHold(how string, mib int) {
	next := func() { _, _ = os.Stdin.Read(make([]byte, 1)) }
	fmt.Println("ready")
	next()

	fd, err := unix.MemfdCreate("held", unix.MFD_CLOEXEC)
	if how == "tmpfs" {
		fd, err = unix.Open("/dev/shm", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	}
	treeMust(err)
	size := mib << 20
	treeMust(unix.Ftruncate(fd, int64(size)))
	mapped := map[string]int{"mapped": size, "half": size / 2}[how]
	if mapped > 0 {
		data, err := unix.Mmap(fd, 0, mapped, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		treeMust(err)
		for i := 0; i < len(data); i += 4096 {
			data[i] = 1
		}
	}
	block := make([]byte, 1<<16)
	for at := mapped; at < size; at += len(block) {
		_, err := unix.Pwrite(fd, block, int64(at))
		treeMust(err)
	}
	fmt.Println("held")
	next()
	if mapped == 0 {
		treeMust(unix.Close(fd))
	}
	fmt.Println("closed")
	next()
}

// Memory files count once, as in their control group, whether processes have mapped them or only hold them open.
func TestTree_CountsFilesInMemory(t *testing.T) {
	const mib = 24 // containers have 64 MiB of /dev/shm
	for _, how := range []string{"memfd", "tmpfs", "mapped", "half"} {
		t.Run(how, func(t *testing.T) {
			tree := treeOwn(t)
			j := treeStart(t, treeSelf("hold "+how+" "+strconv.Itoa(mib)))
			step := func(want string) float64 {
				if got := j.line(t); got != want {
					t.Fatalf("the job printed %q, want %q", got, want)
				}
				u := treeRead(t, tree)
				if u.MemoryKind != "pss" {
					t.Fatalf("usage %+v, want a PSS", u)
				}
				_, _ = j.input.Write([]byte("x"))
				return u.Memory / (1 << 20)
			}
			before, held, after := step("ready"), step("held"), step("closed")
			if grown := held - before; grown < 0.98*mib || grown > 1.05*mib+1 {
				t.Errorf("job holds a file of %d MiB: its memory grew from %.1f to %.1f MiB, want growth by 98 to 105 %% of the file",
					mib, before, held)
			}
			if how == "memfd" || how == "tmpfs" {
				if after > before+1 {
					t.Errorf("memory after the file was closed = %.1f MiB, want %.1f as before it was opened", after, before)
				}
			}
		})
	}
}

// Growth of the host's shared memory that no process holds is reported separately.
func TestTree_ReportsUnownedSharedMemorySeparately(t *testing.T) {
	const much = 1 << 40 // more than any host has, so changes by other processes do not matter
	tree := treeOwn(t)
	treeStart(t, treeSelf("linger 1")).line(t)
	tree.shared.before -= much
	if u := treeRead(t, tree); !(u.Unowned > much/2 && u.Unowned < 2*much) || u.Memory > much/2 {
		t.Errorf("usage %+v, want Unowned of about %v bytes, and Memory without them", u, float64(much))
	}
	tree.shared.most = much // as if the job had closed the file since
	if left := tree.LeftoverShared(); left > much/2 {
		t.Errorf("LeftoverShared = %v for a file that was already part of Memory, want at most %v", left, float64(much/2))
	}
	tree.shared.most = 0
	running := NewTree(Options{Root: os.Getpid(), Running: true})
	defer running.Close()
	running.jobProcs = []*proc{{measuredMemory: measuredMemory{rollup: rollup{shmem: much}}}}
	running.readShared(running.clock())
	if was := tree.shared.before + much - running.shared.before; !(was > much/2 && was < 2*much) {
		t.Errorf("%v bytes of the running job are excluded, want about %v", was, float64(much))
	}
	if left := tree.LeftoverShared(); !(left > much/2 && left < 2*much) {
		t.Errorf("LeftoverShared = %v, want about %v", left, float64(much))
	}
}

// opens creates descriptors of a process. links are the targets and mounts the mount IDs, by descriptor.
func (p treeProc) opens(pid int, links map[int]string, mounts map[int]int) {
	p.tb.Helper()
	must(p.tb, os.MkdirAll(filepath.Join(p.dir, strconv.Itoa(pid), "fd"), 0o755))
	for fd, to := range links {
		must(p.tb, os.Symlink(to, filepath.Join(p.dir, strconv.Itoa(pid), "fd", strconv.Itoa(fd))))
		if mounts[fd] == 0 {
			continue
		}
		p.file(pid, "fdinfo/"+strconv.Itoa(fd), fmt.Sprintf("pos:\t0\nflags:\t0100002\nmnt_id:\t%d\nino:\t9\n", mounts[fd]))
	}
}

const treeMounts = `21 1 0:21 / / rw - ext4 /dev/vda rw
22 21 0:22 / /shm rw,relatime shared:3 - tmpfs tmpfs rw,size=1024k
23 21 0:23 / /net rw - nfs4 server:/export rw
`

// Only files on a tmpfs are measured. Each counts once, and files older than the job count only with their growth.
func TestTree_CountsOnlyOpenFilesOnTmpfs(t *testing.T) {
	p := treeFixture(t)
	block := strings.Repeat("x", 256<<10)
	file := func(name string, blocks int) (path string, bytes float64) {
		path = filepath.Join(t.TempDir(), name)
		p.write(path, strings.Repeat(block, blocks))
		var st unix.Stat_t
		must(p.tb, unix.Stat(path, &st))
		return path, float64(st.Blocks * blockSize)
	}
	shm, shmBytes := file("shm", 4)
	net, _ := file("net", 4)
	old, oldBytes := file("old", 2)
	disk, _ := file("disk", 4)

	p.put(treeLine{pid: 200, parent: 100, start: 60, pssKB: 8})
	p.put(treeLine{pid: 201, parent: 100, start: 60, pssKB: 8})
	for _, pid := range []int{200, 201} {
		p.file(pid, "mountinfo", treeMounts)
	}
	p.opens(200, map[int]string{0: "pipe:[17]", 1: shm, 2: net, 3: disk, 4: "/dev/null", 5: shm}, map[int]int{1: 22, 2: 23, 3: 21, 4: 22, 5: 22})
	p.opens(201, map[int]string{7: shm, 8: old}, map[int]int{7: 22, 8: 22})
	tree := p.tree(nil)
	tree.shared.begun = time.Time{}
	if u := treeRead(t, tree); u.Memory != 16<<10+shmBytes+oldBytes {
		t.Errorf("size of open files = %v bytes, want %v", u.Memory-16<<10, shmBytes+oldBytes)
	}

	tree = p.tree(nil)
	tree.shared.begun = time.Now().Add(time.Hour)
	if u := treeRead(t, tree); u.Memory != 16<<10 {
		t.Errorf("memory = %v bytes, want %d without files older than the job", u.Memory, 16<<10)
	}
	p.write(old, strings.Repeat(block, 3))
	var st unix.Stat_t
	must(p.tb, unix.Stat(old, &st))
	tree.shared.known = false // so that the next Read reads descriptors
	if u := treeRead(t, tree); u.Memory != 16<<10+float64(st.Blocks*blockSize)-oldBytes {
		t.Errorf("size of open files = %v bytes, want %v, the growth of the old file",
			u.Memory-16<<10, float64(st.Blocks*blockSize)-oldBytes)
	}
}

// If there are more descriptors than are read at a time, later reads continue with the rest, and known files still
// count.
func TestTree_ReadsManyDescriptorsInParts(t *testing.T) {
	testenv.SkipIfShort(t, "half a second")
	p := treeFixture(t)
	path := filepath.Join(t.TempDir(), "file")
	p.write(path, strings.Repeat("x", 1<<20))
	links, mounts := map[int]string{}, map[int]int{}
	for fd := range maxDescriptors + 100 {
		links[fd] = "socket:[1]"
	}
	p.put(treeLine{pid: 200, parent: 100, start: 60, pssKB: 8})
	p.opens(200, links, mounts)
	p.put(treeLine{pid: 201, parent: 100, start: 60, pssKB: 8})
	p.file(201, "mountinfo", treeMounts)
	p.opens(201, map[int]string{3: path}, map[int]int{3: 22})
	tree := p.tree(nil)
	tree.shared.begun = time.Time{}
	for look, want := range []bool{false, true, true, true} {
		tree.shared.known = false
		if u := treeRead(t, tree); (u.Memory > 1<<20) != want {
			t.Errorf("read %d: memory = %v bytes, want more than 1 MiB: %v", look, u.Memory, want)
		}
	}
	p.remove(filepath.Join(p.dir, "201", "fd", "3"))
	for range 4 {
		tree.shared.known = false
		treeRead(t, tree)
	}
	if u := treeRead(t, tree); u.Memory > 1<<20 {
		t.Errorf("memory after the file was closed = %v bytes, want at most 1 MiB", u.Memory)
	}
}

// Mappings are matched with open files by device and inode. Mappings of other files do not count.
func TestSharedMemory_AddMappingsCountsOnlyOpenFiles(t *testing.T) {
	id := fileID{unix.Mkdev(0, 0x1d), 42}
	s := sharedMemory{files: map[fileID]*openFile{id: {bytes: 1 << 20}}}
	s.addMappings([]byte(`557e20d2c000-557e20d2e000 r--p 00000000 fe:00 42                          /usr/bin/x
7f0000000000-7f0000080000 rw-s 00000000 00:1d 42                          /dev/shm/x (deleted)
7f0000100000-7f0000180000 rw-s 00080000 00:1d 43                          /dev/shm/y
7f0000200000-7f0000210000 rw-p 00000000 00:00 0
nonsense
zz-yy rw-s 0 00:1d 42 x
`))
	if got := s.files[id].mapped; got != 0x80000 {
		t.Errorf("mapped bytes of the file = %#x, want 0x80000", got)
	}
}
