package opstats_test

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/perfagent/perfagent/opstats"
)

// A KeyedMetrics keeps the statistics of a data store by operation and key.
func ExampleKeyedMetrics() {
	start := time.Unix(1795357692, 0)
	l := opstats.NewKeyedMetrics(1000)
	for i, ms := range []float64{0.5, 0.75, 12} {
		if err := l.AddTime("store.get", fmt.Sprint("k", i%2), ms, start); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(l.AddTime("store.get", "k1", math.NaN(), start))

	m, _ := l.Get("k0")
	data, _ := json.Marshal(m.Times["store.get"])
	fmt.Println(string(data))
	all := l.AggregateTimes()["store.get"]
	fmt.Printf("%v ×  avg %.2f ms  max %v ms\n", all.Count, all.Avg, all.Max)
	// Output:
	// opstats: a number is not finite, negative or too large
	// {"count":2,"avg_time_ms":6.25,"min_time_ms":0.5,"max_time_ms":12,"last_time_ms":12,"last_timestamp":1795357692}
	// 3 ×  avg 4.42 ms  max 12 ms
}

func ExampleTimeStats_Merge() {
	var a, b opstats.TimeStats
	_ = a.Add(1, time.Unix(10, 0))
	_ = a.Add(3, time.Unix(30, 0))
	_ = b.Add(6, time.Unix(20, 0))

	m := a.Merge(b)
	fmt.Printf("%v times, avg %.3f ms, last %v ms\n", m.Count, m.Avg, m.Last)
	// Output: 3 times, avg 3.333 ms, last 3 ms
}

// The Sketches of two nodes are merged after each node has served half of the requests.
func ExampleSketch() {
	var a, b opstats.Sketch
	for i := 1; i <= 1000; i++ {
		_ = a.Add(float64(i) / 10)
		_ = b.Add(float64(i))
	}
	if err := a.Merge(&b); err != nil {
		fmt.Println(err)
	}

	p50, _ := a.Quantile(0.5)
	p90, _ := a.Quantile(0.9)
	most, _ := a.Quantile(1)
	fmt.Printf("p50 %.0f ± 1 %%, p90 %.0f ± 1 %%, max %v\n", p50, p90, most)
	// Output: p50 91 ± 1 %, p90 793 ± 1 %, max 1000
}

// A worker reports its statistics once per second, like the workers of vLLM.
func ExampleTransfers() {
	var worker, all opstats.Transfers
	end := time.Unix(1795357692, 0)
	for i := range 4 { // concurrent transfers
		_ = worker.Record(opstats.Transfer{
			XferMicros: 9862, PostMicros: 5693, Bytes: 70 << 20, Descriptors: 56,
			End: end.Add(time.Duration(i) * time.Microsecond),
		})
	}
	worker.RecordFailedTransfer()

	data, _ := json.Marshal(worker.CloneAndReset())
	var received opstats.Transfers
	if err := json.Unmarshal(data, &received); err != nil {
		fmt.Println(err)
	}
	if err := all.Aggregate(&received); err != nil {
		fmt.Println(err)
	}

	r := all.Reduce()
	rate, _ := all.WallThroughput()
	_, failed := all.Sum(opstats.NumFailedTransfers)
	fmt.Println(r.Transfers, "transfers,", r.AvgXfer, "ms,", r.Throughput, "MB/s of transfer time")
	fmt.Printf("%.0f MB/s by the wall clock, %v failed, worker empty: %v\n", rate, failed, worker.Empty())
	// Output:
	// 4 transfers, 9.862 ms, 7097.952 MB/s of transfer time
	// 28383 MB/s by the wall clock, 1 failed, worker empty: true
}
