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

// Control sequences: ECMA-48, and the private modes of xterm that every modern terminal has.
const (
	// Alternate screen, no cursor, lines cut instead of wrapped.
	screenEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	screenLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// leavePatience is how long a terminal that accepts no output may delay leaving.
const leavePatience = time.Second

// A liveTerminal is the terminal of the live view: its alternate screen, keys and signals.
type liveTerminal struct {
	out     io.Writer
	writing *patience.Asker[error] // a slow line gets fewer frames, and keys and signals still work
	queued  string                 // is written next, in one piece
	before  *term.State            // of standard input; nil = it is not a terminal
	keys    <-chan byte
	signals chan os.Signal
	resumed chan os.Signal
	on      bool // the alternate screen is shown
}

// openTerminal takes over the terminal.
func openTerminal(out io.Writer) *liveTerminal {
	t := &liveTerminal{
		out: out, writing: patience.New[error](), signals: make(chan os.Signal, 8), resumed: make(chan os.Signal, 1),
	}
	signal.Notify(t.signals, watchSignals()...)
	notifyResumed(t.resumed)
	if state, err := term.GetState(0); err == nil {
		t.before = state
		t.keys = readKeys(os.Stdin)
	}

	t.enter()
	return t
}

// write writes what is queued, unless the write before it is not over within limit. It returns the error of that one.
func (t *liveTerminal) write(limit time.Duration) error {
	if err, _ := t.writing.Answer(limit); err != nil {
		return err
	}
	text := t.queued
	paint := func() error { _, err := io.WriteString(t.out, text); return err }
	if text != "" && t.writing.Start(paint) {
		t.queued = ""
	}
	return nil
}

// enter switches to the alternate screen and to single keys.
func (t *liveTerminal) enter() {
	if t.before != nil {
		_, _ = term.MakeRaw(0) // a terminal that cannot be set still shows
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

// flush writes text and waits for it, within bounds.
func (t *liveTerminal) flush(text string) {
	t.queued = text
	_ = t.write(leavePatience) // what is wrong shows with the next frame
	if t.queued == "" {
		t.writing.Answer(leavePatience)
	}
}

// draw replaces the lines shown. It uses one write and clears nothing that it does not rewrite at
// once, so that nothing flickers.
func (t *liveTerminal) draw(lines []string) {
	t.queued = screenHome + strings.Join(lines, clearLine+"\r\n") + clearLine + clearBelow
}

// footer returns the hint on how to leave.
func (t *liveTerminal) footer() string {
	if t.keys == nil {
		return "Ctrl-C quits"
	}
	return "q quits"
}

// next is what to do after waiting.
type next int

const (
	nextLook next = iota // read again
	nextDraw             // redraw the screen
	nextEnd              // leave
)

// wait waits for the next tick, key, signal or error.
func (t *liveTerminal) wait(tick <-chan time.Time) (next, error) {
	for {
		if err := t.write(0); err != nil {
			return nextEnd, fmt.Errorf("watch: write to the terminal: %w", err)
		}
		select {
		case <-tick:
			return nextLook, nil
		case <-t.resumed:
			t.enter()
			return nextDraw, nil
		case sig := <-t.signals:
			if isResize(sig) {
				return nextDraw, nil
			}
			return nextEnd, endedBySignal(signalNumber(sig))
		case key, ok := <-t.keys:
			if !ok {
				t.keys = nil
			} else if then, err := t.obey(key); then != nextLook {
				return then, err
			}
		}
	}
}

// obey acts on a key. It returns nextLook for one that means nothing.
func (t *liveTerminal) obey(key byte) (next, error) {
	switch key {
	case 'q', 'Q':
		return nextEnd, nil
	case ctrl('C'):
		return nextEnd, endedBySignal(signalNumber(os.Interrupt))
	case ctrl('\\'):
		return nextEnd, endedBySignal(int(syscall.SIGQUIT))
	case ctrl('Z'):
		t.suspend()
		return nextDraw, nil
	case ctrl('L'):
		t.flush(screenEnter)
		return nextDraw, nil
	}
	return nextLook, nil
}

// ctrl returns what a terminal sends for a letter with Ctrl.
func ctrl(letter byte) byte { return letter & 0x1f }

// suspend gives the terminal to the shell until this process is continued.
func (t *liveTerminal) suspend() {
	t.leave()
	stopGroup(t.resumed)
	t.enter()
}

// readKeys reads single keys until the input ends.
func readKeys(in io.Reader) <-chan byte {
	out := make(chan byte, 16)
	go func() {
		defer close(out)
		var k keyReader
		for buf := make([]byte, 64); ; {
			n, err := in.Read(buf)
			for _, b := range buf[:n] {
				if k.take(b) {
					out <- b
				}
			}

			if err != nil && !errors.Is(err, io.ErrNoProgress) {
				return
			}
		}
	}()

	return out
}

// A keyReader skips the sequences of arrow keys and the like, because some contain a Q.
type keyReader struct{ inside byte }

// take reports whether the next byte is a key of its own.
func (k *keyReader) take(b byte) bool {
	const escape = 0x1b
	switch {
	case k.inside == '[': // control sequence: parameters, then a final byte (ECMA-48, 5.4)
		if b >= 0x40 && b <= 0x7e {
			k.inside = 0
		}
	case k.inside == escape && (b == '[' || b == 'O'), k.inside == 0 && b == escape:
		k.inside = b
	case k.inside != 0: // SS3 and one byte, or a key with Alt
		k.inside = 0
	default:
		return true
	}

	return false
}
