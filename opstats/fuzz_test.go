package opstats

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// The fuzz targets of this file read arbitrary input. An accepted value must not change when it is written and read
// back, and must keep the promises of its type.
//
// FuzzTimeStatsJSON also merges the value with itself, and adds a time to it.
func FuzzTimeStatsJSON(f *testing.F) {
	for _, s := range []TimeStats{{}, statsOf(f, 0.1, 0.2, 3), statsOf(f, 0)} {
		f.Add([]byte(jsonOf(f, s)))
	}
	f.Add([]byte(`{"calls":2,"avg_time_ms":2,"min_time_ms":1,"max_time_ms":3,"size_bytes":null}`))
	f.Add([]byte(`{"count":1e150,"avg_time_ms":1e100,"min_time_ms":1e100,"max_time_ms":1e100,"last_timestamp":-1e100}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s TimeStats
		if json.Unmarshal(data, &s) != nil {
			return
		}
		reread(t, &s, &TimeStats{})
		m := s.Merge(s)
		check.Must(t, m.Add(1, unix(1)))
		reread(t, &m, &TimeStats{})
		for _, v := range []float64{m.Count, m.Avg, m.Min, m.Max, m.Total(), m.SizeBytes} {
			if !(v >= 0 && v <= math.MaxFloat64) {
				t.Fatalf("%s merged with itself = %+v, want finite numbers of at least 0", data, m)
			}
		}
		same(t, s.Merge(TimeStats{}), s)
	})
}

func FuzzMetricsJSON(f *testing.F) {
	l := filled(f)
	m, _ := l.Get("k1")
	f.Add([]byte(jsonOf(f, m)))
	f.Add([]byte(`{"attributes":{"a":null}}`))
	f.Add([]byte(`{"times":{"a":null,"b":{"count":0}},"counters":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Metrics
		if json.Unmarshal(data, &m) != nil {
			return
		}
		reread(t, &m, &Metrics{})
		for name, s := range m.Times {
			if s.Empty() {
				t.Fatalf("%s: Times[%q] is empty, want it dropped", data, name)
			}
		}
	})
}

func FuzzSketchJSON(f *testing.F) {
	var s Sketch
	for _, v := range []float64{-1e99, -1, 0, 1e-100, 1, 1, 2, 1e100} {
		check.Must(f, s.Add(v))
	}
	f.Add([]byte(jsonOf(f, &s)))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"min":1,"max":1,"positive":[0,9007199254740992]}`))
	f.Add([]byte(`{"min":1e-9,"max":1.05,"positive":[-2015,1,1,1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Sketch
		if json.Unmarshal(data, &s) != nil {
			return
		}
		reread(t, &s, &Sketch{})
		for q := 0.0; q <= 1; q += 1.0 / 64 {
			if v, ok := s.Quantile(q); ok && math.IsNaN(v) {
				t.Fatalf("%s: Quantile(%v) = NaN, want a number", data, q)
			}
		}
		if c := s.Clone(); c.Merge(&s) == nil {
			_ = c.Add(3)
			reread(t, c, &Sketch{})
		}
	})
}

func FuzzTransfersJSON(f *testing.F) {
	var a Transfers
	check.Must(f, a.Record(Transfer{XferMicros: 9862, PostMicros: 5693, Bytes: 70 * mib, Descriptors: 56, End: unix(1)}))
	a.RecordKVExpired()
	f.Add([]byte(jsonOf(f, &a)))
	a.Condense()
	f.Add([]byte(jsonOf(f, &a)))
	f.Add([]byte(fourLists(`0,1e100`, `0,1`, `1,2`, `0.5,4294967295`)))
	f.Add([]byte(`{"num_failed_handshakes":[1,-1],"remote_tokens":[]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a Transfers
		if json.Unmarshal(data, &a) == nil {
			reread(t, &a, &Transfers{})
			_ = a.Aggregate(a.Clone())
			reread(t, ptr(a.Reduce()), &TransferSummary{})
		}
		a = Transfers{}
		if a.ReadData(data) != nil {
			return
		}
		reread(t, &a, &Transfers{})
		reread(t, ptr(a.Reduce()), &TransferSummary{})
		c := a.Clone()
		check.Must(t, c.Record(Transfer{XferMicros: 1, Bytes: 1, Descriptors: 1, End: unix(1)}))
		if err := c.Aggregate(&a); err != nil {
			t.Fatalf("%s: Aggregate of a copy and the original: %v", data, err)
		}
		before := a.Len()
		a.Condense()
		if c.Condense(); c.Aggregate(&a) == nil {
			reread(t, c, &Transfers{})
		}
		checkCondensed(t, &a, before)
		reread(t, &a, &Transfers{})
	})
}

// checkCondensed fails the test if the figures of condensed Transfers are impossible. n is the number of transfers.
func checkCondensed(t *testing.T, a *Transfers, n int64) {
	t.Helper()
	r := a.Reduce()
	if a.Len() != n || r.Transfers != float64(n) {
		t.Fatalf("condensed: Len = %d, figures %+v; want %d transfers", a.Len(), r, n)
	}
	for i, v := range r.numbers() {
		if *v < 0 {
			t.Fatalf("%s = %v, want at least 0", summaryNames[i], *v)
		}
	}
	if !slices.IsSorted(a.UnknownLists()) {
		t.Fatalf("UnknownLists() = %q, want them sorted", a.UnknownLists())
	}
}

func ptr[T any](v T) *T { return &v }
