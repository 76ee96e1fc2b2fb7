package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	maxRestarts       = 3       // restarts of nvidia-smi after a failure, per run
	maxInvalidFields  = 12      // fields unknown to nvidia-smi; each costs a start
	maxBytesPerSecond = 1 << 20 // of output; 16 devices cause about 3 KiB/s
)

// A child is a started nvidia-smi. fork, signal and reap depend on the operating system.
type child struct {
	process
	pid int
	out *os.File // read end of the pipe for its stdout and stderr

	mu        sync.Mutex // Kill is called from another goroutine
	abandoned bool       // the process is no longer observed
}

// An outcome describes how nvidia-smi ended.
type outcome struct {
	invalidField string // requested field that nvidia-smi does not know
	final        bool   // another start would fail in the same way
	err          error
}

// followNVIDIA keeps one nvidia-smi running until ctx ends or another start would be useless.
func (m *Monitor) followNVIDIA(ctx context.Context) {
	runtime.LockOSThread() // for the death signal, see attributes
	defer runtime.UnlockOSThread()

	q := newQuery()
	for faults, dropped := 0, 0; ; {
		end := m.follow(ctx, q)
		if ctx.Err() != nil {
			return
		}
		if end.invalidField != "" && dropped < maxInvalidFields && q.dropField(end.invalidField) {
			dropped++
			continue
		}
		if end.final || end.invalidField != "" || faults == maxRestarts {
			m.giveUp(end.err, faults)
			return
		}

		m.mu.Lock()
		m.nvidia.restartCause = end.err
		m.mu.Unlock()

		wait := m.timing.backoff << faults
		faults++
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// giveUp records err as the reason why NVIDIA devices will have no more values. faults is the number of restarts.
func (m *Monitor) giveUp(err error, faults int) {
	if faults > 0 {
		times := "restarts"
		if faults == 1 {
			times = "restart"
		}
		err = fmt.Errorf("gave up after %d %s: %w", faults, times, err) // first, so that it is not truncated
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nvidia.err, m.nvidia.restartCause, m.nvidia.complete = err, nil, true
}

// follow starts nvidia-smi for the query q, reads its output and returns after its end.
func (m *Monitor) follow(ctx context.Context, q *query) outcome {
	m.mu.Lock()
	m.nvidia.queryStarted, m.nvidia.message, m.nvidia.missing = time.Now(), "", q.missing
	m.mu.Unlock()
	defer m.pid.Store(0) // start sets the pid
	c, err := m.start(q.args(m.timing.interval))
	if err != nil {
		return outcome{final: true, err: fmt.Errorf("start %s: %w", m.smi, err)}
	}

	m.child.Store(c)

	r := reader{m: m, q: q}
	eof := make(chan struct{})
	go func() {
		defer close(eof)
		r.read(c.out)
	}()

	hung := m.watch(ctx, eof)
	ended := c.end(ctx, eof, hung, m.timing.grace)
	<-eof // the pipe is closed, so this goroutine owns r again
	return r.outcome(hung, ended)
}

// start starts nvidia-smi with the given arguments. Its output arrives in c.out.
func (m *Monitor) start(args []string) (*child, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()

	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()

	c := &child{out: out}
	fork := func() (int, error) {
		pid, err := c.fork(m.smi, args, m.o.Env, null, in)
		if err == nil { // set before Start returns, so that a loop over all children does not mistake it for the job's
			c.pid = pid
			m.pid.Store(int64(pid))
		}
		return pid, err
	}

	if m.o.Start != nil {
		err = m.o.Start(fork)
	} else {
		_, err = fork()
	}

	if err == nil && c.pid == 0 {
		err = errors.New("no process was started")
	}

	if err != nil {
		out.Close()
		c.abandon()
		return nil, err
	}

	c.identify(m.o.Start == nil)
	return c, nil
}

// watch waits until the process has closed its output, ctx has ended, or no output has arrived for too long. hung is
// true in the last case.
func (m *Monitor) watch(ctx context.Context, eof <-chan struct{}) (hung bool) {
	for {
		m.mu.Lock()
		last := m.nvidia.updatedAt
		if last.Before(m.nvidia.queryStarted) {
			last = m.nvidia.queryStarted
		}
		m.mu.Unlock()

		left := m.timing.hang - time.Since(last)
		if left <= 0 {
			return true
		}

		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
		case <-eof:
		case <-timer.C:
			continue
		}

		timer.Stop()
		return false
	}
}

// end makes sure that the process has ended: it sends SIGTERM, unless the process ends by itself, and then SIGKILL. If
// hung is set, it sends SIGKILL immediately. If ctx has not ended, nothing is urgent, so it waits longer for a killed
// process to end.
func (c *child) end(ctx context.Context, eof <-chan struct{}, hung bool, grace time.Duration) error {
	defer c.out.Close()
	defer c.abandon()
	select {
	case <-eof:
		if c.wait(grace / 4) { // it closed its output because it was ending
			return nil
		}
	default:
	}

	if !hung {
		c.send(false)
		if c.wait(grace) {
			return nil
		}
	}

	c.send(true)
	for range 40 {
		if c.wait(grace / 4) {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}

	return errors.New("it does not end although it was killed")
}

// send calls signal, unless the process was abandoned.
func (c *child) send(kill bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.abandoned {
		c.signal(kill)
	}
}

// exited reports whether the process has ended, and reaps it if so. An abandoned process counts as ended.
func (c *child) exited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.abandoned || c.reap()
}

// abandon stops observing the process. If the Monitor has to reap it, a background goroutine does so when it ends.
func (c *child) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.abandoned {
		c.abandoned = true
		c.release()
	}
}

// wait waits for the process to end. It reports false if that takes longer than limit.
func (c *child) wait(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if c.exited() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}

// A reader reads the output of one process.
type reader struct {
	m            *Monitor
	q            *query
	sawRow       bool // at least one row was read
	invalidField string
	message      string // the first message since the last row
	flooded      bool
}

// read reads the output until it ends or exceeds the limit.
func (r *reader) read(out *os.File) {
	second, bytes := time.Now(), 0
	readLines(out, r.line, func(n int) bool {
		if now := time.Now(); now.Sub(second) >= time.Second {
			second, bytes = now, 0
		}
		bytes += n
		r.flooded = bytes > maxBytesPerSecond
		return !r.flooded
	})
}

// line stores the values of line if it is a row. Any other line is a message.
func (r *reader) line(line []byte) {
	row, err := r.q.parse(line)
	now := time.Now()
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if err == nil {
		r.sawRow, r.message = true, ""
		r.m.nvidia.put(row, now)
		return
	}

	text := clean(string(line[:min(len(line), 256)]))
	if text == "" {
		return
	}

	if r.message == "" {
		r.message = text
	}

	if r.invalidField == "" {
		r.invalidField = parseInvalidField(string(line))
	}

	r.m.nvidia.message, r.m.nvidia.messageAt = text, now
}

// outcome returns how the process ended. If it printed a message but no row, another start would have the same result,
// for example because there is no device or no driver.
func (r *reader) outcome(hung bool, ended error) outcome {
	o := outcome{invalidField: r.invalidField}
	switch {
	case r.flooded:
		o.final, o.err = true, errors.New("query GPUs: nvidia-smi writes more than 1 MiB a second")
	case hung && r.message != "":
		o.err = fmt.Errorf("query GPUs: nvidia-smi printed something unexpected and was killed: %s", r.message)
	case hung:
		o.err = fmt.Errorf("query GPUs: nvidia-smi printed nothing for %.0f s and was killed", r.m.timing.hang.Seconds())
	case !r.sawRow && r.message != "":
		o.final, o.err = true, errors.New("query GPUs: nvidia-smi: "+r.message)
	case r.message != "":
		o.err = errors.New("query GPUs: nvidia-smi has ended: " + r.message)
	case r.sawRow:
		o.err = errors.New("query GPUs: nvidia-smi has ended")
	default:
		o.err = errors.New("query GPUs: nvidia-smi ended without printing anything")
	}

	if ended != nil {
		o.final, o.err = true, fmt.Errorf("%w; %w", o.err, ended)
	}

	if r.sawRow {
		o.invalidField = ""
	}

	return o
}
