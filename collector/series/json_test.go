package series

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

func TestSummary_JSONRoundTripsBitForBit(t *testing.T) {
	for seed := range uint64(30) {
		for _, s := range []*Summary{NewSummary(), NewSummary(20, 80), NewPercentSummary(), NewPercentSummary(0.1, 99.95)} {
			for _, r := range samples(seed, int(seed*seed), 1, 10) {
				s.Add(r.values[0], r.weights[0])
			}
			data, back := check.Value(json.Marshal(s))(t), checkReopens(t, s)
			var fields summaryJSON
			check.Must(t, json.Unmarshal(data, &fields))
			if plain, err := json.Marshal(fields); err != nil || string(plain) != string(data) {
				t.Fatalf("MarshalJSON = %s, want %s as from encoding/json (error %v)", data, plain, err)
			}
			for _, r := range samples(seed+1, 100, 1, 10) { // the restored Summary continues like the original
				s.Add(r.values[0], r.weights[0])
				back.Add(r.values[0], r.weights[0])
			}
			if !sameSummary(s, back) {
				t.Fatalf("restored Summary after more samples = %+v, want %+v", *back, *s)
			}
		}
	}
}

func TestSummary_JSONHasDocumentedForm(t *testing.T) {
	empty, percent := NewSummary(), NewPercentSummary(20, 99.95)
	nothing := NewPercentSummary(50)
	addAll(percent, 1, golden...)
	percent.Add(40.04, 0.5)
	for want, s := range map[string]*Summary{
		`{"count":0,"weight":0,"sum":0}`:                                              empty,
		`{"count":0,"weight":0,"sum":0,"thresholds":[50],"above":[0],"histogram":[]}`: nothing,
		`{"count":6,"weight":5.5,"sum":269.92,"min":10,"max":100,"thresholds":[20,99.95],"above":[4.5,1],` +
			`"histogram":[[100,1],[200,1],[400,1.5],[799,1],[1000,1]]}`: percent,
	} {
		if got := check.Value(json.Marshal(s))(t); string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestSummary_JSONRefusesImpossibleSummary(t *testing.T) {
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
		`{"count":0,"weight":1}`:                                                          "but there are numbers",
		`{"count":0,"sum":1}`:                                                             "but there are numbers",
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
			t.Errorf("Unmarshal(%s): error %v, want one with %q", data, err, why)
		}
		if !sameSummary(s, before) {
			t.Errorf("Unmarshal(%s) returned an error but changed the Summary", data)
		}
	}

	s := NewSummary()
	check.Must(t, json.Unmarshal([]byte(`{"count":0,"from":"a newer version"}`), s))
	check.Must(t, json.Unmarshal([]byte(`null`), s))
}

func TestOptional_JSONIsNullIfUnknown(t *testing.T) {
	for _, tt := range []struct {
		value Optional
		text  string
	}{
		{0, "0"}, {-1.5, "-1.5"}, {1e21, "1e+21"}, {Unknown(), "null"},
		{Optional(math.Inf(1)), "null"}, {Optional(math.Inf(-1)), "null"},
	} {
		data, err := json.Marshal(tt.value)
		if err != nil || string(data) != tt.text {
			t.Errorf("Marshal(%v) = %s, error %v; want %s", float64(tt.value), data, err, tt.text)
		}
		read := Optional(7)
		if err := json.Unmarshal(data, &read); err != nil {
			t.Errorf("Unmarshal(%s): error %v, want nil", data, err)
		}
		if known := tt.text != "null"; read.Known() != known || known && read != tt.value {
			t.Errorf("Unmarshal(%s) = %v, want %v, or unknown for null", data, float64(read), float64(tt.value))
		}
	}

	read := Optional(7)
	if err := json.Unmarshal([]byte(`"many"`), &read); err == nil || read.Known() {
		t.Errorf("Unmarshal of a string = %v, error %v; want an unknown number and an error", float64(read), err)
	}
}
