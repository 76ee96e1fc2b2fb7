// Package timeout limits the wait for calls that may never return. Examples are access to a file system with a dead
// server, reading about a process that the kernel cannot inspect, and writing to a terminal that nothing reads.
//
// A system call that hangs cannot be canceled. So each call runs in a separate goroutine, which ends with the call or
// with the program, and the caller waits for a limited time.
package timeout

import (
	"runtime"
	"time"
)

// Call returns the result of fn. ok is false if fn has not returned within limit. In this case, fn continues to run,
// and its result is dropped.
func Call[T any](limit time.Duration, fn func() T) (result T, ok bool) {
	results := make(chan T, 1)
	go func() { results <- fn() }()
	return Receive(results, limit)
}

// Receive returns the next value of a channel, or the zero value if the channel is closed. ok is false if nothing
// arrives within limit. Receive sets a timer only if there is no value even after other goroutines have run, because a
// timer wakes another thread.
func Receive[T any](from <-chan T, limit time.Duration) (value T, ok bool) {
	var timer *time.Timer
	return receive(from, limit, &timer)
}

// receive is like Receive, but with a reusable timer, which it creates when it first needs one.
func receive[T any](from <-chan T, limit time.Duration, timer **time.Timer) (value T, ok bool) {
	select {
	case value = <-from:
		return value, true
	default:
	}
	if limit <= 0 {
		return value, false
	}

	runtime.Gosched()
	select {
	case value = <-from:
		return value, true
	default:
	}

	if *timer == nil {
		*timer = time.NewTimer(limit)
	} else {
		(*timer).Reset(limit)
	}
	defer (*timer).Stop()
	select {
	case value = <-from:
		return value, true
	case <-(*timer).C:
		return value, false
	}
}

// A Caller makes at most one call at a time. So if calls hang, there is only one waiting goroutine, regardless of the
// number of calls. Create a Caller with NewCaller, and use it from one goroutine only. Its calls allocate no memory.
type Caller[T any] struct {
	fn      func() T
	results chan T
	serve   func()
	timer   *time.Timer // nil until first needed
	pending bool
}

// NewCaller returns an idle Caller.
func NewCaller[T any]() *Caller[T] {
	a := &Caller[T]{results: make(chan T, 1)}
	a.serve = func() { a.results <- a.fn() }
	return a
}

// Pending reports whether a call has been started and its result has not been taken.
func (a *Caller[T]) Pending() bool { return a.pending }

// Start starts a call of fn and returns true. While another call is pending, it does nothing and returns false.
func (a *Caller[T]) Start(fn func() T) bool {
	if a.pending {
		return false
	}
	a.fn, a.pending = fn, true
	go a.serve()
	return true
}

// Result takes the result of the pending call. ok is false if no call is pending, or if the call has not returned
// within limit.
func (a *Caller[T]) Result(limit time.Duration) (result T, ok bool) {
	if !a.pending {
		return result, false
	}
	if result, ok = receive(a.results, limit, &a.timer); ok {
		a.pending = false
	}
	return result, ok
}

// Call returns the result of fn. ok is false if fn has not returned within limit. If the previous call has returned
// late, its result is dropped as outdated. If the previous call is still pending, fn is not called and ok is false.
func (a *Caller[T]) Call(limit time.Duration, fn func() T) (result T, ok bool) {
	a.Result(0)
	if !a.Start(fn) {
		return result, false
	}
	return a.Result(limit)
}
