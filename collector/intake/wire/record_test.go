package wire

import (
	"slices"
	"strings"
	"testing"
)

func TestEvent_ParsesRecords(t *testing.T) {
	checkLines(t, []lineTest{
		{`{"op":"store.get","ms":0.0625,"key":"k1","bytes":219,"ok":true,"ts":1795357692.08,"tags":{"route":"/a"}}`,
			`time store.get{route="/a"} [0.0625] key "k1" size 219 at 1.79535769208e+09`, ""},
		{`{"op":"a","us":1500}`, "time a [1.5]", ""},
		{`{"op":"a","ns":10279321}`, "time a [10.279321]", ""},
		{`{"op":"a","s":0.5}`, "time a [500]", ""},
		{` {"op":"a","s":0.5}`, "malformed", ""}, // a line that begins with a space is not a record
		{"{ \"op\" :\t\"a\" , \"ms\" : 1e0 } ", "time a [1]", ""},
		{`{"op":"a","ok":false}`, "time a failed", ""},
		{`{"op":"a","ok":false,"ms":"x"}`, "time a failed", ""},
		{`{"op":"a","ms":1,"ok":true}`, "time a [1]", ""},
		{`{"op":"a","ms":1,"bytes":null,"key":null,"ts":null,"tags":null,"ok":null,"us":null}`, "time a [1]", ""},
		{`{"op":"a","ms":1,"later":{"x":[1,{"y":null}]},"add":"x"}`, "time a [1]", ""},
		{`{"op":"a\"é\u00e9\ud83d\ude00b","ms":1}`, "time a____b [1]", ""},
		{`{"op":"a","ms":1,"key":""}`, `time a [1] key ""`, ""},
		{`{"op":"a","ms":1,"tags":{"b":5,"a":true,"c":null,"d":"x\ny"}}`, `time a{a="true",b="5",d="x\ny"} [1]`, ""},
		{`{"counter":"rows","add":5}`, "counter rows [5]", ""},
		{`{"counter":"rows","add":-5.5,"tags":{}}`, "counter rows [-5.5]", ""},
		{`{"gauge":"queue","value":-7}`, "gauge queue [-7]", ""},
		{`{"observe":"batch","value":32,"unit":"rows"}`, `value batch [32] text "rows"`, ""},
		{`{"observe":"batch","value":32}`, "value batch [32]", ""},
		{`{"attribute":"model","value":"m7"}`, `attribute model "m7"`, ""},
		{`{"attribute":"model","value":7}`, `attribute model 7`, ""},
		{`{"attribute":"model","value":true}`, `attribute model true`, ""},
		{`{"attribute":"model","value":false}`, `attribute model false`, ""},
		{`{"transfer":"nixl","xfer_us":9862,"post_us":5693,"bytes":73400320,"descriptors":56,"rank":0,"ts":5}`,
			"transfer nixl [9862 5693 7.340032e+07 56] rank 0 at 5", ""},
		{`{"transfer":"nixl","xfer_us":9862}`, "transfer nixl [9862 0 0 1]", ""},
		{`{"transfer":"nixl","failed":"transfer"}`, `failure nixl text "transfer"`, ""},
		{`{"transfer":"nixl","failed":"notification","rank":2}`, `failure nixl text "notification" rank 2`, ""},
		{`{"transfer":"nixl","failed":"kv_expired"}`, `failure nixl text "kv_expired"`, ""},
		{`{"transfers":"nixl","data":{"transfer_duration":[0.009862]},"rank":1}`,
			`data nixl rank 1 data {"transfer_duration":[0.009862]}`, ""},
		{`{"proxystore":"1.1.0","metrics":{"times":{}},"id":"worker-1"}`,
			`proxystore [1 1 0] text "worker-1" data {"times":{}}`, ""},
		{`{"proxystore":"0.6.4","metrics":{}}`, `proxystore [0 6 4] data {}`, ""},
	})
}

