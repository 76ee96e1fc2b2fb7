package host

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// room asks statfs(2). Who is root may use the blocks that are reserved for root.
func room(path string) (FreeSpace, error) {
	st, unit, err := statfs(path)
	if err != nil {
		return FreeSpace{}, err
	}
	if st.Blocks == 0 || st.Flags&unix.ST_RDONLY != 0 {
		return FreeSpace{}, fmt.Errorf("statfs %s: nothing can be written there", path)
	}
	free := st.Bavail
	if hostRoot() {
		free = st.Bfree
	}
	r := FreeSpace{Path: path, Free: float64(free) * float64(unit), Inodes: -1}
	r.Reserve = r.Free - float64(st.Bavail)*float64(unit)
	if st.Files > 0 { // btrfs and others make inodes as they need them
		r.Inodes = float64(st.Ffree)
	}
	return r, nil
}

// hostRoot tells whether this user is the host's root, not that of a user namespace, such
// as a container's without root: there the reserve is somebody else's. A namespace that has
// every user of its parent, each by its own id, can only be made where all are.
func hostRoot() bool {
	if os.Geteuid() != 0 {
		return false
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	if os.IsNotExist(err) { // a kernel without user namespaces
		return true
	}
	return err == nil && strings.Join(strings.Fields(string(ids)), " ") == "0 0 4294967295"
}
