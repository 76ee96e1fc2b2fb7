package exporter

import (
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf reports the CPU time per operation. end ends the measurement.
func cpuOf(b *testing.B) (end func()) {
	b.ReportAllocs()
	used := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N)/1000, "cpu-µs/op") }
}

// BenchmarkScrape measures one scrape of /metrics over a real connection: the CPU time of server and client together.
func BenchmarkScrape(b *testing.B) {
	f := listenFeed(time.Second)
	f.sample()
	url := "http://" + listenServe(b, f.Exporter) + "/metrics"
	defer cpuOf(b)()
	for b.Loop() {
		answer, err := http.Get(url)
		if err != nil {
			b.Fatal(err)
		}
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
			f := listenFeed(interval)
			for range 1000 {
				f.sample()
			}
			s := sampleOf(1)
			defer cpuOf(b)()
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
			f := listenFeed(time.Hour)
			for range 1000 {
				f.sample()
			}
			defer cpuOf(b)()
			for b.Loop() {
				f.view.Store(f.newView(f.rec))
				if w := f.get(path); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
