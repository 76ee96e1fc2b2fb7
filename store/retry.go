package store

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/internal/retry"
)

// Temporary reports whether err may be temporary, because the server is absent, unreachable or busy. A wrong password
// or a full disk is permanent.
func Temporary(err error) bool {
	if busy, answered := serverBusy(err); answered {
		return busy
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsTemporary || dns.IsTimeout
	}

	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		ok && timeout.Timeout()
}

// serverBusy reports whether err is an error response of a server (answered), and whether that is temporary (busy).
func serverBusy(err error) (busy, answered bool) {
	e, ok := errors.AsType[serverError](err)
	return ok && e.isTemporary(), ok
}

// A serverError is an error response of a server.
type serverError interface {
	error
	isTemporary() bool // whether the server may respond differently later
}

// The wait between two attempts grows from minRetryWait to maxRetryWait, unless the server asks for a longer one.
const (
	minRetryWait = 500 * time.Millisecond
	maxRetryWait = 5 * time.Second

	maxRetryAfter = time.Minute // limit of a wait requested by the server
)

// maxBusyAttempts limits how often an operation is tried on a busy server if the context has no deadline.
const maxBusyAttempts = 4

// withRetries calls try until try succeeds or fails permanently, or ctx ends. If ctx has no deadline, it calls try
// once, or a few times if the server responds that it is busy. op and name are used to check the name and to record
// metrics.
func (s *Store) withRetries(ctx context.Context, op, name string, try func() error) error {
	if c, ok := s.connector.(checker); ok && op != "list" {
		if err := c.check(ctx, name); err != nil {
			return err
		}
	}

	_, ends := ctx.Deadline()
	var last error // more informative than the end of ctx
	for n, wait := 1, minRetryWait; ; n, wait = n+1, min(maxRetryWait, wait*3/2) {
		err := try()
		if err != nil && ctx.Err() != nil && last != nil {
			return last
		}
		last = err
		if err == nil || !Temporary(err) {
			return err
		}
		if busy, _ := serverBusy(err); !ends && (!busy || n == maxBusyAttempts) {
			return err
		}
		if retry.Wait(ctx, max(wait, retryAfter(err))) != nil {
			return err
		}
		s.recordCount("store."+op+".retries", name)
	}
}

// retryAfter returns the wait requested by the server in the response err, or 0.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*s3Error](err); ok {
		return min(e.after, maxRetryAfter)
	}
	return 0
}
