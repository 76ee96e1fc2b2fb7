package aggregate_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/intake/wire"
)

// An Aggregator turns lines into the means of an interval and the totals of a run.
func ExampleAggregator() {
	start := time.Unix(1795357692, 0)
	b := aggregate.New(aggregate.Options{}, start)
	var e wire.Event
	for _, line := range []string{"rows:5|c", "rows:1|c|@0.5", `{"op":"store.get","us":500,"key":"k1"}`} {
		if reason := e.Parse([]byte(line), wire.StatsD); reason != wire.Accepted {
			b.Drop(reason, []byte(line))
			continue
		}
		b.Add(&e, start.Add(time.Second))
	}

	end := start.Add(2 * time.Second)
	stats := b.Collect(end, nil)
	for i, key := range b.TimelineKeys() {
		fmt.Println(key, stats[i].Mean())
	}
	said := b.Operations(end)
	fmt.Println(said.Counters["rows"], *said.Times["store.get"].Avg, said.Keys["store.get"]["k1"].Count)
	// Output:
	// counter:rows:per_second 3.5
	// op:store.get:time_ms 0.5
	// op:store.get:per_second 0.5
	// 7 0.5 1
}

// An Endpoint counts growth from scrape to scrape, even if the server restarts.
func ExampleEndpoint() {
	start := time.Unix(1795357692, 0)
	b, endpoint := aggregate.New(aggregate.Options{}, start), aggregate.NewEndpoint(start, start)
	endpoint.NoteUnreachable() // there was no server when the job started
	for _, value := range []string{"5", "8", "2"} {
		if err := endpoint.Read(strings.NewReader("# TYPE requests_total counter\nrequests_total " + value + "\n")); err != nil {
			fmt.Println(err)
			return
		}
		endpoint.AddTo(b, start)
	}
	fmt.Println(b.Operations(start).Counters)
	// Output: map[requests_total:10]
}
