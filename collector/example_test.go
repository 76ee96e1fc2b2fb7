package collector_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// A Sampler watches the host until its context ends. Its Recording has exact summaries of every
// sample.
func ExampleSampler() {
	reader := host.NewReader(host.Options{})
	sampler := collector.NewSampler(reader, collector.Options{Interval: 10 * time.Millisecond})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()

	rec := sampler.Run(ctx)
	peak, measured := rec.Summaries[collector.MemPercent].Max()
	fmt.Println("sampled:", rec.Samples > 0)
	fmt.Println("memory was used:", measured && peak > 0)
	// Output:
	// sampled: true
	// memory was used: true
}

// Two Readings make a Sample: counters become totals and rates.
func ExampleCounterState_Next() {
	read := func(after time.Duration, sectors uint64) *host.Reading {
		r := &host.Reading{At: host.Instant{Wall: time.Unix(0, 0).Add(after), Mono: after, Boot: after}}
		r.Devices[host.Disks] = []host.Device{{Name: "sda", In: sectors, Class: host.Counted}}
		return r
	}

	mib := collector.MiB / host.Disks.Unit() // in sectors
	progress := collector.NewCounterState(read(0, 70*mib))
	_, sample := progress.Next(read(2*time.Second, 80*mib), time.Second)
	for _, c := range []collector.Column{collector.DiskRead, collector.DiskReadRate} {
		fmt.Printf("%s: %v %s\n", c.Key(), sample.Values[c], c.Info().Unit.Symbol())
	}
	fmt.Println("memory was read:", sample.Has(collector.MemPercent))
	// Output:
	// disk_io_read_mb: 10 MiB
	// disk_io_read_mb_per_second: 5 MiB/s
	// memory was read: false
}
