package procfile

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// InHostUserNamespace reports whether user IDs mean to this process what they mean to the host: it is in
// the first user namespace, or in one that has every user of its parent by the same ID, which
// can only be made where all users are. The kernel lets a namespace be described once, so that
// the file is read at most once.
func InHostUserNamespace() bool { return inHostUserNamespace() }

var inHostUserNamespace = sync.OnceValue(func() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without user namespaces
		return true
	}
	return err == nil && isIdentityMap(string(ids))
})

// isIdentityMap reports whether a uid_map (user_namespaces(7)) maps each user ID to itself.
func isIdentityMap(ids string) bool {
	return strings.Join(strings.Fields(ids), " ") == "0 0 4294967295"
}
