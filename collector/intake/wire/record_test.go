package wire

import (
	"strings"
	"testing"
)

func TestEvent_ParsesRecords(t *testing.T) {
	checkLines(t, []lineTest{
		{line: `{"op":"store.get","ms":0.0625,"key":"k1","bytes":219,"ok":true,"ts":1795357692.08,"tags":{"route":"/a"}}`,
			statsd: `time store.get{route="/a"} [0.0625] key "k1" size 219 at 1.79535769208e+09`},
		{line: `{"op":"a","us":1500}`, statsd: "time a [1.5]"},
		{line: `{"op":"a","ns":10279321}`, statsd: "time a [10.279321]"},
		{line: `{"op":"a","s":0.5}`, statsd: "time a [500]"},
		{line: ` {"op":"a","s":0.5}`, statsd: "malformed"}, // begins with a space: a StatsD line
		{line: "{ \"op\" :\t\"a\" , \"ms\" : 1e0 } ", statsd: "time a [1]"},
		{line: `{"op":"a","ok":false}`, statsd: "time a failed"},
		{line: `{"op":"a","ok":false,"ms":"x"}`, statsd: "time a failed"},
		{line: `{"op":"a","ms":1,"ok":true}`, statsd: "time a [1]"},
		{line: `{"op":"a","ms":1,"bytes":null,"key":null,"ts":null,"tags":null,"ok":null,"us":null}`, statsd: "time a [1]"},
		{line: `{"op":"a","ms":1,"later":{"x":[1,{"y":null}]},"add":"x"}`, statsd: "time a [1]"},
		{line: `{"op":"a\"é\u00e9\ud83d\ude00b","ms":1}`, statsd: "time a____b [1]"},
		{line: `{"op":"a","ms":1,"key":""}`, statsd: `time a [1] key ""`},
		{line: `{"op":"a","ms":1,"tags":{"b":5,"a":true,"c":null,"d":"x\ny"}}`, statsd: `time a{a="true",b="5",d="x\ny"} [1]`},
		{line: `{"counter":"rows","add":5}`, statsd: "counter rows [5]"},
		{line: `{"counter":"rows","add":-5.5,"tags":{}}`, statsd: "counter rows [-5.5]"},
		{line: `{"gauge":"queue","value":-7}`, statsd: "gauge queue [-7]"},
		{line: `{"observe":"batch","value":32,"unit":"rows"}`, statsd: `value batch [32] text "rows"`},
		{line: `{"observe":"batch","value":32}`, statsd: "value batch [32]"},
		{line: `{"attribute":"model","value":"m7"}`, statsd: `attribute model "m7"`},
		{line: `{"attribute":"model","value":7}`, statsd: `attribute model 7`},
		{line: `{"attribute":"model","value":true}`, statsd: `attribute model true`},
		{line: `{"attribute":"model","value":false}`, statsd: `attribute model false`},
		{line: `{"transfer":"nixl","xfer_us":9862,"post_us":5693,"bytes":73400320,"descriptors":56,"rank":0,"ts":5}`,
			statsd: "transfer nixl [9862 5693 7.340032e+07 56] rank 0 at 5"},
		{line: `{"transfer":"nixl","xfer_us":9862}`, statsd: "transfer nixl [9862 0 0 1]"},
		{line: `{"transfer":"nixl","failed":"transfer"}`, statsd: `failure nixl text "transfer"`},
		{line: `{"transfer":"nixl","failed":"notification","rank":2}`, statsd: `failure nixl text "notification" rank 2`},
		{line: `{"transfer":"nixl","failed":"kv_expired"}`, statsd: `failure nixl text "kv_expired"`},
		{line: `{"transfers":"nixl","data":{"transfer_duration":[0.009862]},"rank":1}`,
			statsd: `data nixl rank 1 data {"transfer_duration":[0.009862]}`},
		{line: `{"proxystore":"1.1.0","metrics":{"times":{}},"id":"worker-1"}`,
			statsd: `proxystore [1 1 0] text "worker-1" data {"times":{}}`},
		{line: `{"proxystore":"0.6.4","metrics":{}}`, statsd: `proxystore [0 6 4] data {}`},
	})
}

