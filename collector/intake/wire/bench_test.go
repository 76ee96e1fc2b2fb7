package wire

import (
	"bytes"
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// The budget for a line is 300 ns, including all further processing, and no allocation.
func BenchmarkEvent_Parse(b *testing.B) {
	for _, bb := range []struct{ name, line string }{
		{"statsd counter", "gunicorn.requests:1|c|@1.0"},
		{"statsd time", "gunicorn.request.duration:12.345678|ms"},
		{"dogstatsd tags", "web.request:320.5|d|#env:prod,route:/users,status:200"},
		{"record", `{"op":"store.get","ms":0.0625,"key":"k1","bytes":219,"ok":true,"ts":1795357692.08,"tags":{"route":"/a"}}`},
		{"record counter", `{"counter":"rows","add":5}`},
		{"record transfer", `{"transfer":"nixl","xfer_us":9862,"post_us":5693,"bytes":73400320,"descriptors":56,"rank":0}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			line, e := []byte(bb.line), &Event{}
			for b.Loop() {
				if r := e.Parse(line, StatsD); r != Accepted {
					b.Fatal(r)
				}
			}
		})
	}
}

// The response of a vLLM server has about 150 kB. The budget is 3 ms of CPU time, including all further processing.
func BenchmarkText(b *testing.B) {
	body := check.Value(os.ReadFile("testdata/vllm.txt"))(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	t := NewPrometheusReader(bytes.NewReader(nil))
	for b.Loop() {
		for t.Reset(bytes.NewReader(body)); t.Next(); {
		}
		if t.Err() != nil {
			b.Fatal(t.Err())
		}
	}
}
