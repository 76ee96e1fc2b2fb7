package host

import (
	"runtime"
	"time"
)

// ask puts a question that the kernel may not answer for as long as some disk does not, one
// after the other, on a goroutine of its own: what hangs is absent from the Reading instead
// of stopping the sampling.
type ask[T any] struct {
	answer  chan T
	pending bool // the answer was not here in time
}

func newAsk[T any]() ask[T] { return ask[T]{answer: make(chan T, 1)} }

// put waits for the answer, and for no longer than that; not ok where it is not there in time.
// Nothing is asked before the question before has its answer, for which it waits only if late
// says so. What came late is not used: it is of another time.
func (a *ask[T]) put(question func() T, patience time.Duration, late bool) (answer T, ok bool) {
	begin := time.Now()
	if a.pending {
		wait := patience
		if !late {
			wait = 0
		}
		if _, ok := a.take(wait); !ok {
			return answer, false
		}
	}
	a.pending = true
	go func() { a.answer <- question() }()
	runtime.Gosched() // the answer may be here after this, and no timer is needed
	return a.take(patience - time.Since(begin))
}

// take takes the answer, if it is there in time.
func (a *ask[T]) take(patience time.Duration) (answer T, ok bool) {
	select {
	case answer = <-a.answer:
		a.pending = false
		return answer, true
	default:
	}
	if patience <= 0 {
		return answer, false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case answer = <-a.answer:
		a.pending = false
		return answer, true
	case <-timer.C:
		return answer, false
	}
}
