package collector

import (
	"sync"
	"time"
)

// A ticker waits for the ticks of the sampling grid: on a timerfd if the kernel supports it, else on a runtime timer.
type ticker struct {
	next  func() time.Duration // time to the next tick
	file  *tickFile            // nil: use timer
	timer *time.Timer

	stopping sync.Once
	stopped  chan struct{}
}

// newTicker returns a ticker that waits on file, or on a runtime timer if file is nil.
func newTicker(next func() time.Duration, file *tickFile) *ticker {
	t := &ticker{next: next, file: file, stopped: make(chan struct{})}
	if file == nil {
		t.timer = time.NewTimer(next())
	}
	return t
}

// wait returns true at the next tick, and false as soon as the ticker is stopped. It skips ticks that passed before the
// call, because the last sample took too long for them.
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

// stop ends wait. It may be called repeatedly and from any goroutine.
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
