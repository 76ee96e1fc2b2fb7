package mlflow

import (
	"net/http"
	"sync"
	"time"
)

// dateAge is how old the Date of an answer may be: it has whole seconds, and a server may make it once a second. That of
// a busy server is older now and then.
const dateAge = 2 * time.Second

// A clock is what the Date headers of a server's answers say of this machine's clock: by how much it is ahead of the
// server's, at least, or behind it.
type clock struct {
	mu      sync.Mutex
	answers int           // with a Date
	ahead   time.Duration // by the answer that shows least; negative or 0 = not known to be
	behind  time.Duration // by the answer that shows most; the same
}

// note takes the answer to a request that was sent and answered at times of this machine's clock.
func (c *clock) note(sent, answered time.Time, header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil || header.Get("Age") != "" { // the answer of a cache is older
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := sent.Sub(date) - dateAge
	if c.answers > 0 {
		ahead = min(ahead, c.ahead)
	}
	c.ahead, c.behind = ahead, max(c.behind, date.Sub(answered))
	c.answers++
}

// ClockAhead returns by how much this machine's clock is ahead of the server's, at least, as the answers so far tell;
// below 0 if it is behind. It is 0 if neither is known.
func (c *Client) ClockAhead() time.Duration {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	if c.clock.behind > c.clock.ahead {
		return -max(0, c.clock.behind)
	}
	return max(0, c.clock.ahead)
}
