package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// finiteSlowly is parseDecimal implemented only with strconv.
func finiteSlowly(text string) (float64, Reason) {
	v, _ := strconv.ParseFloat(text, 64)
	if !(math.Abs(v) <= maxNumber) {
		return 0, NotFinite
	}
	return v, Accepted
}

// checkEvent fails the test if an accepted Event breaks a promise to its users.
func checkEvent(t *testing.T, e *Event) {
	t.Helper()
	for _, v := range e.Values {
		if !(math.Abs(v) <= maxNumber) || e.Kind == Timing && v < 0 {
			t.Errorf("value of %q = %v, want a number within ±%v that is not negative for a time", e.Series, v, maxNumber)
		}
	}
	if !(e.Rate > 0 && e.Rate <= 1) || !(e.At == 0 || isMoment(e.At)) || e.Bytes < 0 {
		t.Errorf("rate %v, time %v, bytes %v; want a rate above 0 and at most 1, a time of 0 or in range, bytes of at least 0", e.Rate, e.At, e.Bytes)
	}
	needsSeries := e.Kind != Nothing && e.Kind != Mark && e.Kind != ProxyStore
	if needsSeries != (len(e.Series) > 0) || !utf8.Valid(e.Series) || len(e.Series) > MaxText+MaxTags*(2*MaxText+4)+2 {
		t.Errorf("event of kind %d has the series %q of %d bytes; want a series: %v, valid UTF-8 within the limit", e.Kind, e.Series,
			len(e.Series), needsSeries)
	}
	if bytes.ContainsAny(e.Series, "\n") {
		t.Errorf("series %q contains a line feed", e.Series)
	}
	attribute, _ := e.Attribute.(string)
	for _, text := range []string{string(e.Key), attribute} {
		if len(text) > MaxText || !utf8.ValidString(text) {
			t.Errorf("text %q has %d bytes, want valid UTF-8 of at most %d bytes", text, len(text), MaxText)
		}
	}
}

func FuzzEvent_StatsD(f *testing.F) {
	for _, tt := range hostile {
		f.Add([]byte(tt.line))
	}
	for _, line := range []string{
		"a:1|c", "a:1:2|ms|@0.5|#x:1,y|T1|c:id|e:x", "a:-3|g", "a:joe|s", "_e{5,4}:title|text|d:1|#a", "_sc|x|0", "a:.5e-3|h|#é:\"",
	} {
		f.Add([]byte(line))
	}
	var used Event
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, d := range []Dialect{StatsD, DogStatsD} {
			before, reason := bytes.Clone(line), used.Parse(line, d)
			if !bytes.Equal(line, before) {
				t.Errorf("Parse changed the line from %q to %q", before, line)
			}
			if reason == Accepted {
				checkEvent(t, &used)
			}

			var fresh Event
			if again := fresh.Parse(line, d); again != reason || reason == Accepted && describe(&fresh) != describe(&used) {
				t.Errorf("%q parsed into a used Event: %v %v, into a new Event: %v %v; want the same", line, reason, describe(&used), again,
					describe(&fresh))
			}
		}
	})
}

func FuzzEvent_Record(f *testing.F) {
	for _, tt := range hostileRecords {
		f.Add([]byte(tt.line))
	}
	f.Add([]byte(`{"op":"store.get","ms":0.0625,"key":"k1","bytes":219,"ok":true,"ts":1795357692.08,"tags":{"route":"/a"}}`))
	f.Add([]byte(`{"transfer":"nixl","xfer_us":9862,"post_us":5693,"bytes":73400320,"descriptors":56,"rank":0,"ts":5}`))
	f.Add([]byte(`{"proxystore":"1.1.0","metrics":{"times":{}},"id":"worker-1"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var e Event
		if !bytes.HasPrefix(line, []byte("{")) {
			return
		}
		if e.Parse(line, StatsD) == Accepted {
			checkEvent(t, &e)
		}
	})
}

// FuzzScanner checks that the scanner accepts all valid JSON up to its nesting depth.
func FuzzScanner(f *testing.F) {
	for _, tt := range hostileRecords {
		f.Add([]byte(tt.line))
	}
	f.Add([]byte(`[1,-0.5e+3,"\u12aF\n",true,false,null,{},[]]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return
		}
		s := scanner{data: data}
		_, ok := s.value()
		ok = ok && s.space() == 0 && s.at == len(data)
		text := string(data)
		if !ok && json.Valid(data) && strings.Count(text, "[")+strings.Count(text, "{") < maxDepth {
			t.Errorf("the scanner rejected %q, which is valid JSON", data)
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, text := range []string{"1", "-0.5", "123456789012345", "1e5", "+.5", "nan", "0x1p3", "1_0", "99999.9999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, reason := parseDecimal([]byte(text))
		if reason != Accepted {
			return
		}
		if want, reason := finiteSlowly(text); reason != Accepted || math.Float64bits(v) != math.Float64bits(want) {
			t.Errorf("parseDecimal(%q) = %v, accepted; want %v, %v from strconv", text, v, want, reason)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, tt := range bodies {
		f.Add([]byte(tt.body))
	}
	for _, tt := range badBodies {
		f.Add([]byte(tt.body))
	}
	used := NewPrometheusReader(bytes.NewReader(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		used.Reset(bytes.NewReader(body))
		n := 0
		for used.Next() {
			n++
			s := &used.Sample
			if (s.Series == nil) != (s.Reason != Accepted) || len(s.Name) == 0 || !utf8.Valid(s.Series) {
				t.Errorf("series %q, name %q, reason %v; want a name, and a series in UTF-8 if the sample is accepted", s.Series, s.Name,
					s.Reason)
			}
			if s.Reason == Accepted {
				got := string(s.Series)
				if want, _ := used.builder.series(s.Name); got != string(want) {
					t.Errorf("series = %q, want %q", got, want)
				}
			}
			if (s.Part == Bucket) == math.IsNaN(s.Bound) {
				t.Errorf("sample of part %d has the bound %v, want a bound only for a bucket", s.Part, s.Bound)
			}
		}
		if lines := bytes.Count(body, []byte("\n")); n > lines {
			t.Errorf("got %d samples from %d lines, want at most one sample per line", n, lines)
		}
		if again := NewPrometheusReader(bytes.NewReader(body)); !samePlaces(again, n, used.Err()) {
			t.Errorf("reading %q twice returned errors %v and %v, or different numbers of samples", body, used.Err(), again.Err())
		}
	})
}

// samePlaces reads a body again, and reports whether the reader stops after n samples with the same error.
func samePlaces(t *PrometheusReader, n int, err error) bool {
	for t.Next() {
		n--
	}
	return n == 0 && (err == nil) == (t.Err() == nil) && (err == nil || err.Error() == t.Err().Error())
}
