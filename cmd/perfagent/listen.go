package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/agent/exporter"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/reporter"
)

// listenOff is the value of --listen that asks for no server.
const listenOff = "off"

// checkListen refuses an address that cannot be one. Whether it is free, is seen when
// it is opened.
func checkListen(value string) error {
	if value == listenOff {
		return nil
	}
	_, err := exporter.ParseAddress(value)
	return err
}

// listening is the server of a run. Its methods may be called on nil, for a run that
// has none.
type listening struct {
	address  exporter.Address
	log      *logger
	stderr   io.Writer
	tell     bool         // say where, whatever --log-level is
	listener net.Listener // of an address that needs no look-up; nil = it failed
	exporter *exporter.Exporter
	cancel   context.CancelFunc
	done     chan struct{}
	mu       sync.Mutex
	failed   string // why there is no server; "" = there is one, or will be
}

// newListening opens the address, which takes no time unless a name must be looked up:
// that is left to serve, as the job waits. Where the server is, is said on a terminal,
// and where any port was asked for; else only in the log, as a redirected stderr is
// the job's. tell is for who has no job.
func (o *sampleOptions) newListening(stderr io.Writer, log *logger, tell bool) *listening {
	if o.listen == listenOff {
		return nil
	}
	l := &listening{log: log, stderr: stderr, cancel: func() {}}
	l.address, _ = exporter.ParseAddress(o.listen) // checked before
	l.tell = tell || l.address.Port == "0" || inForeground(stderr)
	if !l.address.Name {
		l.listener = l.open(context.Background())
	}
	return l
}

// open listens, and says where or why not. It returns nil when it failed.
func (l *listening) open(ctx context.Context) net.Listener {
	listener, err := l.address.Listen(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.fail(err)
		}
		return nil
	}
	hostname, _ := os.Hostname() // "" will do
	where := "listening on " + exporter.URL(listener, l.address, hostname)
	if l.tell && !l.log.enabledInfo() {
		fmt.Fprintf(l.stderr, "perfagent: %s\n", where)
	} else {
		l.log.Info(where)
	}
	return listener
}

// fail notes that there will be no server: in one line and in the report.
func (l *listening) fail(err error) {
	why := fmt.Sprintf("cannot listen on %s: %v", l.address, err)
	l.mu.Lock()
	l.failed = why
	l.mu.Unlock()
	hint := ""
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) { // another port would do
		hint = " (--listen 0 takes any free port)"
	}
	l.log.Error(why + "; there will be no live page and no /metrics" + hint)
}

// serve begins to answer, in goroutines of its own. It is called before the first
// sample, once the job runs. incomplete says why the reports have no end.
func (l *listening) serve(o *sampleOptions, about reporter.Run, incomplete string, p *place, t *tracking) {
	if l == nil || l.failed != "" {
		return
	}
	about.Incomplete = incomplete
	report := o.liveReport(about, p, t)
	l.exporter = exporter.New(exporter.Options{RunID: o.runID, Node: o.node, Version: version(), Interval: o.interval,
		Agent: agent, Report: report})
	l.done = make(chan struct{})
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(l.done)
		listener := l.listener
		if listener == nil {
			listener = l.open(ctx)
		}
		if listener == nil {
			return
		}
		if err := l.exporter.Serve(listener, l.address.Host); !errors.Is(err, http.ErrServerClosed) {
			l.fail(err)
		}
	}()
}

// begin sees the Recording before its first sample, in the sampling goroutine.
func (l *listening) begin(rec *collector.Recording) {
	if l != nil && l.exporter != nil {
		l.exporter.Begin(rec)
	}
}

// observe sees every sample, in the sampling goroutine.
func (l *listening) observe(s *collector.Sample, rec *collector.Recording) {
	if l != nil && l.exporter != nil {
		l.exporter.Observe(s, rec)
	}
}

// close ends the server at once, whoever is connected, and returns what the report has
// to say of it.
func (l *listening) close() []reporter.Missing {
	if l == nil {
		return nil
	}
	l.cancel()
	if l.exporter != nil {
		l.exporter.Close()
		patience.Receive(l.done, 100*time.Millisecond) // a name may still be being looked up
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == "" {
		return nil
	}
	return []reporter.Missing{{What: "listen", Why: l.failed}}
}

// liveReport makes reports of a run that goes on, as of now.
func (o *sampleOptions) liveReport(about reporter.Run, p *place, t *tracking) func(*collector.Recording) *reporter.Report {
	missing, push := slices.Clone(p.missing), t.state
	return func(rec *collector.Recording) *reporter.Report {
		if rec.PerfPy != nil {
			return reporter.NewPerfPyReport(rec.PerfPy.Items(), o.node, rec.Host.CPUs, about)
		}
		r := reporter.New(reporter.Input{Run: about, Node: o.node, Recording: rec, Agent: agent(), Missing: missing, Push: push})
		if n := r.Nodes[strconv.Itoa(o.node)]; rec.Samples == 0 && n != nil { // the one reason for all that is absent
			n.Missing = append(slices.Clone(missing), reporter.Missing{What: "samples",
				Why: fmt.Sprintf("no sample has been taken yet; the first one is taken %v after the start", o.interval)})
		}
		return r
	}
}
