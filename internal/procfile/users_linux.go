package procfile

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// InHostUserNamespace reports whether user IDs mean the same in this process as on the host. They do in the initial
// user namespace, and in one that maps every user of its parent to the same ID, which can only be created where all
// users are mapped. The map of a namespace can be set only once, so it is read at most once.
var InHostUserNamespace = sync.OnceValue(func() bool {
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
