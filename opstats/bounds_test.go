package opstats

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// fourLists returns the data of Transfers with the given numbers in the first four lists.
func fourLists(duration, post, bytes, descriptor string) string {
	return fmt.Sprintf(`{"transfer_duration":[%s],"post_duration":[%s],"bytes_transferred":[%s],"num_descriptors":[%s]}`,
		duration, post, bytes, descriptor)
}

// refuses fails the test unless read returns an error for each data and leaves v unchanged.
func refuses(t *testing.T, v any, read func(data []byte) error, data ...string) {
	t.Helper()
	before := jsonOf(t, v)
	for _, d := range data {
		if err := read([]byte(d)); err == nil {
			t.Errorf("reading %.90s into a %T returned no error", d, v)
		}
		if after := jsonOf(t, v); after != before {
			t.Errorf("reading %.90s changed the %T from %s to %s", d, v, before, after)
		}
	}
}

// Impossible values from a job are refused. A null changes nothing.
func TestUnmarshalJSON_RefusesImpossibleValues(t *testing.T) {
	one := func(fields string) string {
		return `{"count":1,"avg_time_ms":1,"min_time_ms":1,"max_time_ms":1` + fields + `}`
	}
	s := statsOf(t, 7)
	refuses(t, &s, func(data []byte) error { return json.Unmarshal(data, &s) },
		`[]`, `{}`, `{"count":"1"}`, `{"count":-1}`, `{"count":0.5}`, `{"count":1}`,
		`{"count":1e151,"avg_time_ms":1,"min_time_ms":1,"max_time_ms":1}`, `{"count":1,"avg_time_ms":1,"min_time_ms":1}`,
		`{"count":1,"avg_time_ms":1,"min_time_ms":2,"max_time_ms":1}`,
		`{"count":1,"avg_time_ms":1,"min_time_ms":-1,"max_time_ms":1}`,
		`{"count":1,"avg_time_ms":1,"min_time_ms":1,"max_time_ms":1e101}`,
		`{"count":1,"avg_time_ms":3,"min_time_ms":1,"max_time_ms":2}`,
		`{"count":1,"avg_time_ms":0.9,"min_time_ms":1,"max_time_ms":2}`,
		one(`,"last_time_ms":-1`), one(`,"last_timestamp":1e101`), one(`,"size_bytes":-1`), one(`,"last_time_ms":NaN`))

	var k Sketch
	check.Must(t, k.Add(7))
	refuses(t, &k, func(data []byte) error { return json.Unmarshal(data, &k) },
		`[]`, `{"positive":"1"}`, `{"min":1,"max":1,"positive":[0,1.5]}`, `{"min":1e999}`, `{"zeros":-1}`,
		`{"min":1,"max":1,"positive":[0,-1]}`, `{"min":1,"max":1,"positive":[9223372036854775807,1]}`,
		`{"min":1,"max":1,"positive":[-9223372036854775808,1]}`,
		`{"min":1,"max":1,"positive":[0,1`+strings.Repeat(",0", maxBins)+`,1]}`)

	m := Metrics{Counters: map[string]float64{"before": 1}}
	refuses(t, &m, func(data []byte) error { return json.Unmarshal(data, &m) },
		`[]`, `{"counters":{"a":1e200}}`, `{"counters":{"a":"1"}}`, `{"attributes":{"a":null}}`, `{"attributes":{"a":[1]}}`,
		`{"times":{"a":{"count":-1}}}`)

	r := TransferSummary{Transfers: 3}
	refuses(t, &r, func(data []byte) error { return json.Unmarshal(data, &r) }, `[]`, `{"Avg MB per transfer":"1"}`)

	for _, v := range []any{&s, &k, &m, &r} {
		before := jsonOf(t, v)
		check.Must(t, json.Unmarshal([]byte(`null`), v))
		same(t, jsonOf(t, v), before)
	}
	check.Must(t, json.Unmarshal([]byte(`{"times":{"a":{"count":0},"b":null}}`), &m))
	if len(m.Times) != 0 {
		t.Errorf("times = %v after reading empty times, want none", m.Times)
	}
}

func TestTransfers_ReadDataRefusesImpossibleLists(t *testing.T) {
	many := make(map[string][]float64)
	for i := range maxUnknownLists + 1 {
		many[fmt.Sprint(i)] = []float64{1}
	}
	var a Transfers
	check.Must(t, a.Record(Transfer{XferMicros: 7, End: unix(1)}))
	refuses(t, &a, a.ReadData,
		`[]`, `{"transfer_duration":1}`, `{"transfer_duration":["1"]}`, `{"transfer_duration":null}`,
		`{"num_failed_transfers":[1,null]}`, `{"num_failed_transfers":[1e101]}`, `{"num_kv_expired_reqs":[1,-1]}`,
		`{"num_failed_transfers":[1e999]}`, `{"num_failed_transfers":[NaN]}`, `{"new_in_2027":{"a":1}}`,
		`{"new_in_2027":[[1],[2]]}`, `{"transfer_duration":[1]}`, fourLists("1", "1", "1,1", "1"),
		fourLists("-1", "1", "1", "1"), fourLists("1", "1", "1", "4294967296"), fourLists("1", "1", "1", "-1"),
		`{"`+strings.Repeat("x", maxListName+1)+`":[]}`, `{"transfer_duration":[1`, jsonOf(t, many),
		`{"perfagent":{"lists":{"num_failed_transfers":{"n":9007199254740992,"sum":1}}}}`, // valid only in a journal
	)
}
