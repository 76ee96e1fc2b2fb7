package collector

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
)

// Both kinds of tickers keep to the grid, skip missed ticks, and stop immediately.
func TestTicker_KeepsToTheGrid(t *testing.T) {
	t.Parallel()
	const interval = 50 * time.Millisecond
	for name, file := range map[string]bool{"file": true, "timer": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := host.Now().Mono
			next := func() time.Duration { return interval - (host.Now().Mono-start)%interval }
			tick := newTicker(next, nil)
			if file {
				tick = newTicker(next, openTicks(start+interval, interval))
				if tick.file == nil {
					t.Fatal("openTicks = nil, want a timerfd")
				}
			}

			var last time.Duration
			for n := range 4 {
				if n == 2 {
					time.Sleep(2*interval + interval/2) // a slow sample
				}
				asked := host.Now().Mono - start
				if !tick.wait() {
					t.Fatal("wait = false before stop")
				}
				now := host.Now().Mono - start
				if now/interval <= asked/interval || now/interval <= last {
					t.Errorf("wait called at %v returned at %v after tick %d, want the next tick of %v", asked, now, last, interval)
				}
				last = now / interval
			}

			waited := make(chan bool)
			go func() {
				for tick.wait() {
				}
				waited <- true
			}()
			tick.stop()
			tick.stop()
			<-waited
			if tick.wait() {
				t.Error("wait = true after stop")
			}
		})
	}
}
