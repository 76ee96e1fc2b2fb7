package series

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestSummary_JSONRoundTripsBitForBit(t *testing.T) {
	for seed := range uint64(30) {
		for _, s := range []*Summary{NewSummary(), NewSummary(20, 80), NewPercentSummary(), NewPercentSummary(0.1, 99.95)} {
			for _, r := range samples(seed, int(seed*seed), 1, 10) {
				s.Add(r.values[0], r.weights[0])
			}
			data, err := json.Marshal(s)
			must(t, err)
			var back Summary
			must(t, json.Unmarshal(data, &back))
			if !sameSummary(s, &back) {
				t.Fatalf("%s reads as something else", data)
			}
			for _, r := range samples(seed+1, 100, 1, 10) { // and goes on as the one that was never saved
				s.Add(r.values[0], r.weights[0])
				back.Add(r.values[0], r.weights[0])
			}
			if !sameSummary(s, &back) {
				t.Fatal("the Summary that was read goes on differently")
			}
		}
	}
}

func TestSummary_JSONGolden(t *testing.T) {
	empty, percent := NewSummary(), NewPercentSummary(20, 99.95)
	nothing := NewPercentSummary(50)
	for _, v := range golden {
		percent.Add(v, 1)
	}
	percent.Add(40.04, 0.5)
	for want, s := range map[string]*Summary{
		`{"count":0,"weight":0,"sum":0}`:                                              empty,
		`{"count":0,"weight":0,"sum":0,"thresholds":[50],"above":[0],"histogram":[]}`: nothing,
		`{"count":6,"weight":5.5,"sum":269.92,"min":10,"max":100,"thresholds":[20,99.95],"above":[4.5,1],` +
			`"histogram":[[100,1],[200,1],[400,1.5],[799,1],[1000,1]]}`: percent,
	} {
		got, err := json.Marshal(s)
		must(t, err)
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestSummary_JSONRefusesWhatNoSummaryCanBe(t *testing.T) {
	for data, why := range map[string]string{
		`[]`:                           "cannot unmarshal",
		`{"count":"1"}`:                "cannot unmarshal",
		`{"count":1e99}`:               "cannot unmarshal",
		`{"count":0,"sum":1e999}`:      "cannot unmarshal",
		`{"count":-1,"min":1,"max":1}`: "out of range",
		`{"count":9007199254740993,"min":1,"max":1}`:                                      "out of range",
		`{"count":1,"weight":1,"sum":1}`:                                                  "min and max",
		`{"count":1,"weight":1,"sum":1,"min":1}`:                                          "min and max",
		`{"count":0,"min":1,"max":1}`:                                                     "min and max",
		`{"count":0,"weight":1}`:                                                          "yet there are numbers",
		`{"count":0,"sum":1}`:                                                             "yet there are numbers",
		`{"count":1,"weight":1,"sum":1,"min":2,"max":1}`:                                  "not a range",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1e101}`:                              "not a range",
		`{"count":1,"weight":-1,"sum":1,"min":1,"max":1}`:                                 "weight",
		`{"count":1,"weight":1e200,"sum":1,"min":1,"max":1}`:                              "weight",
		`{"count":1,"weight":1,"sum":2,"min":1,"max":1}`:                                  "sum",
		`{"count":2,"weight":0,"sum":5,"min":1,"max":2}`:                                  "sum",
		`{"count":0,"thresholds":[1]}`:                                                    "thresholds",
		`{"count":0,"above":[1]}`:                                                         "thresholds",
		`{"count":0,"thresholds":[2,1],"above":[0,0]}`:                                    "order",
		`{"count":0,"thresholds":[1,1],"above":[0,0]}`:                                    "order",
		`{"count":0,"thresholds":[1e101],"above":[0]}`:                                    "range",
		`{"count":0,"thresholds":[1],"above":[1]}`:                                        "above",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"thresholds":[0,1],"above":[0,1]}`: "above",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"thresholds":[0],"above":[-1]}`:    "above",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"histogram":[]}`:                   "add up",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"histogram":[[10,2]]}`:             "add up",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"histogram":[[1001,1]]}`:           "bin",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"histogram":[[-1,1]]}`:             "bin",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"histogram":[[0.5,1]]}`:            "bin",
		`{"count":1,"weight":2,"sum":2,"min":1,"max":1,"histogram":[[10,1],[10,1]]}`:      "bin",
		`{"count":1,"weight":2,"sum":2,"min":1,"max":1,"histogram":[[10,1],[9,1]]}`:       "bin",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"histogram":[[10,2],[11,-1]]}`:     "weight",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"histogram":[[10,1,0]]}`:           "pair",
		`{"count":1,"weight":1,"sum":1,"min":1,"max":1,"histogram":[null]}`:               "pair",
	} {
		s := NewSummary(7)
		before := s.Clone()
		if err := json.Unmarshal([]byte(data), s); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: want an error with %q, got %v", data, why, err)
		}
		if !sameSummary(s, before) {
			t.Errorf("%s: refused, yet read", data)
		}
	}
	s := NewSummary()
	must(t, json.Unmarshal([]byte(`{"count":0,"from":"a newer version"}`), s))
	must(t, json.Unmarshal([]byte(`null`), s))
}

