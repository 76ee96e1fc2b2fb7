// Package timeout limits the wait for calls that may never return: to a file system with a dead server, to the kernel
// about a process that it cannot inspect, to a terminal without a reader.
//
// A system call that hangs cannot be cancelled. So each call has a separate goroutine, which ends with the call or with
// the program, and the caller waits for a limited time.
package timeout

import (
	"runtime"
	"time"
)

// Call returns the result of fn. ok is false if fn has not returned within limit; it then goes on running, and its
// result is dropped.
func Call[T any](limit time.Duration, fn func() T) (result T, ok bool) {
	results := make(chan T, 1)
	go func() { results <- fn() }()
	return Receive(results, limit)
}

// Receive returns the next value of a channel, or the zero value if the channel is closed. ok is false if nothing
// arrives within limit. Receive sets no timer if the value is already there, or arrives as soon as other goroutines
// have run, because a timer wakes another thread.
func Receive[T any](from <-chan T, limit time.Duration) (value T, ok bool) {
	var timer *time.Timer
	return receive(from, limit, &timer)
}

// receive is Receive with a reusable timer, which it makes when it first needs one.
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

// A Caller makes one call at a time, and none while one is pending. So a source that hangs costs one goroutine,
// regardless of the number of calls. Create a Caller with NewCaller, and use it from one goroutine only. Its calls
// allocate no memory.
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

// Pending reports whether a call was started and its result has not been taken.
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

// Result takes the result of the pending call. ok is false if no call is pending, or if it has not returned within
// limit.
func (a *Caller[T]) Result(limit time.Duration) (result T, ok bool) {
	if !a.pending {
		return result, false
	}
	if result, ok = receive(a.results, limit, &a.timer); ok {
		a.pending = false
	}
	return result, ok
}

// Call returns the result of fn; ok is false if fn has not returned within limit. A late result of the previous call is
// dropped as outdated. While the previous call is still pending, fn is not called and ok is false.
func (a *Caller[T]) Call(limit time.Duration, fn func() T) (result T, ok bool) {
	a.Result(0)
	if !a.Start(fn) {
		return result, false
	}
	return a.Result(limit)
}
