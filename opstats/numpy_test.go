package opstats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/perfagent/perfagent/internal/testenv"
)

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
	make1 := makers[rng.IntN(len(makers))]
	list := make([]float64, n)
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
