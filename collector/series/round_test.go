package series

import "testing"

// The expected values are from Python: [round(x, 1) for x in …]
func TestRound1_EqualsPython(t *testing.T) {
	for x, want := range map[float64]float64{0.05: 0.1, 0.15: 0.1, 0.25: 0.2, 0.35: 0.3, 1.25: 1.2, 33.349999999999994: 33.3,
		99.95: 100, 99.94999999999999: 99.9, 0: 0, 100: 100} {
		if got := Round1(x); got != want {
			t.Errorf("Round1(%v) = %v, want %v", x, got, want)
		}
	}
}
