package book_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/collector/intake/wire"
)

// Lines come in, and the figures of an interval and of the whole run come out.
func ExampleBook() {
	start := time.Unix(1795357692, 0)
	b := book.New(book.Options{}, start)
	var e wire.Event
	for _, line := range []string{"rows:5|c", "rows:1|c|@0.5", `{"op":"store.get","us":500,"key":"k1"}`} {
		if reason := e.Parse([]byte(line), wire.StatsD); reason != wire.Accepted {
			b.Drop(reason, []byte(line))
			continue
		}
		b.Add(&e, start.Add(time.Second))
	}

	end := start.Add(2 * time.Second)
	figures := b.Take(end, nil)
	for i, key := range b.Columns() {
		fmt.Println(key, figures[i].Mean)
	}
	said := b.Operations(end)
	fmt.Println(said.Counters["rows"], *said.Times["store.get"].Avg, said.Keys["store.get"]["k1"].Count)
	// Output:
	// counter:rows:per_second 3.5
	// op:store.get:time_ms 0.5
	// op:store.get:per_second 0.5
	// 7 0.5 1
}

// Growth is counted from scrape to scrape, restarts of the server included.
func ExampleEndpoint() {
	start := time.Unix(1795357692, 0)
	b, endpoint := book.New(book.Options{}, start), book.NewEndpoint(start, start)
	endpoint.Absent() // nobody answered when the job started
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
