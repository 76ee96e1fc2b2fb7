// Package patience asks questions that may never be answered: to a file system whose server is
// gone, to the kernel about a process that it cannot look into, to a terminal that is not read.
//
// A system call that hangs cannot be called off. So each question has a goroutine of its own, which
// ends with the answer or with the program, and whoever asks waits for a limited time.
package patience

import (
	"runtime"
	"time"
)

// Ask returns the answer to a question. It reports false if there is none within limit; the
// question remains open then, and its answer is dropped.
func Ask[T any](limit time.Duration, question func() T) (answer T, ok bool) {
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

// An Asker asks one question after the other: while one is open, it asks no other. So what hangs costs one goroutine,
// however often it is asked for. It is made by New, and belongs to one goroutine. It allocates nothing for a question.
type Asker[T any] struct {
	question func() T
	answers  chan T
	serve    func()
	timer    *time.Timer // nil until one was needed
	open     bool
}

// New returns an Asker that has asked nothing yet.
func New[T any]() *Asker[T] {
	a := &Asker[T]{answers: make(chan T, 1)}
	a.serve = func() { a.answers <- a.question() }
	return a
}

// Open reports whether a question was asked whose answer was not taken.
func (a *Asker[T]) Open() bool { return a.open }

// Start asks a question, and reports whether it did: it does not while one is open.
func (a *Asker[T]) Start(question func() T) bool {
	if a.open {
		return false
	}
	a.question, a.open = question, true
	go a.serve()
	return true
}

// Answer takes the answer to the open question, and reports false if there is none within limit.
func (a *Asker[T]) Answer(limit time.Duration) (answer T, ok bool) {
	if !a.open {
		return answer, false
	}
	if answer, ok = receive(a.answers, limit, &a.timer); ok {
		a.open = false
	}
	return answer, ok
}

// Ask returns the answer to a question, and reports false if there is none within limit. A late answer to the question
// before is dropped, as it is of another time; while that one is still open, nothing is asked.
func (a *Asker[T]) Ask(limit time.Duration, question func() T) (answer T, ok bool) {
	a.Answer(0)
	if !a.Start(question) {
		return answer, false
	}
	return a.Answer(limit)
}
