package exporter

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// BenchmarkScrape measures one scrape of /metrics over a real connection: the CPU time of server and client together.
func BenchmarkScrape(b *testing.B) {
	f := sampledFeed(time.Second, 1)
	url := "http://" + listenServe(b, f.Exporter) + "/metrics"
	defer collectortest.CPUPerOp(b)()
	for b.Loop() {
		answer := check.Value(http.Get(url))(b)
		if n, err := io.Copy(io.Discard, answer.Body); err != nil || n < 1000 {
			b.Fatal(n, err)
		}
		answer.Body.Close()
	}
}

// BenchmarkObserve measures the additional cost of a sample for the sampling goroutine, without and with a copy for a
// page.
func BenchmarkObserve(b *testing.B) {
	for name, interval := range map[string]time.Duration{"not copied": time.Second, "copied": time.Hour} {
		b.Run(name, func(b *testing.B) {
			f, s := sampledFeed(interval, 1000), sampleOf(1)
			defer collectortest.CPUPerOp(b)()
			for b.Loop() {
				f.Observe(&s, f.rec)
			}
		})
	}
}

// BenchmarkReport measures the cost of a new page or report, for a full ring of 1000 samples. The cost occurs at most
// once every 2 s.
func BenchmarkReport(b *testing.B) {
	for _, path := range []string{"/", "/report.json"} {
		b.Run(path, func(b *testing.B) {
			f := sampledFeed(time.Hour, 1000)
			defer collectortest.CPUPerOp(b)()
			for b.Loop() {
				f.view.Store(f.newView(f.rec))
				if w := f.get(path); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
