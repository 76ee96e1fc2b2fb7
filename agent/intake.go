package agent

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
)

// wantsOperations reports whether operations should be received from the job or scraped.
func (o *Options) wantsOperations() bool { return o.Ops != "" && o.Ops != Off || len(o.Scrape) > 0 }

// openIntake opens the sockets that receive the job's operations. A failure is logged and reported, and does not
// prevent the endpoints from being scraped.
func (s *session) openIntake(sidecar bool) {
	if !s.o.wantsOperations() {
		return
	}

	address, _ := intake.ParseAddress(s.o.Ops) // already checked
	var endpoints []*url.URL
	for _, value := range s.o.Scrape {
		u, _ := intake.ParseEndpoint(value)
		endpoints = append(endpoints, u)
	}

	start := host.Now()
	in, err := intake.Open(intake.Options{
		Address: address, Endpoints: endpoints, ScrapeInterval: s.o.ScrapeInterval, Charts: s.o.OpsChart,
		Sidecar: sidecar, Booted: start.Wall.Add(-start.Boot),
		Now: func() time.Time { return start.Wall.Add(host.Now().Boot - start.Boot) }, // the clock used for samples
	})
	s.intake = in
	switch {
	case err != nil:
		why := fmt.Sprintf("--ops %s: %v", s.o.Ops, err)
		s.addMissingOperations(reporter.OperationsNotReceived, why)
		s.log.Warn(why)
	case address.IsPublic():
		s.log.Warn(fmt.Sprintf("--ops %s: anyone who can reach this machine can send operations there", s.o.Ops))
	}
}

// addMissingOperations records in the report why operations of the job may be missing.
func (s *session) addMissingOperations(code reporter.Code, why string) {
	s.missingOperations = append(s.missingOperations, reporter.Missing{What: "operations", Code: code, Why: why})
}

// withIntakeEnv returns c with the environment variables for sending operations.
func (s *session) withIntakeEnv(c job.Command) job.Command {
	if s.intake == nil {
		return c
	}

	environ, notes := s.intake.Environ(os.Environ())
	c.Environ = environ
	for _, note := range notes {
		s.addMissingOperations(reporter.OperationsElsewhere, note)
	}

	return c
}

// startIntake starts receiving and scraping operations.
func (s *session) startIntake(jobStart time.Time) {
	if s.intake != nil {
		s.intake.Start(jobStart)
	}
}

// scrapeNow triggers one more scrape of each endpoint before the job ends, without waiting for it.
func (s *session) scrapeNow() {
	if s.intake != nil {
		s.intake.ScrapeNow()
	}
}

// closeIntake closes the sockets of a job that never started.
func (s *session) closeIntake() {
	if s.intake != nil {
		s.intake.Close()
	}
}
