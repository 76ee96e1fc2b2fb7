package collector

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// room asks statfs(2). Who is root may use the blocks that are reserved for root.
func room(path string) (Room, error) {
	st, unit, err := statfs(path)
	if err != nil {
		return Room{}, err
	}
	if st.Blocks == 0 || st.Flags&unix.ST_RDONLY != 0 {
		return Room{}, fmt.Errorf("statfs %s: nothing can be written there", path)
	}
	free := st.Bavail
	if os.Geteuid() == 0 {
		free = st.Bfree
	}
	r := Room{Path: path, Free: float64(free) * float64(unit), Inodes: -1}
	if st.Files > 0 { // btrfs and others make inodes as they need them
		r.Inodes = float64(st.Ffree)
	}
	return r, nil
}
