package store

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// Temporary reports whether the reason for an error may pass by itself: a server that is not there, that is cut off or that is
// busy. A wrong password or a full disk is not of that kind.
func Temporary(err error) bool {
	var answer redisError
	if errors.As(err, &answer) {
		return answer.passes()
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary || dns.IsTimeout
	}

	var timeout net.Error
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// The waits between two attempts.
const (
	firstWait = 500 * time.Millisecond
	longest   = 5 * time.Second
)

// again tries an operation until it succeeds, fails for good, or ctx ends. Where ctx has no end it tries once.
func (s *Store) again(ctx context.Context, op, name string, try func() error) error {
	_, ends := ctx.Deadline()
	for wait := firstWait; ; wait = min(longest, wait*3/2) {
		err := try()
		if err == nil || !ends || !Temporary(err) {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
			s.count("store."+op+".retries", name)
		}
	}
}
