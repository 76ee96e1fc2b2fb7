package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/reporter"
)

// A stopper stops the job when a rule of Options.StopIf holds. It is an observer of the run, and checks the rules at
// each sample.
type stopper struct {
	*commandRun
	ctx      context.Context
	reader   *host.Reader
	checkers []collector.RuleChecker
	refused  bool // the kernel did not permit the signal to the job

	done   chan struct{} // closed when the job has been stopped; nil until a rule holds
	killed bool          // KILL was sent; valid once done is closed
}

// addStopper adds a stopper to the observers of the run, if there are rules.
func (w *commandRun) addStopper(ctx context.Context, reader *host.Reader) {
	if len(w.o.StopIf) == 0 {
		return
	}
	w.stopper = &stopper{commandRun: w, ctx: ctx, reader: reader}
	rules, _ := w.o.rules() // already checked
	for _, rule := range rules {
		w.stopper.checkers = append(w.stopper.checkers, collector.RuleChecker{Rule: rule})
	}
	w.addObserver(w.stopper)
}

func (s *stopper) begin(*collector.Recording) {}

// observe checks all rules, because each rule tracks its duration. The first rule that holds stops the job.
func (s *stopper) observe(sample *collector.Sample, rec *collector.Recording) {
	if s.done != nil || s.refused {
		return
	}

	var broken *collector.Rule
	var by float64
	for i := range s.checkers {
		w := &s.checkers[i]
		if value, holds := w.Check(sample, rec.End.Mono); holds && broken == nil {
			broken, by = &w.Rule, value
		}
		if w.Unmeasured(rec.End.Mono) {
			s.log.Warn(fmt.Sprintf("--stop-if %q: %s has not been measured for %v; the rule cannot hold without it",
				w.Text, w.Column.Key(), collector.UnmeasuredAfter))
		}
	}
	if broken != nil {
		s.stop(broken, by, rec)
	}
}

// stop sends TERM to the job's main process, as kill(1) would, and starts awaitProcesses in a goroutine. It does
// nothing if the job has already ended.
func (s *stopper) stop(rule *collector.Rule, value float64, rec *collector.Recording) {
	at := time.Now()
	switch err := s.source.job.Signal(syscall.SIGTERM); {
	case errors.Is(err, os.ErrProcessDone):
		return
	case err != nil:
		s.refused = true
		s.log.Warn(fmt.Sprintf("--stop-if %q: %v", rule.Text, err))
		return
	}

	s.scrapeNow()
	rec.Account.Stop = &collector.Stop{
		Rule: rule.Text, Key: rule.Column.Key(), Value: value, ForSeconds: rule.For.Seconds(),
		Signal: "SIGTERM", At: at,
	}
	s.done = make(chan struct{})
	go s.awaitProcesses(&survivors{tree: s.reader.JobTree(), caller: timeout.NewCaller[processCount]()})
}

// shortLook and longLook are the shortest and longest pause between two scans of the job's processes. KILL is repeated
// for the duration of killing, but at least minKills times, because a scan takes long on a busy machine.
const (
	shortLook = 10 * time.Millisecond
	longLook  = 200 * time.Millisecond
	killing   = 5 * time.Second
	minKills  = 100
)

// awaitProcesses waits until no process of the job is left, and kills the remaining processes after StopGrace. It
// rescans them while it waits, to find new processes before their parents end. When the main process has ended, a
// signal to perfagent or the end of ctx makes it kill the other processes immediately.
func (s *stopper) awaitProcesses(rest *survivors) {
	defer close(s.done)
	grace := time.NewTimer(s.o.StopGrace)
	defer grace.Stop()

	for pause := shortLook; ; pause = min(2*pause, longLook) {
		ended := closed(s.source.job.Done())
		left, _ := rest.call((*process.Tree).CountLiving)
		switch {
		case ended && left == 0:
			return
		case ended && (len(s.signals.Late()) > 0 || s.ctx.Err() != nil):
			s.kill(rest)
			return
		}

		select {
		case <-grace.C:
			s.kill(rest)
			return
		case <-time.After(pause):
		}
	}
}

// closed reports whether done has been closed.
func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// kill sends KILL to all processes of the job. It repeats that until none is left, because processes may start new ones
// in the meantime.
func (s *stopper) kill(rest *survivors) {
	s.killed = s.source.job.Signal(syscall.SIGKILL) == nil
	if s.source.jobGroup != nil {
		_ = s.source.jobGroup.Kill() // the loop below kills the rest
	}

	end := time.Now().Add(killing)
	for tries := 1; ; tries++ {
		left, err := rest.call((*process.Tree).Kill)
		if left == 0 {
			return
		}
		s.killed = true
		if time.Now().After(end) && (tries >= minKills || errors.Is(err, errNoAnswer)) {
			s.log.Warn(fmt.Sprintf("--stop-if: SIGKILL has not ended all processes of the job: %v", err))
			return
		}
		time.Sleep(shortLook)
	}
}

// end waits for the processes of a stopped job to end, for at most StopGrace plus killing.
func (s *stopper) end() []reporter.Missing {
	if s.done != nil {
		<-s.done
	}

	return nil
}

// recordKill records in rec whether the job had to be killed. Earlier copies of rec are not modified.
func (s *stopper) recordKill(rec *collector.Recording) {
	if s == nil || s.done == nil {
		return
	}

	stop := *rec.Account.Stop
	stop.Killed = s.killed
	rec.Account.Stop = &stop
}

// survivors counts and kills the processes of a job that is being stopped. Reading one of them may hang in the kernel.
type survivors struct {
	tree   *process.Tree // nil if they cannot be found
	caller *timeout.Caller[processCount]
}

// A processCount holds the number of existing processes, and the error from finding or killing them.
type processCount struct {
	n   int
	err error
}

var errNoAnswer = errors.New("the kernel does not respond for one of them")

// call runs do, which counts or kills the processes of the tree, and returns their number, or 0 if they cannot be
// found. After a timeout it returns 1, because the job may not have ended.
func (v *survivors) call(do func(*process.Tree) (int, error)) (int, error) {
	if v.tree == nil {
		return 0, nil
	}
	count, ok := v.caller.Call(time.Second, func() processCount {
		n, err := do(v.tree)
		return processCount{n, err}
	})
	if !ok {
		return 1, errNoAnswer
	}

	return count.n, count.err
}
