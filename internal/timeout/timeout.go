// Package patience asks questions that may never be answered: to a file system whose server is
// gone, to the kernel about a process that it cannot look into, to a terminal that is not read.
//
// A system call that hangs cannot be called off. So each question has a goroutine of its own, which
// ends with the answer or with the program, and whoever asks waits for a limited time.
package timeout

import (
	"runtime"
	"time"
)

// Call returns the answer to a question. It reports false if there is none within limit; the
// question remains open then, and its answer is dropped.
func Call[T any](limit time.Duration, question func() T) (answer T, ok bool) {
	answers := make(chan T, 1)
	go func() { answers <- question() }()
	return Receive(answers, limit)
}

// Receive returns the next value of a channel, or the zero value of one that is closed. It reports
// false if nothing comes within limit. It sets no timer where the value is already there, or comes
// as soon as other goroutines have run: a timer wakes another thread.
func Receive[T any](from <-chan T, limit time.Duration) (value T, ok bool) {
	var timer *time.Timer
	return receive(from, limit, &timer)
}

// receive is Receive with a timer that is made when it is needed, and may be used again.
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

// A Caller asks one question after the other: while one is open, it asks no other. So what hangs costs one goroutine,
// however often it is asked for. It is made by New, and belongs to one goroutine. It allocates nothing for a question.
type Caller[T any] struct {
	fn      func() T
	results chan T
	serve   func()
	timer   *time.Timer // nil until one was needed
	pending bool
}

// NewCaller returns an Asker that has asked nothing yet.
func NewCaller[T any]() *Caller[T] {
	a := &Caller[T]{results: make(chan T, 1)}
	a.serve = func() { a.results <- a.fn() }
	return a
}

// Pending reports whether a question was asked whose answer was not taken.
func (a *Caller[T]) Pending() bool { return a.pending }

// Start asks a question, and reports whether it did: it does not while one is open.
func (a *Caller[T]) Start(question func() T) bool {
	if a.pending {
		return false
	}
	a.fn, a.pending = question, true
	go a.serve()
	return true
}

// Result takes the answer to the open question, and reports false if there is none within limit.
func (a *Caller[T]) Result(limit time.Duration) (answer T, ok bool) {
	if !a.pending {
		return answer, false
	}
	if answer, ok = receive(a.results, limit, &a.timer); ok {
		a.pending = false
	}
	return answer, ok
}

// Call returns the answer to a question, and reports false if there is none within limit. A late answer to the question
// before is dropped, as it is of another time; while that one is still open, nothing is asked.
func (a *Caller[T]) Call(limit time.Duration, question func() T) (answer T, ok bool) {
	a.Result(0)
	if !a.Start(question) {
		return answer, false
	}
	return a.Result(limit)
}