// hostileRecords has hostile JSON and its results.
var hostileRecords = []lineTest{
	{line: `{`, statsd: "malformed"},
	{line: `{}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1`, statsd: "malformed"},
	{line: `{"op":"a","ms":1}}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1}x`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,}`, statsd: "malformed"},
	{line: `{"op":"a" "ms":1}`, statsd: "malformed"},
	{line: `{op:"a","ms":1}`, statsd: "malformed"},
	{line: `{'op':'a','ms':1}`, statsd: "malformed"},
	{line: `{"op":"a"}`, statsd: "malformed"},
	{line: `{"op":"","ms":1}`, statsd: "malformed"},
	{line: `{"op":null,"ms":1}`, statsd: "malformed"},
	{line: `{"op":5,"ms":1}`, statsd: "malformed"},
	{line: `{"op":"a","ms":"1"}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"us":1}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"ms":1}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"counter":"b"}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"ok":"yes"}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"key":7}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"tags":["x"]}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"tags":{"x":{}}}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"tags":{"":"x"}}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"ts":-1}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"ts":1e11}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"ts":"now"}`, statsd: "malformed"},
	{line: `{"op":"a","ms":01}`, statsd: "malformed"},
	{line: `{"op":"a","ms":+1}`, statsd: "malformed"},
	{line: `{"op":"a","ms":.5}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1e}`, statsd: "malformed"},
	{line: `{"op":"a\x","ms":1}`, statsd: "malformed"},
	{line: `{"op":"a\u12","ms":1}`, statsd: "malformed"},
	{line: "{\"op\":\"a\tb\",\"ms\":1}", statsd: "malformed"},
	{line: "{\"op\":\"\xff\",\"ms\":1}", statsd: "malformed"},
	{line: `{"counter":"a"}`, statsd: "malformed"},
	{line: `{"gauge":"a","value":true}`, statsd: "malformed"},
	{line: `{"attribute":"a"}`, statsd: "malformed"},
	{line: `{"attribute":"a","value":[1]}`, statsd: "malformed"},
	{line: `{"attribute":"a","value":null}`, statsd: "malformed"},
	{line: `{"transfer":"a"}`, statsd: "malformed"},
	{line: `{"transfer":"a","failed":"x"}`, statsd: "malformed"},
	{line: `{"transfer":"a","failed":1}`, statsd: "malformed"},
	{line: `{"transfer":"a","xfer_us":1,"rank":-1}`, statsd: "malformed"},
	{line: `{"transfer":"a","xfer_us":1,"rank":1.5}`, statsd: "malformed"},
	{line: `{"transfers":"a"}`, statsd: "malformed"},
	{line: `{"transfers":"a","data":[]}`, statsd: "malformed"},
	{line: `{"proxystore":"1.1","metrics":{}}`, statsd: "malformed"},
	{line: `{"proxystore":"1.1.0a1","metrics":{}}`, statsd: "malformed"},
	{line: `{"proxystore":"1.1.0.0","metrics":{}}`, statsd: "malformed"},
	{line: `{"proxystore":"","metrics":{}}`, statsd: "malformed"},
	{line: `{"proxystore":"1.1.0"}`, statsd: "malformed"},
	{line: `{"proxystore":"99999999999999999999.1.0","metrics":{}}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`, statsd: "time a [1]"},
	{line: `{"op":"a","ms":1,"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, statsd: "malformed"},
	{line: `{"op":"a","ms":1,"x":` + strings.Repeat(`{"x":`, 1000), statsd: "malformed"},
	{line: `{"op":"a","ms":NaN}`, statsd: "not_finite"},
	{line: `{"op":"a","ms":-Infinity}`, statsd: "not_finite"},
	{line: `{"op":"a","ms":1e999}`, statsd: "not_finite"},
	{line: `{"op":"a","s":1e99}`, statsd: "not_finite"},
	{line: `{"op":"a","ms":-1}`, statsd: "not_finite"},
	{line: `{"op":"a","ms":1,"bytes":-1}`, statsd: "not_finite"},
	{line: `{"op":"a","ms":1,"ts":NaN}`, statsd: "not_finite"},
	{line: `{"gauge":"a","value":Infinity}`, statsd: "not_finite"},
	{line: `{"transfer":"a","xfer_us":-1}`, statsd: "not_finite"},
	{line: `{"op":"a","ms":1,"key":"` + strings.Repeat("k", MaxText+1) + `"}`, statsd: "too_long"},
	{line: `{"op":"` + strings.Repeat("k", MaxText+1) + `","ms":1}`, statsd: "too_long"},
	{line: `{"attribute":"a","value":"` + strings.Repeat("k", MaxText+1) + `"}`, statsd: "too_long"},
	{line: `{"op":"a","ms":1,"x":"` + strings.Repeat("k", MaxLine) + `"}`, statsd: "too_long"},
}

func TestEvent_SurvivesHostileRecords(t *testing.T) { checkLines(t, hostileRecords) }

// The two records with whole sets of numbers may be as long as a datagram.
func TestEvent_AcceptsLongListsInRecords(t *testing.T) {
	list := "0" + strings.Repeat(",0", 30000)
	for _, line := range []string{
		`{"transfers":"nixl","data":{"num_failed_transfers":[` + list + `]}}`,
		`{"proxystore":"1.1.0","metrics":{"x":[` + list + `]}}`,
	} {
		var e Event
		if r := e.Parse([]byte(line), StatsD); r != Accepted {
			t.Errorf("record %.40s... of %d bytes: %v, want %v", line, len(line), r, Accepted)
		}
	}
}
