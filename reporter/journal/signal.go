package journal

import (
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plainjson"
)

// maxSignals is how many signals of lines are kept, the newest: an agent may be
// sent USR1 all the time. It is more than an account has.
const maxSignals = 64

// Signal writes down at once that we were sent a signal: before the next sample, which
// tells it with the account, perfagent may be killed. It never waits for the disk, and may
// be called at any time.
func (j *Journal) Signal(s collector.Signal) {
	select {
	case j.signals <- s:
	default: // the disk is behind: the account has it
	}
}

// takeSignal appends a signal's line.
func (w *writer) takeSignal(s collector.Signal) {
	w.signals = withSignal(w.signals, s)
	if w.failing {
		return // it comes with the snapshot
	}
	line, err := plainjson.Marshal(map[string]collector.Signal{"signal": s})
	if err == nil {
		err = w.write(append(line, '\n'))
	}
	if err != nil {
		w.fail(err)
	}
}

// withSignal adds one to the newest signals.
func withSignal(list []collector.Signal, s collector.Signal) []collector.Signal {
	list = append(list, s)
	return list[max(0, len(list)-maxSignals):]
}

// allSignals are those of an account and of lines, oldest first, each once: a line may
// come before or after the account that has its signal. No list is changed.
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
