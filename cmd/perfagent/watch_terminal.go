package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/perfagent/perfagent/internal/timeout"
)

// Control sequences of ECMA-48, and private modes of xterm that all modern terminals support.
const (
	// Alternate screen, no cursor, lines cut instead of wrapped.
	screenEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	screenLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// leaveTimeout limits the wait for a terminal that accepts no output.
const leaveTimeout = time.Second

// A liveTerminal is the terminal of the live view: its alternate screen, keys and signals.
type liveTerminal struct {
	before  *term.State // state of stdin; nil = not a terminal
	frames  chan frame
	failed  chan error
	keys    <-chan key
	signals chan os.Signal
	resumed chan os.Signal
	on      bool // the alternate screen is shown
}

// A frame is text that is written in one piece. Afterwards done is closed, unless it is nil.
type frame struct {
	text string
	done chan struct{}
}

// openTerminal takes over the terminal.
func openTerminal(out io.Writer) *liveTerminal {
	t := &liveTerminal{
		frames: make(chan frame, 1), failed: make(chan error, 1),
		signals: make(chan os.Signal, 8), resumed: make(chan os.Signal, 1),
	}
	signal.Notify(t.signals, watchSignals()...)
	notifyResumed(t.resumed)
	if state, err := term.GetState(0); err == nil {
		t.before = state
		t.keys = readKeys(os.Stdin)
	}

	go t.paint(out)
	t.enter()
	return t
}

// paint writes frames in a separate goroutine. A slow connection gets fewer frames, and does not delay keys and
// signals.
func (t *liveTerminal) paint(out io.Writer) {
	for f := range t.frames {
		if _, err := io.WriteString(out, f.text); err != nil {
			select {
			case t.failed <- err:
			default:
			}
		}
		if f.done != nil {
			close(f.done)
		}
	}
}

// show queues a frame. It replaces a queued frame that is not being written yet.
func (t *liveTerminal) show(f frame) {
	select {
	case t.frames <- f:
		return
	default:
	}

	select {
	case <-t.frames:
	default:
	}

	t.frames <- f
}

// enter switches to the alternate screen and to raw input.
func (t *liveTerminal) enter() {
	if t.before != nil {
		_, _ = term.MakeRaw(0) // without raw mode the screen still works
	}
	t.on = true
	t.flush(screenEnter)
}

// leave restores the terminal.
func (t *liveTerminal) leave() {
	if !t.on {
		return
	}
	t.on = false
	t.flush(screenLeave)
	if t.before != nil {
		_ = term.Restore(0, t.before)
	}
}

// flush writes text and waits until it is written, but at most leaveTimeout.
func (t *liveTerminal) flush(text string) {
	done := make(chan struct{})
	t.show(frame{text, done})
	timeout.Receive(done, leaveTimeout)
}

// draw replaces the shown lines. To avoid flicker it uses one write, and clears each line only as it rewrites it.
func (t *liveTerminal) draw(lines []string) {
	t.show(frame{text: screenHome + strings.Join(lines, clearLine+"\r\n") + clearLine + clearBelow})
}

// footer returns the hint on how to quit.
func (t *liveTerminal) footer() string {
	if t.keys == nil {
		return "Ctrl-C quits"
	}
	return "q quits"
}

// action is the next step of the live view after waiting.
type action int

const (
	actionPoll action = iota // read again
	actionDraw               // redraw the screen
	actionQuit               // leave
)

// wait waits for the next tick, key, signal or error.
func (t *liveTerminal) wait(tick <-chan time.Time) (action, error) {
	for {
		select {
		case <-tick:
			return actionPoll, nil
		case <-t.resumed:
			t.enter()
			return actionDraw, nil
		case err := <-t.failed:
			return actionQuit, fmt.Errorf("watch: write to the terminal: %w", err)
		case sig := <-t.signals:
			if isResize(sig) {
				return actionDraw, nil
			}
			return actionQuit, signalExit(signalNumber(sig))
		case k, ok := <-t.keys:
			if ok {
				return t.handleKey(k)
			}
			t.keys = nil
		}
	}
}

// handleKey suspends or redraws for k, or returns actionQuit, with the exit code of a signal if k stands for one.
func (t *liveTerminal) handleKey(k key) (action, error) {
	switch k {
	case keyInterrupt:
		return actionQuit, signalExit(signalNumber(os.Interrupt))
	case keyAbort:
		return actionQuit, signalExit(int(syscall.SIGQUIT))
	case keyStop:
		t.suspend()
		return actionDraw, nil
	case keyRedraw:
		t.flush(screenEnter)
		return actionDraw, nil
	}
	return actionQuit, nil
}

// suspend returns the terminal to the shell until this process is continued.
func (t *liveTerminal) suspend() {
	t.leave()
	stopGroup(t.resumed)
	t.enter()
}

// A key is a key of the live view.
type key int

const (
	keyQuit key = iota
	keyInterrupt
	keyAbort
	keyStop
	keyRedraw
)

// readKeys reads single keys until the input ends.
func readKeys(in io.Reader) <-chan key {
	out := make(chan key, 16)
	go func() {
		defer close(out)
		var k keyReader
		for buf := make([]byte, 64); ; {
			n, err := in.Read(buf)
			for _, b := range buf[:n] {
				if key, ok := k.take(b); ok {
					out <- key
				}
			}

			if err != nil && !errors.Is(err, io.ErrNoProgress) {
				return
			}
		}
	}()

	return out
}

// A keyReader skips the escape sequences of arrow keys and the like, because some contain a Q.
type keyReader struct{ inside byte }

// take consumes the next byte and returns the key, if the byte completes one.
func (k *keyReader) take(b byte) (key, bool) {
	switch {
	case k.inside == '[': // control sequence: parameters, then a final byte (ECMA-48, 5.4)
		if b >= 0x40 && b <= 0x7e {
			k.inside = 0
		}
		return 0, false
	case k.inside == 0x1b && (b == '[' || b == 'O'):
		k.inside = b
		return 0, false
	case k.inside != 0: // SS3 and one byte, or a key with Alt
		k.inside = 0
		return 0, false
	}

	switch b {
	case 0x1b:
		k.inside = b
	case 'q', 'Q':
		return keyQuit, true
	case 0x03:
		return keyInterrupt, true
	case 0x1c:
		return keyAbort, true
	case 0x1a:
		return keyStop, true
	case 0x0c:
		return keyRedraw, true
	}

	return 0, false
}
