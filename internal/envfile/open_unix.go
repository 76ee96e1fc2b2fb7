//go:build unix

package envfile

import "golang.org/x/sys/unix"

// nonBlocking makes opening a FIFO that nobody writes to return at once.
const nonBlocking = unix.O_NONBLOCK
