package opstats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// A timed is a time in milliseconds, its recording time in Unix seconds, and the size of the object or nil.
type timed [3]any

// A call is an operation, a key, a time in milliseconds and its recording time in Unix seconds.
type call [4]any

// proxyStoreIn is the input of testdata/timestats.py.
type proxyStoreIn struct {
	Streams [][]timed `json:"streams"`
	Calls   []call    `json:"calls"`
}

// proxyStoreOut is the output of testdata/timestats.py.
type proxyStoreOut struct {
	Stats     []TimeStats          `json:"stats"`
	Sums      []TimeStats          `json:"sums"`
	Keys      map[string]Metrics   `json:"keys"`
	Total     map[string]TimeStats `json:"total"`
	Aggregate map[string]TimeStats `json:"aggregate"`
}

// randomTime returns a time in milliseconds. The distribution depends on the number of the stream.
func randomTime(rng *rand.Rand, stream int) float64 {
	switch stream % 5 {
	case 0:
		return float64(rng.IntN(1e9)) / 1e6 // nanoseconds, like ProxyStore's
	case 1:
		return math.Exp(rng.NormFloat64() * 5)
	case 2:
		return float64(rng.IntN(3))
	case 3:
		return math.Pow(10, 40*rng.Float64()-20)
	}
	return 0.1
}

// randomStreams returns n streams of times, some with equal recording times, and calls with random keys.
func randomStreams(rng *rand.Rand, n int) proxyStoreIn {
	in := proxyStoreIn{Calls: []call{}}
	for i := range n {
		stream := make([]timed, 1+int(math.Exp(rng.Float64()*5)))
		for k := range stream {
			var size any
			if rng.IntN(2) == 0 {
				size = float64(rng.IntN(1 << 40))
			}
			stream[k] = timed{randomTime(rng, i), 1.7e9 + float64(rng.IntN(8))/4, size}
		}
		in.Streams = append(in.Streams, stream)
	}
	for i := range 5 * n {
		name, key := fmt.Sprintf("op%d", rng.IntN(5)), fmt.Sprintf("key%d", rng.IntN(40))
		in.Calls = append(in.Calls, call{name, key, randomTime(rng, i), 1.7e9 + float64(rng.IntN(100))})
	}

	return in
}

// ours returns the TimeStats of each stream.
func ours(t *testing.T, streams [][]timed) []TimeStats {
	t.Helper()
	list := make([]TimeStats, len(streams))
	for i, stream := range streams {
		for _, x := range stream {
			check.Must(t, list[i].Add(x[0].(float64), unix(x[1].(float64))))
			if size, is := x[2].(float64); is {
				check.Must(t, list[i].SetSize(size))
			}
		}
	}

	return list
}

// Each TimeStats, and each sum of two, equals ProxyStore's bit for bit.
func TestTimeStats_EqualsProxyStore(t *testing.T) {
	for _, environment := range []string{newest, oldest} {
		t.Run(environment, func(t *testing.T) {
			python := python(t, environment)
			in := randomStreams(rand.New(rand.NewPCG(5, 5)), testenv.Rounds(1000, 200))
			var want proxyStoreOut
			runPython(t, python, "timestats.py", in, &want)
			got := ours(t, in.Streams)
			if len(want.Stats) != len(got) || len(want.Sums) != len(got)-1 {
				t.Fatalf("ProxyStore returned %d TimeStats and %d sums, want %d and %d", len(want.Stats), len(want.Sums), len(got),
					len(got)-1)
			}
			for i, s := range got {
				lastSized := in.Streams[i][len(in.Streams[i])-1][2] != nil
				same(t, comparable04(environment, s, lastSized), want.Stats[i])
				if i > 0 {
					same(t, comparable04(environment, got[i-1].Merge(s), false), want.Sums[i-1])
				}
			}
		})
	}
}

// comparable04 clears the fields that the class of an environment does not have. The class of 1.1.0 has no sizes. The
// class of 0.4.1 has no last time, and has a size only if the last operation had a size, which sized reports.
func comparable04(environment string, s TimeStats, sized bool) TimeStats {
	if environment == oldest {
		s.Last, s.LastAt = 0, 0
	}
	if environment == newest || !sized {
		s.SizeBytes, s.HasSize = 0, false
	}

	return s
}

// A KeyedMetrics has the same contents as StoreMetrics for each key.
func TestKeyedMetrics_EqualsStoreMetrics(t *testing.T) {
	python := python(t, newest)
	in := randomStreams(rand.New(rand.NewPCG(6, 6)), testenv.Rounds(500, 200))
	var want proxyStoreOut
	runPython(t, python, "timestats.py", in, &want)

	l := NewKeyedMetrics(1000)
	for _, c := range in.Calls {
		name, key, ms := c[0].(string), c[1].(string), c[2].(float64)
		check.Must(t, l.AddTime(name, key, ms, unix(c[3].(float64))))
		check.Must(t, l.AddCounter(name, key, math.Trunc(ms*10)))
		check.Must(t, l.AddAttribute(name, key, ms))
	}
	if len(l.Keys()) != len(want.Keys) || len(want.Keys) < 30 {
		t.Fatalf("got %d keys, want ProxyStore's %d, which must be at least 30", len(l.Keys()), len(want.Keys))
	}
	for key, w := range want.Keys {
		m, _ := l.Get(key)
		for name, counter := range m.Counters { // Python's counters are exact even beyond 2^53
			if math.Abs(counter-w.Counters[name]) > 1e-9*counter {
				t.Errorf("counter %s of key %s = %v, want %v", name, key, counter, w.Counters[name])
			}
		}
		m.Counters, w.Counters = nil, nil
		same(t, m, w)
	}
	same(t, l.AggregateTimes(), want.Total)

	// aggregate_times begins with an empty TimeStats, which may change the last bits of a mean.
	for name, w := range want.Aggregate {
		got := l.AggregateTimes()[name]
		if math.Abs(got.Avg-w.Avg) > 1e-14*w.Avg {
			t.Errorf("aggregated mean of %s = %v, want %v", name, got.Avg, w.Avg)
		}
		got.Avg = w.Avg
		same(t, got, w)
	}
}

