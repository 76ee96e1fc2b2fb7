package host

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roomRole is the variable that makes TestFreeSpaceRole print the free space of "/".
const roomRole = "PERFAGENT_ROOM_ROLE"

// TestFreeSpaceRole runs in user namespaces, started by TestFreeSpace_CountsReserveOnlyForHostRoot.
func TestFreeSpaceRole(t *testing.T) {
	if os.Getenv(roomRole) == "" {
		t.Skip("it is a part of TestFreeSpace_CountsReserveOnlyForHostRoot")
	}
	for begin := time.Now(); ; { // others write there: before and after must agree
		st, unit, err := newMount("/").statfs()
		r, errRoom := freeSpace("/")
		again, _, _ := newMount("/").statfs()
		if err == nil && (again.Bfree != st.Bfree || again.Bavail != st.Bavail) && time.Since(begin) < time.Minute {
			continue
		}
		fmt.Println("room:", os.Geteuid(), r.FreeMB == float64(st.Bfree)*float64(unit)/mib, r.FreeMB == float64(st.Bavail)*float64(unit)/mib, err, errRoom)
		return
	}
}

// Root on the host may use the reserved blocks; root of a user namespace, who is another user of the host, may not.
func TestFreeSpace_CountsReserveOnlyForHostRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: run the tests as root")
	}
	if st, _, err := newMount("/").statfs(); err != nil || st.Bfree == st.Bavail {
		t.Skipf("needs a file system with a reserve at /, such as ext4: %v", err)
	}
	ids := func(host, n int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: host, Size: n}}
	}

	for name, c := range map[string]struct {
		users []syscall.SysProcIDMap // nil = no new namespace
		want  string
	}{
		"host":           {nil, "room: 0 true false"},
		"all of its own": {ids(0, 1<<32-1), "room: 0 true false"},
		"rootless":       {ids(65534, 1), "room: 0 false true"},
		"container":      {ids(100000, 65536), "room: 0 false true"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run", "^TestFreeSpaceRole$")
			cmd.Env = append(os.Environ(), roomRole+"=1")
			cmd.SysProcAttr = &syscall.SysProcAttr{}
			if c.users != nil {
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: c.users, GidMappings: c.users,
					Credential: &syscall.Credential{NoSetGroups: true}}
			}
			out, err := cmd.CombinedOutput()
			if err != nil && c.users != nil && !strings.Contains(string(out), "room:") {
				t.Skipf("no user namespace can be made here (sysctl user.max_user_namespaces): %v: %s", err, out)
			}
			if err != nil || !strings.Contains(string(out), c.want+" <nil> <nil>\n") {
				t.Errorf("error %v, output %s; want no error and %q", err, out, c.want+" <nil> <nil>")
			}
		})
	}
}
