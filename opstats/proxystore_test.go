package opstats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

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
			must(t, list[i].Add(x[0].(float64), unix(x[1].(float64))))
			if size, is := x[2].(float64); is {
				must(t, list[i].SetSize(size))
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
		must(t, l.AddTime(name, key, ms, unix(c[3].(float64))))
		must(t, l.AddCounter(name, key, math.Trunc(ms*10)))
		must(t, l.AddAttribute(name, key, ms))
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