func TestBucket_JSONGolden(t *testing.T) {
	nan := math.NaN()
	var a, b Stat
	a.Add(2, 1)
	a.Add(4, 1)
	b.Add(1, 1)
	b.Add(1.5, 1)
	var one, none, late Stat
	one.Add(7, 1)
	none.Add(9, 0)
	late.Add(9, 2)
	for want, bucket := range map[string]Bucket{
		`{"values":[],"stats":[]}`:                                  {},
		`{"values":[null,3],"stats":[null,null]}`:                   {[]float64{nan, 3}, []Stat{empty(), {}}},
		`{"values":[7,null,7,9],"stats":[[1],null,[],[2]]}`:         {[]float64{7, nan, 7, 9}, []Stat{one, empty(), one, late}},
		`{"values":[9,9],"stats":[[],[]]}`:                          {[]float64{9, 9}, []Stat{none, none}},
		`{"values":[2,1],"stats":[[2,4,6,2,2],[1,1.5,2.5]]}`:        {[]float64{2, 1}, []Stat{a, b}},
		`{"values":[null,1e-09],"stats":[[2,4,6,2,2],[7,7,7,1,1]]}`: {[]float64{nan, 1e-9}, []Stat{a, one}},
	} {
		got, err := json.Marshal(bucket)
		must(t, err)
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		var back Bucket
		must(t, json.Unmarshal(got, &back))
		for i := range bucket.Stats {
			if bucket.Stats[i].Count == 0 {
				bucket.Stats[i] = empty()
			}
		}
		must(t, identicalBuckets(bucket, back))
	}
}

func TestBucket_JSONRefusesWhatNoBucketCanBe(t *testing.T) {
	for data, why := range map[string]string{
		`[]`:                                      "cannot unmarshal",
		`{"values":[1e999],"stats":[null]}`:       "cannot unmarshal",
		`{"values":[1],"stats":[]}`:               "1 values and 0 stats",
		`{"values":[1],"stats":[[1,2]]}`:          "a stat of 2",
		`{"values":[1],"stats":[[1,1,1,1,1,1]]}`:  "a stat of 6",
		`{"values":[null],"stats":[[]]}`:          "a stat of nothing",
		`{"values":[null],"stats":[[1]]}`:         "a stat of nothing",
		`{"values":[1],"stats":[[-1]]}`:           "a stat of nothing",
		`{"values":[1],"stats":[[1,1,1]]}`:        "a stat of nothing",
		`{"values":[1],"stats":[[1,1,1,1,0]]}`:    "count",
		`{"values":[1],"stats":[[1,1,1,1,0.5]]}`:  "count",
		`{"values":[1],"stats":[[1,1,1,1,1e99]]}`: "count",
		`{"values":[1],"stats":[[2,1,1,1,1]]}`:    "not a range",
		`{"values":[1],"stats":[[1,2,9,1,1]]}`:    "sum",
		`{"values":[1],"stats":[[1,2,1,-1,1]]}`:   "weight",
	} {
		b := Bucket{Values: []float64{5}}
		if err := json.Unmarshal([]byte(data), &b); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: want an error with %q, got %v", data, why, err)
		}
		if len(b.Values) != 1 || b.Values[0] != 5 {
			t.Errorf("%s: refused, yet read", data)
		}
	}
	for _, b := range []Bucket{
		{Values: []float64{1}},
		{Values: []float64{math.Inf(1)}, Stats: make([]Stat, 1)},
		{Values: []float64{1}, Stats: []Stat{{Count: 1, Min: 2, Max: 1}}},
	} {
		if data, err := json.Marshal(b); err == nil {
			t.Errorf("%+v is written as %s", b, data)
		}
	}
}

// Short forms are only for what they give back exactly: a sum of 0 is not the sum of -0.
func TestBucket_JSONKeepsMinusZero(t *testing.T) {
	minus := math.Copysign(0, -1)
	for _, st := range []Stat{
		{Min: minus, Max: minus, Sum: minus, Weight: 1, Count: 1},
		{Min: minus, Max: minus, Sum: 0, Weight: 1, Count: 1},
		{Min: minus, Max: 0, Sum: minus, Weight: 1, Count: 1},
	} {
		data, err := json.Marshal(Bucket{[]float64{minus}, []Stat{st}})
		must(t, err)
		var back Bucket
		must(t, json.Unmarshal(data, &back))
		must(t, identicalBuckets(Bucket{[]float64{minus}, []Stat{st}}, back))
	}
}

// The ring of a week, 18 columns of long decimals, is well within the 2 MiB that a journal may have.
func TestBucket_JSONOfAFullRingIsSmall(t *testing.T) {
	r := NewRing(1000, 18)
	for _, s := range samples(9, 16000, 18, 0) {
		w := s.weights[0]
		for c := range s.values {
			s.values[c], s.weights[c] = s.values[c]/3, w
		}
		r.Add(s.values, s.weights)
	}
	data, err := json.Marshal(saved(r))
	must(t, err)
	if len(data) > 1<<21 {
		t.Errorf("%d bytes", len(data))
	}
	t.Logf("1000 buckets of 18 columns with 16 digits each: %d bytes", len(data))
}