// hostileRecords lists hostile JSON lines and their results.
var hostileRecords = slices.Concat(
	allAre("malformed", `{`, `{}`, `{"op":"a","ms":1`, `{"op":"a","ms":1}}`, `{"op":"a","ms":1}x`, `{"op":"a","ms":1,}`,
		`{"op":"a" "ms":1}`, `{op:"a","ms":1}`, `{'op':'a','ms':1}`, `{"op":"a"}`, `{"op":"","ms":1}`,
		`{"op":null,"ms":1}`, `{"op":5,"ms":1}`, `{"op":"a","ms":"1"}`, `{"op":"a","ms":1,"us":1}`,
		`{"op":"a","ms":1,"ms":1}`, `{"op":"a","ms":1,"counter":"b"}`, `{"op":"a","ms":1,"ok":"yes"}`,
		`{"op":"a","ms":1,"key":7}`, `{"op":"a","ms":1,"tags":["x"]}`, `{"op":"a","ms":1,"tags":{"x":{}}}`,
		`{"op":"a","ms":1,"tags":{"":"x"}}`, `{"op":"a","ms":1,"ts":-1}`, `{"op":"a","ms":1,"ts":1e11}`,
		`{"op":"a","ms":1,"ts":"now"}`, `{"op":"a","ms":01}`, `{"op":"a","ms":+1}`, `{"op":"a","ms":.5}`,
		`{"op":"a","ms":1e}`, `{"op":"a\x","ms":1}`, `{"op":"a\u12","ms":1}`, "{\"op\":\"a\tb\",\"ms\":1}",
		"{\"op\":\"\xff\",\"ms\":1}", `{"counter":"a"}`, `{"gauge":"a","value":true}`, `{"attribute":"a"}`,
		`{"attribute":"a","value":[1]}`, `{"attribute":"a","value":null}`, `{"transfer":"a"}`,
		`{"transfer":"a","failed":"x"}`, `{"transfer":"a","failed":1}`, `{"transfer":"a","xfer_us":1,"rank":-1}`,
		`{"transfer":"a","xfer_us":1,"rank":1.5}`, `{"transfers":"a"}`, `{"transfers":"a","data":[]}`,
		`{"proxystore":"1.1","metrics":{}}`, `{"proxystore":"1.1.0a1","metrics":{}}`,
		`{"proxystore":"1.1.0.0","metrics":{}}`, `{"proxystore":"","metrics":{}}`, `{"proxystore":"1.1.0"}`,
		`{"proxystore":"99999999999999999999.1.0","metrics":{}}`,
	),
	allAre("time a [1]", `{"op":"a","ms":1,"x":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+`}`,
		`{"x":1,"op":"a","ms":1,"x":2`+strings.Repeat(`,"x":{}`, 1000)+`}`,
	),
	allAre("malformed", `{"op":"a","ms":1,"x":`+strings.Repeat("[", 32)+strings.Repeat("]", 32)+`}`,
		`{"op":"a","ms":1,"x":`+strings.Repeat(`{"x":`, 1000),
		`{"op":"a","ms":1,"x":[1 2}}`, `{"op":"a","ms":1,"x":{"y" nope]}`, `{"op":"a","ms":1,"x":[{]}}`,
	),
	allAre("not_finite",
		`{"op":"a","ms":NaN}`, `{"op":"a","ms":-Infinity}`, `{"op":"a","ms":1e999}`, `{"op":"a","s":1e99}`,
		`{"op":"a","ms":-1}`, `{"op":"a","ms":1,"bytes":-1}`, `{"op":"a","ms":1,"ts":NaN}`,
		`{"gauge":"a","value":Infinity}`, `{"transfer":"a","xfer_us":-1}`,
	),
	allAre("too_long", `{"op":"a","ms":1,"key":"`+strings.Repeat("k", MaxText+1)+`"}`,
		`{"op":"`+strings.Repeat("k", MaxText+1)+`","ms":1}`,
		`{"attribute":"a","value":"`+strings.Repeat("k", MaxText+1)+`"}`,
		`{"op":"a","ms":1,"x":"`+strings.Repeat("k", MaxLine)+`"}`,
	),
)

func TestEvent_SurvivesHostileRecords(t *testing.T) { checkLines(t, hostileRecords) }

// The two kinds of records with lists of numbers may be as long as a datagram.
func TestEvent_AcceptsLongListsInRecords(t *testing.T) {
	list := "0" + strings.Repeat(",0", 30000)
	for _, line := range []string{
		`{"transfers":"nixl","data":{"num_failed_transfers":[` + list + `]}}`,
		`{"proxystore":"1.1.0","metrics":{"x":[` + list + `]}}`,
	} {
		var e Event
		if r := e.Parse([]byte(line), StatsD); r != Accepted {
			t.Errorf("Parse of record %.40s... of %d bytes = %v, want %v", line, len(line), r, Accepted)
		}
	}
}
