package agent

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
)

// stopping returns options that run a script until a rule holds.
func stopping(t *testing.T, script string, rules ...string) Options {
	t.Helper()
	o := shell(t, script)
	o.Interval, o.StopIf = 50*time.Millisecond, rules
	return o
}

func TestRun_StopsWhenARuleHolds(t *testing.T) {
	t.Parallel()
	r := mustRun(t, stopping(t, "exec sleep 60", "job_processes >= 1"))

	if r.ExitCode != 143 || r.Signal != "SIGTERM" {
		t.Errorf("exit code %d, signal %q; want 143, SIGTERM", r.ExitCode, r.Signal)
	}
	v := read(t, r).Run.Verdict
	if v.Cause != "stopped_by_rule" || v.Evidence["rule"] != "job_processes >= 1" || v.Evidence["killed"] != false {
		t.Errorf("verdict %+v, want stopped_by_rule by job_processes >= 1, not killed", v)
	}
}

// A child that ignores TERM and keeps the pipe of Stdout open is killed after StopGrace, and Run returns.
func TestRun_KillsProcessesThatIgnoreTERM(t *testing.T) {
	t.Parallel()
	o := stopping(t, `trap '' TERM; setsid sleep 60 & while :; do sleep 0.02; done`, "job_processes >= 2 for 100ms")
	o.StopGrace = 200 * time.Millisecond
	o.Stdout = new(strings.Builder) // a pipe, which the child keeps open

	r := mustRun(t, o)

	if v := read(t, r).Run.Verdict; r.ExitCode != 137 || v.Cause != "stopped_by_rule" || v.Evidence["killed"] != true {
		t.Errorf("exit code %d, verdict %+v; want 137, stopped_by_rule and killed", r.ExitCode, v)
	}
}

// If ctx ends during StopGrace, after the main process has received TERM, the remaining processes are killed
// immediately.
func TestRun_EndOfContextEndsStopGrace(t *testing.T) {
	t.Parallel()
	o := stopping(t, `sh -c 'trap "" TERM; echo ready; while :; do sleep 0.02; done' & wait`, "job_processes >= 2 for 200ms")
	o.StopGrace = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)

	r, err := Run(ctx, o)

	if !errors.Is(err, context.Canceled) || r == nil || r.ExitCode != 143 {
		t.Errorf("result %+v, error %v; want exit code 143, %v", r, err, context.Canceled)
	}
}

func TestOptions_StopIfIsChecked(t *testing.T) {
	t.Parallel()
	var bad *OptionError
	o := stopping(t, "true", "job_memroy_mb > 1")
	var unknown *collector.UnknownKeyError
	if _, err := Run(t.Context(), o); !errors.As(err, &bad) || bad.Option != "StopIf" || !errors.As(err, &unknown) {
		t.Errorf("Run with an unknown key in StopIf: error %v, want an *OptionError with it", err)
	}

	o = stopping(t, "", "job_processes >= 1")
	if _, err := Start(t.Context(), o); !errors.As(err, &bad) || bad.Option != "StopIf" {
		t.Errorf("Start with StopIf: error %v, want an *OptionError of StopIf", err)
	}
	if _, err := Sidecar(t.Context(), o); !errors.As(err, &bad) || bad.Option != "StopIf" {
		t.Errorf("Sidecar with StopIf: error %v, want an *OptionError of StopIf", err)
	}
}

// When a job is stopped, other children of the program keep running.
func TestRun_StopKillsNoOtherChild(t *testing.T) {
	t.Parallel()
	other := stopping(t, "read line; exit 7")
	in, out := io.Pipe()
	other.Stdin = in
	ended := make(chan *Result, 1)
	go func() {
		r, _ := Run(context.Background(), other)
		ended <- r
	}()

	o := stopping(t, `trap '' TERM; while :; do sleep 0.02; done`, "job_processes >= 1")
	o.StopGrace = -1
	if r := mustRun(t, o); r.ExitCode != 137 {
		t.Errorf("stopped job: exit code %d, want 137", r.ExitCode)
	}
	out.Close()
	if r := <-ended; r.ExitCode != 7 {
		t.Errorf("the other job: exit code %s, want 7", strconv.Itoa(r.ExitCode))
	}
}
