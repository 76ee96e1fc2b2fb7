package journal

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// signalAt returns a signal that was sent the given number of seconds after the start.
func signalAt(name string, seconds, pid int) collector.Signal {
	return collector.Signal{Signal: name, At: reportertest.RunStart.Add(time.Duration(seconds) * time.Second), PID: pid, Process: "sender"}
}

// signalNames returns the signals in a journal as text, and "damaged" if there are unreadable lines, such as a line
// that is being written.
func signalNames(t *testing.T, path string) []string {
	t.Helper()
	j := taken(t, check.Value(os.ReadFile(path))(t))
	j.report()
	if j.damaged > 0 {
		return []string{"damaged"}
	}
	var names []string
	for _, s := range j.rec.Account.Signals {
		names = append(names, fmt.Sprint(s.Signal, " of ", s.PID))
	}
	return names
}

// A signal is reported once and in order, whether it is in a line, in the account or in both, and even if the file is
// replaced after the line was written.
func TestJournal_ReportsEachSignalOnce(t *testing.T) {
	s := reportertest.NewStream(4)
	rec := s.Recording(40)
	j := createFor(t, head(s, 40))
	told := func(want ...string) {
		t.Helper()
		end := time.Now().Add(5 * time.Minute)
		got := signalNames(t, j.Path())
		for ; !slices.Equal(got, want) && time.Now().Before(end); got = signalNames(t, j.Path()) {
			time.Sleep(time.Millisecond)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("signals %q, want %q", got, want)
		}
	}
	first, second, third := signalAt("SIGUSR1", 1, 7), signalAt("SIGTERM", 2, 8), signalAt("SIGTERM", 3, 9)
	j.Signal(second) // before any sample
	told("SIGTERM of 8")
	rec.Account.Signals = []collector.Signal{first}
	j.Observe(s.Next(rec), rec) // with a state that does not contain the signal yet
	told("SIGUSR1 of 7", "SIGTERM of 8")
	rec.Account.Signals = []collector.Signal{first, second}
	j.Observe(s.Next(rec), rec)
	j.Signal(third)
	told("SIGUSR1 of 7", "SIGTERM of 8", "SIGTERM of 9")
	j.wantSnapshot.Store(true)
	j.Observe(s.Next(rec), rec)
	data := stopped(t, j)
	j.Signal(third) // after Stop: ignored
	told("SIGUSR1 of 7", "SIGTERM of 8", "SIGTERM of 9")
	if strings.Contains(string(data), `{"signal":{`) {
		t.Errorf("the file still contains a signal line, want it replaced:\n%.3000s", data)
	}
	if len(rec.Account.Signals) != 2 {
		t.Errorf("the sampler's own account was changed to %+v, want 2 signals", rec.Account.Signals)
	}
	if text := parsed(t, data).Run.Verdict.Text; !strings.Contains(text, "SIGTERM from sender (process 9)") {
		t.Errorf("verdict %q, want one with \"SIGTERM from sender (process 9)\"", text)
	}
}

// Of very many signals, only the newest are kept.
func TestAllSignals_KeepsTheNewest(t *testing.T) {
	var list []collector.Signal
	for i := range 10 * maxSignals {
		list = withSignal(list, signalAt("SIGUSR1", i, 7))
	}
	newest := signalAt("SIGUSR1", 10*maxSignals-1, 7).At
	if all := allSignals(nil, append(list, list...)); len(all) != maxSignals || !all[len(all)-1].At.Equal(newest) {
		t.Errorf("signals %+v, want %d, the last at %v", all, maxSignals, newest)
	}
}
