package intake_test

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/intake"
)

// A job sends two lines to the address in its environment. Close returns the Aggregator with both.
func ExampleOpen() {
	address, err := intake.ParseAddress("on")
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := intake.Open(intake.Options{Address: address})
	if err != nil {
		fmt.Println(err)
		return
	}
	in.Start(time.Now())

	environment, _ := in.Environ(nil)
	for _, variable := range environment {
		if to, found := strings.CutPrefix(variable, "PERFAGENT_OPS_ADDR="); found {
			job, err := net.Dial("udp", to)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Fprint(job, "rows:5|c\nstore.get:0.5|ms")
		}
	}

	said := in.Close().Operations(time.Now())
	fmt.Println(said.Counters["rows"], "rows;", said.Times["store.get"].Count, "get of", *said.Times["store.get"].Avg, "ms")
	// Output: 5 rows; 1 get of 0.5 ms
}
