package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/agent/exporter"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/reporter"
)

// A livePage serves the page, the report and /metrics of an active run. It is an observer of the run.
type livePage struct {
	session  *session
	address  exporter.Address
	listener net.Listener // opened by newLivePage; nil if not open, or opened by serve
	exporter *exporter.Exporter
	cancel   context.CancelFunc
	done     chan struct{}

	failed atomic.Pointer[string] // why there is no server; nil if nothing has failed
}

// wantsLivePage reports whether there should be a live page. If a node has several ranks, only the rank that measures
// the host from the beginning has a live page.
func (s *session) wantsLivePage() bool { return s.o.Listen != Off && s.nodeRole.measuresHost }

// newLivePage listens on the address, which is fast. If the address has a host name, serve listens on it later, because
// the lookup would delay the job.
func (s *session) newLivePage() *livePage {
	l := &livePage{session: s, cancel: func() {}}
	l.address, _ = exporter.ParseAddress(s.o.Listen) // already checked
	if !l.address.Name {
		l.listener = l.open(context.Background())
	}

	return l
}

// open listens, and logs the address or the failure. It returns nil on failure.
func (l *livePage) open(ctx context.Context) net.Listener {
	listener, err := l.address.Listen(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.fail(err)
		}
		return nil
	}

	hostname, _ := os.Hostname() // "" is acceptable
	url := exporter.URL(listener, l.address, hostname)
	if l.session.o.OnListen != nil {
		l.session.o.OnListen(url)
	} else {
		l.session.log.Info("listening on " + url)
	}

	if a, ok := listener.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() && l.session.o.ListenToken == "" {
		l.session.log.Warn(fmt.Sprintf(
			"anyone who can reach %s can read the live page and the command line on it; "+
				"to require a token: --listen-token-file FILE",
			listener.Addr()))
	}

	return listener
}

// fail records err, the reason why there is no server, in the log and in the report.
func (l *livePage) fail(err error) {
	why := fmt.Sprintf("cannot listen on %s: %v", l.address, err)
	l.failed.Store(&why)

	hint := ""
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) { // another port may work
		hint = " (--listen 0 takes any free port)"
	}
	l.session.log.Error(why + "; there will be no live page and no /metrics" + hint)
}

// serve starts serving requests in new goroutines. It is called once the job is running. incomplete is Run.Incomplete
// of the reports.
func (l *livePage) serve(incomplete string) {
	if l.failed.Load() != nil {
		return
	}

	s := l.session
	o := exporter.Options{
		RunID: s.o.RunID, Node: *s.o.Node, Version: Version(), Interval: s.o.Interval,
		Agent: s.ownUse, Report: s.reportSoFar(incomplete), Token: s.o.ListenToken,
	}
	if s.intake != nil {
		o.Operations = s.intake.CopyAggregator
	}
	if s.reportStore != nil {
		o.Store = s.reportStore.Metrics
	}
	l.exporter = exporter.New(o)

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

func (l *livePage) begin(rec *collector.Recording) {
	if l.exporter != nil {
		l.exporter.Begin(rec)
	}
}

func (l *livePage) observe(s *collector.Sample, rec *collector.Recording) {
	if l.exporter != nil {
		l.exporter.Observe(s, rec)
	}
}

// end closes the server and all connections immediately.
func (l *livePage) end() []reporter.Missing {
	l.cancel()
	switch {
	case l.exporter != nil:
		l.exporter.Close()
		timeout.Receive(l.done, 100*time.Millisecond) // a lookup may still be pending
	case l.listener != nil: // the job never started
		l.listener.Close()
	}

	why := l.failed.Load()
	if why == nil {
		return nil
	}
	return []reporter.Missing{{What: "listen", Code: reporter.ListenFailed, Why: *why}}
}
