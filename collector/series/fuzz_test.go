package series

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// FuzzRing compares a ring with the naive oracle. It varies the capacity, length, width and missing values, and the
// sample at which a ring is saved and restored; the restored ring must stay equal to the original.
func FuzzRing(f *testing.F) {
	f.Add(uint16(2), uint16(5), byte(1), byte(0), uint16(3), uint64(1))
	f.Add(uint16(1), uint16(17), byte(2), byte(10), uint16(16), uint64(2))
	f.Add(uint16(10), uint16(100), byte(3), byte(90), uint16(0), uint64(3))
	f.Add(uint16(1000), uint16(2001), byte(1), byte(5), uint16(1000), uint64(4))
	f.Add(uint16(7), uint16(0), byte(18), byte(100), uint16(0), uint64(5))
	f.Fuzz(func(t *testing.T, capacity, n uint16, width, missing byte, at uint16, seed uint64) {
		rows := samples(seed, int(n%3000), 1+int(width%20), int(missing%101))
		r := NewRing(int(capacity), 1+int(width%20))
		restored := r
		for i, s := range rows {
			if i == int(at)%len(rows) {
				restored = reopened(t, r)
			}
			r.Add(s.values, s.weights)
			if restored != r {
				restored.Add(s.values, s.weights)
			}
		}
		check.Must(t, newOracle(rows).check(r, len(rows)))
		check.Must(t, identical(r, restored))
		check.Must(t, identical(r, reopened(t, r)))
		check.Must(t, identical(wideRing(int(capacity), rows, int(at)%(len(rows)+1), 1+int(seed%5)), wideFromStart(int(capacity), rows, int(at)%(len(rows)+1), 1+int(seed%5))))
	})
}

// reopened returns the ring rebuilt from its state.
func reopened(t *testing.T, r *Ring) *Ring {
	t.Helper()
	return check.Value(RestoreRing(r.Capacity(), r.Width(), r.Stride(), r.Count(), saved(r)))(t)
}

// FuzzSummaryJSON reads arbitrary input. An accepted Summary must have numbers in range, must not change when it is
// written and read back, and must accept values and merges.
func FuzzSummaryJSON(f *testing.F) {
	percent := NewPercentSummary(20, 40, 80, 99.95)
	for _, s := range []*Summary{NewSummary(), NewSummary(1), percent} {
		addAll(s, 1.0001, golden...)
		data := check.Value(json.Marshal(s))(f)
		f.Add(data)
	}

	f.Add([]byte(`{"count":1,"weight":0,"sum":-0,"min":-0,"max":0,"histogram":[[0,1]]}`))
	f.Add([]byte(`{"count":9007199254740992,"weight":1e150,"sum":1e250,"min":-1e100,"max":1e100,"thresholds":[-1,0],"above":[1e150,1e-320]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Summary
		if err := json.Unmarshal(data, &s); err != nil {
			return
		}
		checkSane(t, &s)
		checkReopens(t, &s)
		before := s.Clone()
		if s.Merge(before) == nil { // otherwise the sum is out of range, and s must be unchanged
			checkSane(t, &s)
			checkReopens(t, &s)
		} else if !sameSummary(&s, before) {
			t.Errorf("a refused merge changed the Summary from %+v to %+v", before.Stat(), s.Stat())
		}
		before.Add(50, 1)
		checkSane(t, before)
	})
}

// checkReopens compares a Summary with its copy read from JSON, and returns the copy.
func checkReopens(t *testing.T, s *Summary) *Summary {
	t.Helper()
	data := check.Value(json.Marshal(s))(t)
	var back Summary
	check.Must(t, json.Unmarshal(data, &back))
	if !sameSummary(s, &back) {
		t.Fatalf("read %s as %+v, want %+v", data, back, s)
	}
	return &back
}

// checkSane checks the guarantees that hold for every Summary.
func checkSane(t *testing.T, s *Summary) {
	t.Helper()
	mean, ok := s.Mean()
	if ok != (s.Count() > 0) {
		t.Fatalf("Mean() = %v, %v for count %d; want true if and only if the count is above 0", mean, ok, s.Count())
	}
	if !ok {
		return
	}

	least, _ := s.Min()
	most, _ := s.Max()
	if !(least <= mean && mean <= most) {
		t.Fatalf("mean = %v, want %v..%v", mean, least, most)
	}

	for _, threshold := range s.thresholds {
		if p, ok := s.Share(threshold); !ok || !(p >= 0 && p <= 100) {
			t.Fatalf("Share(%v) = %v, %v; want 0 to 100, true", threshold, p, ok)
		}
	}

	last := math.Inf(-1)
	for _, q := range []float64{0, 0.01, 0.5, 0.95, 0.99} {
		v, ok := s.Quantile(q)
		if ok != (s.bins != nil) || ok && !(v >= least && v <= most && v >= last) {
			t.Fatalf("Quantile(%v) = %v, %v; want %v, at least %v, in %v..%v", q, v, ok, s.bins != nil, last, least, most)
		}
		last = v
	}
}

// FuzzMerge splits a stream into two parts at any sample. Merging the parts, in either order, must give the Summary of
// the whole stream.
func FuzzMerge(f *testing.F) {
	f.Add(uint64(1), uint16(0), uint16(0), byte(0))
	f.Add(uint64(2), uint16(100), uint16(50), byte(50))
	f.Add(uint64(3), uint16(999), uint16(1), byte(99))
	f.Fuzz(func(t *testing.T, seed uint64, n, at uint16, missing byte) {
		rows := samples(seed, int(n%5000), 1, int(missing%101))
		a, b, whole := NewPercentSummary(20, 80), NewPercentSummary(20, 80), NewPercentSummary(20, 80)
		for i, r := range rows {
			part := a
			if i >= int(at)%len(rows) {
				part = b
			}
			part.Add(r.values[0], r.weights[0])
			whole.Add(r.values[0], r.weights[0])
		}
		alike(t, "split", merged(t, a, b), whole)
		alike(t, "commutative", merged(t, a, b), merged(t, b, a))
		checkSane(t, merged(t, b, a))
		checkReopens(t, merged(t, b, a))
	})
}
