package wire_test

import (
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/collector/intake/wire"
)

// In StatsD, a gauge with a sign is a change. A line with tags is DogStatsD, in which it is a value.
func ExampleEvent_Parse() {
	var e wire.Event
	for _, line := range []string{"queue:-3|g", "queue:-3|g|#host:a", "queue:many|g"} {
		reason := e.Parse([]byte(line), wire.StatsD)
		if reason != wire.Accepted {
			fmt.Println(reason)
			continue
		}
		fmt.Printf("%s %v, a change: %t\n", e.Series, e.Values, e.Kind == wire.GaugeDelta)
	}
	// Output:
	// queue [-3], a change: true
	// queue{host="a"} [-3], a change: false
	// malformed
}

func ExamplePrometheusReader() {
	text := wire.NewPrometheusReader(strings.NewReader("# TYPE took_seconds summary\ntook_seconds_sum 3\ntook_seconds_count 2\n"))
	for text.Next() {
		fmt.Printf("%s %v %v\n", text.Sample.Series, text.Sample.Part == wire.Count, text.Sample.Value)
	}
	fmt.Println(text.Err())
	// Output:
	// took_seconds false 3
	// took_seconds true 2
	// <nil>
}
