// Package parallel runs independent calls on several CPUs and delivers their results in order.
package parallel

import (
	"errors"
	"runtime"
	"sync"
)

// errStopped is the error that emit returns after InOrder has ended early.
var errStopped = errors.New("stopped")

// InOrder calls produce with i from 0 to n−1, on about as many goroutines as there are CPUs. It passes the emitted
// values to consume: first all values of call 0, then all values of call 1, and so on. emit waits until the previous
// value of the same call has been consumed, so only a few values are in memory. The first error, in this order, ends
// InOrder and is returned. consume runs on the caller's goroutine, and no call is running when InOrder returns. produce
// must return errors from emit.
func InOrder[T any](n int, produce func(i int, emit func(T) error) error, consume func(T) error) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	stop := make(chan struct{})
	defer close(stop)

	type call struct {
		results chan T
		err     error // valid once results is closed
	}
	var queue []*call
	started := 0
	start := func() {
		c, i := &call{results: make(chan T, 1)}, started
		queue, started = append(queue, c), started+1
		calls.Go(func() {
			defer close(c.results)
			c.err = produce(i, func(v T) error {
				select {
				case c.results <- v:
					return nil
				case <-stop:
					return errStopped
				}
			})
		})
	}

	for range n {
		for started < n && len(queue) <= runtime.GOMAXPROCS(0) {
			start()
		}
		first := queue[0]
		queue = queue[1:]
		for v := range first.results {
			if err := consume(v); err != nil {
				return err
			}
		}
		if first.err != nil {
			return first.err
		}
	}

	return nil
}
