//go:build unix

package mlflow

import "syscall"

// openFlags keep open(2) from waiting for a FIFO's writer and from making a terminal ours.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
