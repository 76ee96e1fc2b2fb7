package collector

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// BenchmarkSample measures the work after a Reading: to compute the Sample and to add it to the ring and the summaries.
func BenchmarkSample(b *testing.B) {
	r := host.NewReader(host.Options{})
	defer r.Close()
	first, second := r.Read(), r.Read()
	p := NewCounterState(first)
	rec := NewRecording(first.At, time.Second, 1000)
	defer collectortest.CPUPerOp(b)()
	for b.Loop() {
		second.At.Mono += time.Second
		var s Sample
		p, s = p.Next(second, 40*time.Millisecond)
		rec.Add(&s)
	}
}
