package journal

import (
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// maxSignals is the number of newest signals from lines that are kept: an agent may receive USR1 all the
// time. It is more than an account has.
const maxSignals = 64

// Signal journals at once a signal that perfagent received. The next sample has it in the account, but
// perfagent may be killed before. Signal never waits for the disk, and may be called at any time.
func (j *Journal) Signal(s collector.Signal) {
	select {
	case j.signals <- s:
	default: // the disk is behind; the account has the signal
	}
}

// takeSignal appends the line of a signal.
func (w *writer) takeSignal(s collector.Signal) {
	w.signals = withSignal(w.signals, s)
	if w.failing {
		return // the snapshot will have it
	}
	line, err := text.JSON(map[string]collector.Signal{"signal": s})
	if err == nil {
		err = w.write(append(line, '\n'))
	}
	if err != nil {
		w.fail(err)
	}
}

// withSignal adds a signal to the newest signals.
func withSignal(list []collector.Signal, s collector.Signal) []collector.Signal {
	list = append(list, s)
	return list[max(0, len(list)-maxSignals):]
}

// allSignals returns the signals of an account and of lines, oldest first, each once. A line may come
// before or after the account with its signal. Neither list is changed.
func allSignals(account, lines []collector.Signal) []collector.Signal {
	var missing []collector.Signal
	for _, s := range lines {
		same := func(a collector.Signal) bool { return a.At.Equal(s.At) && a.Signal == s.Signal && a.PID == s.PID }
		if !slices.ContainsFunc(account, same) && !slices.ContainsFunc(missing, same) {
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return account
	}
	all := slices.Concat(account, missing)
	slices.SortStableFunc(all, func(a, b collector.Signal) int { return a.At.Compare(b.At) })
	return all
}
