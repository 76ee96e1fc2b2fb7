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

// Temporary reports whether the reason for an error may pass by itself: a server that is not there, that is cut off or
// that is busy. A wrong password or a full disk is not of that kind.
func Temporary(err error) bool {
	if busy, answered := serverBusy(err); answered {
		return busy
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary || dns.IsTimeout
	}

	var timeout net.Error
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// serverBusy reports whether an error is the answer of a server, and whether that may pass by itself.
func serverBusy(err error) (busy, answered bool) {
	e, ok := errors.AsType[serverError](err)
	return ok && e.isTemporary(), ok
}

// A serverError is what a server answers in place of a result.
type serverError interface {
	error
	isTemporary() bool // whether it may answer something else in a while
}

// The waits between two attempts.
const (
	minRetryWait = 500 * time.Millisecond
	maxRetryWait = 5 * time.Second

	maxRetryAfter = time.Minute // that a server may ask for
)

// maxBusyAttempts is how often a server that is busy is asked by somebody who waits without an end.
const maxBusyAttempts = 4

// withRetries tries an operation until it succeeds, fails for good, or ctx ends. Where ctx has no end it tries once,
// or a few times if the server answers that it is busy.
func (s *Store) withRetries(ctx context.Context, op, name string, try func() error) error {
	if c, ok := s.connector.(checker); ok && op != "list" {
		if err := c.check(ctx, name); err != nil {
			return err
		}
	}

	_, ends := ctx.Deadline()
	var last error // which tells more than that the time is up
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

// retryAfter returns how long a server has asked to wait; 0 if it has not.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*s3Error](err); ok {
		return min(e.after, maxRetryAfter)
	}
	return 0
}
