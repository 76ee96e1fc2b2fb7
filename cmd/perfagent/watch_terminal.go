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

	"github.com/perfagent/perfagent/internal/patience"
)

// What a terminal is told: ECMA-48, and the private modes of xterm's that every
// terminal of today has.
const (
	// The other screen, no cursor, lines that are cut and not wrapped.
	screenEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	screenLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// hurry is how long a terminal that takes nothing may keep us from leaving.
const hurry = time.Second

// liveTerminal is the live view's: its other screen, its keys, the signals.
type liveTerminal struct {
	before  *term.State // of standard input; nil = that is no terminal
	frames  chan frame
	failed  chan error
	keys    <-chan key
	signals chan os.Signal
	resumed chan os.Signal
	on      bool // the other screen is
}

// frame is what is written at once; done is closed then, if it is not nil.
type frame struct {
	text string
	done chan struct{}
}

// openTerminal takes the terminal over.
func openTerminal(out io.Writer) *liveTerminal {
	t := &liveTerminal{frames: make(chan frame, 1), failed: make(chan error, 1), signals: make(chan os.Signal, 8), resumed: make(chan os.Signal, 1)}
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

// paint writes frames, in a goroutine of its own: a line that is slow gets fewer of
// them, and keys and signals are heard all the same.
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

// show hands a frame over; one that was not begun yet gives way to it.
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

// enter changes to the other screen and to single keys.
func (t *liveTerminal) enter() {
	if t.before != nil {
		_, _ = term.MakeRaw(0) // a terminal that we may not set still shows
	}
	t.on = true
	t.flush(screenEnter)
}

// leave gives the terminal back as it was.
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

// flush writes text, and waits for that a while.
func (t *liveTerminal) flush(text string) {
	done := make(chan struct{})
	t.show(frame{text, done})
	patience.Receive(done, hurry)
}

// draw shows lines in the place of those before: one write, and nothing is cleared that
// is not at once written again, so that nothing flickers.
func (t *liveTerminal) draw(lines []string) {
	t.show(frame{text: screenHome + strings.Join(lines, clearLine+"\r\n") + clearLine + clearBelow})
}

// footer says how to leave.
func (t *liveTerminal) footer() string {
	if t.keys == nil {
		return "Ctrl-C quits"
	}
	return "q quits"
}

// next is what comes after waiting.
type next int

const (
	nextLook next = iota // it is time for another look
	nextDraw             // the screen is not as it should be
	nextEnd              // somebody wants to leave
)

// wait waits until it is time to look again, or something else is to be done.
func (t *liveTerminal) wait(tick <-chan time.Time) (next, error) {
	for {
		select {
		case <-tick:
			return nextLook, nil
		case <-t.resumed:
			t.enter()
			return nextDraw, nil
		case err := <-t.failed:
			return nextEnd, fmt.Errorf("watch: write to the terminal: %w", err)
		case sig := <-t.signals:
			if isResize(sig) {
				return nextDraw, nil
			}
			return nextEnd, exitError{code: 128 + signalNumber(sig)}
		case k, ok := <-t.keys:
			if ok {
				return t.obey(k)
			}
			t.keys = nil
		}
	}
}

// obey does what a key asks for.
func (t *liveTerminal) obey(k key) (next, error) {
	switch k {
	case keyInterrupt:
		return nextEnd, exitError{code: 128 + signalNumber(os.Interrupt)}
	case keyAbort:
		return nextEnd, exitError{code: 128 + int(syscall.SIGQUIT)}
	case keyStop:
		t.suspend()
		return nextDraw, nil
	case keyRedraw:
		t.flush(screenEnter)
		return nextDraw, nil
	}
	return nextEnd, nil
}

// suspend lets the shell have the terminal until we are continued.
func (t *liveTerminal) suspend() {
	t.leave()
	stopGroup(t.resumed)
	t.enter()
}

// key is a key that means something here.
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

// keyReader leaves out the sequences that arrows and other keys send: some have a Q.
type keyReader struct{ inside byte }

// take takes the next byte. Of an escape sequence it waits for the last one.
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
