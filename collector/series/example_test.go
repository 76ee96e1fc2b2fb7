package series_test

import (
	"fmt"
	"math"

	"github.com/perfagent/perfagent/collector/series"
)

// After twenty samples, each bucket of a ring with capacity four covers eight samples, and the peak of a single sample
// is preserved.
func ExampleRing() {
	r := series.NewRing(4, 1)
	for i := range 20 {
		cpu := 10.0
		if i == 13 {
			cpu = 100
		}
		r.Add([]float64{cpu}, []float64{1})
	}

	fmt.Println("stride", r.Stride())
	for i := range r.Len() {
		b := r.Bucket(i)
		fmt.Printf("from sample %2d: shown %v, min %v, mean %v, max %v\n",
			int64(i)*r.Stride(), b.Values[0], b.Stats[0].Min, b.Stats[0].Mean(), b.Stats[0].Max)
	}
	// Output:
	// stride 8
	// from sample  0: shown 10, min 10, mean 10, max 10
	// from sample  8: shown 10, min 10, mean 21.25, max 100
	// from sample 16: shown 10, min 10, mean 10, max 10
}

// A journal stores the buckets. After a crash, the ring is rebuilt from them and continues.
func ExampleRestoreRing() {
	r := series.NewRing(1000, 2)
	r.Add([]float64{49.98, math.NaN()}, []float64{1.001, 1.001})
	b := r.Bucket(0)
	back, err := series.RestoreRing(r.Capacity(), r.Width(), r.Stride(), r.Count(), []series.Bucket{b})
	fmt.Println(back.Len(), err)
	_, err = series.RestoreRing(r.Capacity(), r.Width(), 4, r.Count(), []series.Bucket{b})
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// restore ring: stride 4 for 1 samples and capacity 1000, want 1
}

func ExampleSummary() {
	cpu := series.NewPercentSummary(80)
	cpu.Add(10, 1)
	cpu.Add(90, 2) // a late tick covers two seconds
	cpu.Add(50, 1)
	cpu.Add(math.NaN(), 1) // not measured

	mean, _ := cpu.Mean()
	over80, _ := cpu.Share(80)
	p95, _ := cpu.Quantile(0.95)
	_, known := cpu.Share(40)
	fmt.Println(cpu.Count(), cpu.Weight(), mean, over80, p95, known)
	// Output: 3 4 60 50 90 false
}

func ExampleSummary_Merge() {
	node0, node1 := series.NewPercentSummary(80), series.NewPercentSummary(80)
	node0.Add(100, 3)
	node1.Add(20, 1)
	if err := node0.Merge(node1); err != nil {
		fmt.Println(err)
	}
	mean, _ := node0.Mean()
	fmt.Println(node0.Weight(), mean)
	fmt.Println(node0.Merge(series.NewPercentSummary(90)))
	// Output:
	// 4 80
	// merge summaries: thresholds [80] and [90] differ
}

// The eleventh sample exceeds the length of ten, so every second sample is dropped, and the eleventh with them, as in
// perf.py.
func ExampleDecimator() {
	d := series.NewDecimator[int](10)
	for n := 1; n <= 15; n++ {
		d.Add(n)
	}
	fmt.Println(d.Items(), d.Freq())
	// Output: [1 3 5 7 9 12 14] 2
}