// A maker returns a random number for a list.
type maker func(rng *rand.Rand) float64

// durationMakers return realistic and unrealistic durations in seconds.
var durationMakers = []maker{
	func(rng *rand.Rand) float64 { return math.Round(math.Exp(rng.NormFloat64()*1.5+9)) / 1e6 }, // whole microseconds
	func(rng *rand.Rand) float64 { return rng.Float64() },
	func(rng *rand.Rand) float64 { return float64(rng.IntN(4)) },                     // whole seconds, including 0
	func(rng *rand.Rand) float64 { return float64(rng.IntN(30)) / 2e6 },              // half-way between two rounded values
	func(rng *rand.Rand) float64 { return math.Pow(10, 20*rng.Float64()-12) },        // any size
	func(rng *rand.Rand) float64 { return float64(1+rng.IntN(8000)) * 0x1p-3 / 1e3 }, // eighths of a millisecond
	func(*rand.Rand) float64 { return 0 },
	func(*rand.Rand) float64 { return 0.1 },
}

var byteMakers = []maker{
	func(rng *rand.Rand) float64 { return float64(rng.IntN(1 << 32)) },
	func(rng *rand.Rand) float64 { return float64(rng.IntN(1<<14)) * 4096 },
	func(rng *rand.Rand) float64 { return math.Floor(math.Pow(2, 62*rng.Float64())) },
	func(rng *rand.Rand) float64 { return 1000 * rng.Float64() },
	func(rng *rand.Rand) float64 { return 524.288 * float64(rng.IntN(3)) }, // half-way between two rounded values
	func(*rand.Rand) float64 { return 0 },
}

var descriptorMakers = []maker{
	func(rng *rand.Rand) float64 { return float64(1 + rng.IntN(2000)) },
	func(rng *rand.Rand) float64 { return float64(rng.IntN(1 << 32)) },
	func(rng *rand.Rand) float64 { return float64(rng.IntN(2)) },
	func(rng *rand.Rand) float64 { return 10 * rng.Float64() }, // not whole
	func(*rand.Rand) float64 { return MaxDescriptors },
}

// randomList returns a list of n numbers from one of the makers.
func randomList(rng *rand.Rand, n int, makers []maker) []float64 {
	make1, list := makers[rng.IntN(len(makers))], make([]float64, n)
	for i := range list {
		list[i] = make1(rng)
	}

	return list
}

// randomLength returns mostly small lengths, and some near the block sizes of numpy's sum.
func randomLength(rng *rand.Rand) int {
	switch rng.IntN(100) {
	case 0:
		return 0
	case 1:
		return []int{127, 128, 129, 135, 136, 255, 256, 257, 1000, 8191, 8192}[rng.IntN(11)]
	case 2, 3, 4:
		return 100 + rng.IntN(1000)
	}
	return 1 + rng.IntN(40)
}

// All eight figures equal numpy's bit for bit, even if the exact figure is half-way between two rounded values.
func TestReduce_EqualsNumpy(t *testing.T) {
	for environment, rounds := range map[string]int{newest: 10000, oldest: 2500} {
		t.Run(environment, func(t *testing.T) {
			python := python(t, environment)
			rng := rand.New(rand.NewPCG(11, uint64(len(environment))))
			lengths := []int{9000, 16385, 70000} // numpy 1.26 adds more than 8192 numbers in a different order
			for range testenv.Rounds(rounds, 500) {
				lengths = append(lengths, randomLength(rng))
			}

			vectors := make([]*Transfers, len(lengths))
			for i, n := range lengths {
				vectors[i] = new(Transfers)
				for list, makers := range [][]maker{durationMakers, durationMakers, byteMakers, descriptorMakers} {
					vectors[i].extend(listNames[list], randomList(rng, n, makers)...)
				}
			}
			var want [][len(summaryNames)]any
			runPython(t, python, "reduce.py", vectors, &want)
			compareReduced(t, vectors, want)
		})
	}
}

// compareReduced fails the test unless the results of Reduce equal numpy's results.
func compareReduced(t *testing.T, vectors []*Transfers, want [][len(summaryNames)]any) {
	t.Helper()
	if len(want) != len(vectors) {
		t.Fatalf("numpy returned %d results, want %d", len(want), len(vectors))
	}

	wrong := 0
	for i, v := range vectors {
		got := v.Reduce()
		for k, figure := range got.numbers() {
			w, is := want[i][k].(float64)
			if !is {
				w = map[string]float64{"inf": math.Inf(1), "nan": math.NaN()}[want[i][k].(string)]
			}
			if *figure != w && !(math.IsNaN(*figure) && math.IsNaN(w)) {
				if wrong++; wrong < 10 {
					t.Errorf("vector %d with %d transfers: %s = %v, want %v", i, v.Len(), summaryNames[k], *figure, w)
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d figures differ from numpy's, want none", wrong)
	}
}
