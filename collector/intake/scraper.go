package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
)

// The limits of a scrape.
const maxBody = 8 << 20 // bytes

var maxScrape = 5 * time.Second

// A scraper periodically scrapes one endpoint.
type scraper struct {
	in       *Intake
	url      *url.URL
	source   int
	endpoint *aggregate.Endpoint
	client   *http.Client
	now      chan struct{}
}

// newScraper returns a scraper for the endpoint u. The scraper opens a new connection for each scrape, because a server
// with a single thread would wait on an idle connection instead of serving the job.
func newScraper(in *Intake, u *url.URL) *scraper {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", "" // they may contain a token
	return &scraper{
		in: in, url: u, now: make(chan struct{}, 1), source: in.aggregator.AddSource("scrape", shown.String()),
		client: &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10},
			CheckRedirect: sameHost,
		},
	}
}

// sameHost returns an error for a redirect to another host, for a redirect from https to http, and after too many
// redirects.
func sameHost(next *http.Request, before []*http.Request) error {
	from := before[len(before)-1].URL
	switch {
	case next.URL.Hostname() != from.Hostname() || from.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("it redirects to another host, %s", next.URL.Host)
	case len(before) >= 5:
		return errors.New("it redirects too often")
	}
	return nil
}

// run scrapes immediately, and then once per interval and after each ScrapeNow, until ctx is done.
func (s *scraper) run(ctx context.Context) {
	ticker := time.NewTicker(s.in.options.ScrapeInterval)
	defer ticker.Stop()
	for {
		s.scrape(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.now:
		}
	}
}

// scrape scrapes the endpoint once and adds the result to the Aggregator.
func (s *scraper) scrape(ctx context.Context) {
	within := min(maxScrape, s.in.options.ScrapeInterval)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := s.read(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no complete response within %v", within)
	}
	at := s.in.options.Now()

	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.closed {
		return
	}
	if err != nil {
		if isUnreachable(err) {
			s.endpoint.NoteUnreachable()
		}
		s.in.aggregator.AddScrape(s.source, 0, err.Error(), at)
		return
	}
	s.in.aggregator.AddScrape(s.source, int64(s.endpoint.AddTo(s.in.aggregator, at)), "", at)
}

// read requests the metrics, and passes the body to the endpoint.
func (s *scraper) read(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	if user := s.url.User; user != nil { // net/http copies the header to redirects
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	response, err := s.client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // the cause, without the URL
		}
		return err
	}
	s.in.parsing.Lock()
	defer s.in.parsing.Unlock()
	defer response.Body.Close()
	if err := checkResponse(response); err != nil {
		return err
	}

	body := &io.LimitedReader{R: bodyReader{response.Body, &s.in.parsing}, N: maxBody + 1}
	if err = s.endpoint.Read(body); body.N <= 0 {
		err = fmt.Errorf("the response is longer than %d MiB", maxBody>>20)
	}
	return err
}

// A bodyReader reads a body in parts. While it waits for a part, other scrapers may parse their responses.
type bodyReader struct {
	body    io.Reader
	parsing *sync.Mutex
}

// Read implements io.Reader. The caller holds the lock parsing, which Read releases while it waits.
func (r bodyReader) Read(part []byte) (int, error) {
	r.parsing.Unlock()
	defer r.parsing.Lock()
	return r.body.Read(part)
}

// isUnreachable reports whether an error means that there is no server. A server that does not respond may only be
// slow.
func isUnreachable(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial" && !failed.Timeout() &&
		!errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) // no free descriptors in this process
}

// checkResponse returns an error unless the response may be Prometheus text.
func checkResponse(r *http.Response) error {
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("the response has status %d", r.StatusCode)
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "application/openmetrics-text" {
		return errors.New("it responds in the OpenMetrics format, although Prometheus' text format was requested")
	}
	return nil
}
