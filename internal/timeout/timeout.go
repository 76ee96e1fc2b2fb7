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

// Call returns the result of fn. It reports false if there is none within limit; the call goes on then, and its
// result is dropped.
func Call[T any](limit time.Duration, fn func() T) (result T, ok bool) {
	results := make(chan T, 1)
	go func() { results <- fn() }()
	return Receive(results, limit)
}

// Receive returns the next value of a channel, or the zero value if it is closed. It reports false if nothing comes
// within limit. It sets no timer if the value is already there, or comes as soon as other goroutines have run: a timer
// wakes another thread.
func Receive[T any](from <-chan T, limit time.Duration) (value T, ok bool) {
	var timer *time.Timer
	return receive(from, limit, &timer)
}

// receive is Receive with a timer that is made when needed, and is reusable.
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

// A Caller makes one call after the other, and none while one is pending. So a source that hangs costs one goroutine,
// regardless of the number of calls. It is made by NewCaller, and belongs to one goroutine. It allocates nothing per
// call.
type Caller[T any] struct {
	fn      func() T
	results chan T
	serve   func()
	timer   *time.Timer // nil until one was needed
	pending bool
}

// NewCaller returns an idle Caller.
func NewCaller[T any]() *Caller[T] {
	a := &Caller[T]{results: make(chan T, 1)}
	a.serve = func() { a.results <- a.fn() }
	return a
}

// Pending reports whether there is a call with an untaken result.
func (a *Caller[T]) Pending() bool { return a.pending }

// Start starts a call, and reports whether it did: it does not while one is pending.
func (a *Caller[T]) Start(fn func() T) bool {
	if a.pending {
		return false
	}
	a.fn, a.pending = fn, true
	go a.serve()
	return true
}

// Result takes the result of the pending call, and reports false if there is none within limit.
func (a *Caller[T]) Result(limit time.Duration) (result T, ok bool) {
	if !a.pending {
		return result, false
	}
	if result, ok = receive(a.results, limit, &a.timer); ok {
		a.pending = false
	}
	return result, ok
}

// Call returns the result of fn, and reports false if there is none within limit. A late result of the previous
// call is dropped as outdated; while that call is still pending, fn is not called.
func (a *Caller[T]) Call(limit time.Duration, fn func() T) (result T, ok bool) {
	a.Result(0)
	if !a.Start(fn) {
		return result, false
	}
	return a.Result(limit)
}
