package aggregate

import (
	"io"
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
)

// known has one line for each series that is measured.
var known = []struct{ name, line string }{
	{"counter", "gunicorn.requests:1|c|@1.0"},
	{"time", "gunicorn.request.duration:12.345678|ms"},
	{"gauge", "gunicorn.workers:4|g"},
	{"value with tags", "web.request:320.5|d|#env:prod,route:/users,status:200"},
	{"set", "users:joe|s"},
	{"operation", `{"op":"store.get","ms":0.0625}`},
	{"operation with all fields", `{"op":"store.get","ms":0.0625,"key":"k1","bytes":219,"ok":true,"ts":1795357692.08,"tags":{"route":"/a"}}`},
	{"transfer", `{"transfer":"nixl","xfer_us":9862,"post_us":5693,"bytes":73400320,"descriptors":56,"rank":0}`},
}

// Lines of known series do not allocate, except for transfers, which are kept in growing lists.
func TestAggregator_KnownSeriesDoNotAllocate(t *testing.T) {
	b := newAggregator()
	var e wire.Event
	for _, k := range known[:len(known)-1] {
		line := []byte(k.line)
		add := func() {
			for range 1000 {
				if e.Parse(line, wire.StatsD) != wire.Accepted || !b.Add(&e, start) {
					t.Fatalf("line %s was rejected", k.line)
				}
			}
		}
		add()
		fewest := math.Inf(1)
		for try := 0; try < 5 && fewest > 0; try++ {
			fewest = min(fewest, testing.AllocsPerRun(1, add))
		}
		if fewest != 0 {
			t.Errorf("%s: got %v allocations for 1000 lines, want 0", k.name, fewest)
		}
	}

	means := make([]series.Stat, 0, 2*MaxCharts)
	if n := testing.AllocsPerRun(100, func() { means = b.Collect(start, means[:0]) }); n != 0 {
		t.Errorf("Collect made %v allocations, want 0", n)
	}
}

// An Aggregator at all of its limits takes at most 6 MiB if its transfers have few names. With many names, the spare
// capacity of the lists adds at most 1 MiB.
func TestAggregator_FitsItsMemoryBudget(t *testing.T) {
	var before, later runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := full(t)
	runtime.GC()
	runtime.ReadMemStats(&later)
	taken := int64(later.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%.2f MiB", float64(taken)/(1<<20))
	if taken > 6<<20 {
		t.Errorf("size of a full Aggregator = %d bytes, want at most %d", taken, 6<<20)
	}
	runtime.KeepAlive(b)
}

// The budget is 300 ns to parse and add a line of a known series.
func BenchmarkAggregator_Line(b *testing.B) {
	for _, k := range known {
		b.Run(k.name, func(b *testing.B) {
			book, line := newAggregator(), []byte(k.line)
			var e wire.Event
			b.ReportAllocs()
			for b.Loop() {
				if e.Parse(line, wire.StatsD) != wire.Accepted || !book.Add(&e, start) {
					b.Fatal(k.line)
				}
			}
		})
	}
}

// The budget is 3 ms of CPU time for a scrape of a vLLM server.
func BenchmarkEndpoint_Apply(b *testing.B) {
	body := check.Value(os.ReadFile("../wire/testdata/vllm.txt"))(b)
	book, e := newAggregator(), NewEndpoint(start, start)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		check.Value(apply(e, body, book, start))(b)
	}
}

func BenchmarkAggregator_Clone(b *testing.B) {
	book := full(b)
	b.ReportAllocs()
	for b.Loop() {
		book.Clone()
	}
}

func BenchmarkAggregator_WriteState(b *testing.B) {
	for name, book := range map[string]*Aggregator{"small": small(b), "full": full(b)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				check.Must(b, book.WriteState(io.Discard))
			}
		})
	}
}
