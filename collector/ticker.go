package collector

import (
	"sync"
	"time"
)

// A ticker waits for the ticks of the grid on which samples are taken: in a file of the kernel's where there is one,
// else on a timer of the runtime's.
type ticker struct {
	next  func() time.Duration // to the next tick
	file  *tickFile            // nil = the timer is used
	timer *time.Timer

	stopping sync.Once
	stopped  chan struct{}
}

// newTicker returns a ticker. file, if not nil, is waited for.
func newTicker(next func() time.Duration, file *tickFile) *ticker {
	t := &ticker{next: next, file: file, stopped: make(chan struct{})}
	if file == nil {
		t.timer = time.NewTimer(next())
	}
	return t
}

// wait returns true at the next tick, and false once the ticker is stopped. A tick that passed before the call is left
// out: the sample before took too long for it.
func (t *ticker) wait() bool {
	if t.file == nil {
		t.timer.Reset(t.next())
		select {
		case <-t.stopped:
			return false
		case <-t.timer.C:
			return true
		}
	}

	for {
		begin := time.Now()
		left := t.next()
		if !t.file.wait() {
			return false
		}
		if time.Since(begin) >= left {
			return true
		}
	}
}

// stop ends wait. It may be called from any goroutine, and again.
func (t *ticker) stop() {
	t.stopping.Do(func() {
		close(t.stopped)
		if t.file != nil {
			t.file.close()
			return
		}
		t.timer.Stop()
	})
}
