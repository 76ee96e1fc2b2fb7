package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
)

// freeSpace asks statfs(2). Root may use the blocks that are reserved for root.
func freeSpace(path string) (FreeSpace, error) {
	st, unit, err := newMount(path).statfs()
	if err != nil {
		return FreeSpace{}, err
	}
	if st.Blocks == 0 || st.Flags&unix.ST_RDONLY != 0 {
		return FreeSpace{}, fmt.Errorf("statfs %s: nothing can be written there", path)
	}

	free := st.Bavail
	if st.Bfree != free && hostRoot() {
		free = st.Bfree
	}
	r := FreeSpace{Path: path, FreeMB: float64(free) * float64(unit) / mib, Inodes: series.Unknown()}
	r.ReserveMB = r.FreeMB - float64(st.Bavail)*float64(unit)/mib
	if st.Files > 0 { // btrfs and others make inodes as they need them
		r.Inodes = series.Optional(st.Ffree)
	}
	return r, nil
}

// hostRoot reports whether this user is the host's root, not that of a user namespace, such as
// a container's without root: there the reserve is somebody else's.
func hostRoot() bool { return os.Geteuid() == 0 && procfile.HostUsers() }
