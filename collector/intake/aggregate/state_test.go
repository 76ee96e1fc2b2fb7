package aggregate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/opstats"
)

// full returns an Aggregator at all of its limits, with names and values of the worst case.
func full(t testing.TB) *Aggregator {
	b, r := newAggregator("*"), rand.New(rand.NewPCG(1, 2))
	name := func(i int) string { return fmt.Sprintf("%03d", i) + strings.Repeat("n", 197) }
	for i := range 130 {
		for range 60 {
			feed(b, start, fmt.Sprintf("t%s:%v|ms|#a:%s", name(i)[1:], r.ExpFloat64()*1e3, strings.Repeat(`"`, 100)))
			feed(b, start, fmt.Sprintf("v%s:%v|h", name(i)[1:], r.NormFloat64()*1e3))
		}
	}
	for i := range 100 {
		for j := range 340 {
			feed(b, start, fmt.Sprintf("s%d:%d|s", i, j))
		}
		feed(b, start, fmt.Sprintf("g%s:%v|g", name(i)[1:], r.Float64()), fmt.Sprintf("c%s:%v|c", name(i)[1:], r.Float64()))
	}
	for i := range 1200 {
		feed(b, start, fmt.Sprintf(`{"op":"t%s","ms":%v,"bytes":5,"key":"%s"}`, name(0)[1:], r.Float64(), name(i%1000)+fmt.Sprint(i/1000)))
		feed(b, start, fmt.Sprintf(`{"attribute":"%s","value":"%s"}`, name(i%1000), strings.Repeat("é", 100)))
	}
	const each = 1024 // number of transfers in each record
	for i := range opstats.MaxUncondensed / each {
		var lists [4][]string
		for range each {
			lists[0] = append(lists[0], fmt.Sprintf("%.9f", r.ExpFloat64()/100))
			lists[1] = append(lists[1], fmt.Sprintf("%.9f", r.ExpFloat64()/1000))
			lists[2] = append(lists[2], fmt.Sprint(r.IntN(1<<30)))
			lists[3] = append(lists[3], fmt.Sprint(r.IntN(50000)))
		}
		feed(b, start, fmt.Sprintf(`{"transfers":"%s","rank":%d,"data":{"transfer_duration":[%s],"post_duration":[%s],"bytes_transferred":[%s],"num_descriptors":[%s]}}`,
			name(i%4), i, strings.Join(lists[0], ","), strings.Join(lists[1], ","), strings.Join(lists[2], ","), strings.Join(lists[3], ",")))
	}
	for range 10 {
		feed(b, start, "\x1b\x1b\x1b"+fmt.Sprint(r.Int()))
	}
	source := b.AddSource("statsd", "127.0.0.1:43121")
	b.AddReceived(source, 5, 7, after(3))
	scraped := b.AddSource("scrape", "http://127.0.0.1:8000/metrics")
	b.AddScrape(scraped, 9, "", after(3))
	b.AddScrape(scraped, 0, "connection refused", after(4))
	b.DropDatagrams(5, 6)

	return b
}

// small returns an Aggregator with a series of every kind.
func small(t testing.TB) *Aggregator {
	b := newAggregator()
	feed(b, start, "a:1|c", "b:2|ms", "b:3|ms|@0.3", "g:1|g", "v:-1|h", "s:x|s", `{"attribute":"m","value":"x"}`, "x",
		`{"op":"a","ms":1,"key":"k","bytes":9}`, `{"transfer":"nixl","xfer_us":5,"rank":3}`, `{"op":"f","ok":false}`,
		`{"proxystore":"1.1.0","id":"w","metrics":{"counters":{"n":5},"times":{"t":{"count":1,"avg_time_ms":1,"min_time_ms":1,"max_time_ms":1}}}}`)
	body := check.Value(os.ReadFile("../wire/testdata/vllm.txt"))(t)
	e := newServer()
	check.Value(apply(e, body, b, after(1)))(t)
	b.AddScrape(b.AddSource("scrape", "http://127.0.0.1:8000/metrics"), 9, "", after(3))
	b.AddReceived(b.AddSource("unix", "/tmp/x"), 1, 1, after(3))
	return b
}

// stateOf returns the state that b writes.
func stateOf(t testing.TB, b *Aggregator) []byte {
	t.Helper()
	var state bytes.Buffer
	check.Must(t, b.WriteState(&state))
	return state.Bytes()
}

// An Aggregator that is restored from its state has the same report.
func TestAggregator_StateRoundTrips(t *testing.T) {
	for name, b := range map[string]*Aggregator{"empty": newAggregator(), "small": small(t), "full": full(t)} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(t, b)
			if len(state) > 3<<20 {
				t.Errorf("size of the state = %d bytes, want at most %d", len(state), 3<<20)
			}
			t.Logf("size of the state: %d bytes", len(state))
			checkRestores(t, b)
		})
	}
}

// A damaged state with numbers that no report can have is refused. The error names the series or the kind.
func TestRestore_RefusesImpossibleNumbers(t *testing.T) {
	for state, what := range map[string]string{
		`{"gauges":{"g":{"last":1e308,"min":1,"max":1,"count":1,"area":-1e308}}}`:             `"g"`,
		`{"gauges":{"g":{"count":-5}}}`:                                                       `"g"`,
		`{"counters":{"c":{"sum":1e308,"handed":{"w":1e308}}}}`:                               `"c"`,
		`{"times":{"t":{"errors":-5}}}`:                                                       `"t"`,
		`{"times":{"t":{"stats":{"count":-5}}}}`:                                              "time stats",
		`{"times":{"t":{"scraped":{"count":1e-300,"sum":1e100}}}}`:                            `"t"`,
		`{"values":{"v":{"count":-5}}}`:                                                       `"v"`,
		`{"values":{"v":{"scraped":{"count":2,"bounds":[-1e308,1e308],"buckets":[0,2,2]}}}}`:  `"v"`,
		`{"engines":{"0":{"failures":[-5]}}}`:                                                 `"0"`,
		`{"engines":{"0":{"parts":[{"count":-5}]}}}`:                                          `"0"`,
		`{"transfers":{"n":{"records":{"perfagent":{"lists":{"new":{"n":-5}}}}}}}`:            "transfers",
		`{"transfers":{"n":{"records":{"perfagent":{"lists":{"new":{"n":1,"sum":1e308}}}}}}}`: "transfers",
		`{"transfers":{"n":{"records":{"perfagent":{"span":[2,1,1]}}}}}`:                      "transfers",
		`{"keys":[{"key":"k","metrics":{"times":{"t":null}}}]}`:                               `"t"`,
	} {
		if _, err := Restore([]byte(state)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("Restore(%s): error %v, want one that names %s", state, err, what)
		}
	}
}

// A clone does not change when the original does.
func TestAggregator_CloneIsIndependent(t *testing.T) {
	for name, b := range map[string]*Aggregator{"small": small(t), "full": full(t)} {
		t.Run(name, func(t *testing.T) {
			c := b.Clone()
			ops, transfers := operations(t, c), asJSON(t, c.Transfers())
			if ops != operations(t, b) || transfers != asJSON(t, b.Transfers()) {
				t.Errorf("report of the clone %s, transfers %s; want %s, %s", ops, transfers, operations(t, b),
					asJSON(t, b.Transfers()))
			}

			feed(b, after(6), "a:1|c", "b:2|ms", "g:5|g", "v:-7|h", "s:z|s", `{"attribute":"m","value":"z"}`, "y",
				`{"op":"a","ms":1,"key":"k"}`, `{"transfer":"nixl","xfer_us":6,"rank":4}`, `{"op":"f","ok":false}`,
				`{"proxystore":"1.1.0","id":"w","metrics":{"counters":{"n":6}}}`)
			b.AddReceived(b.AddSource("unix", "/tmp/y"), 1, 1, after(7))
			scrape(t, newServer(), b, 7, histogram("vllm:nixl_xfer_time_seconds", [3]int{1, 2, 3}, 3))
			if operations(t, c) != ops || asJSON(t, c.Transfers()) != transfers {
				t.Errorf("a change of the original changed the clone:\n%s",
					cmp.Diff(ops+transfers, operations(t, c)+asJSON(t, c.Transfers())))
			}
			if operations(t, b) == ops {
				t.Error("the report of the original is the same after more lines")
			}
		})
	}
}

func TestRestore_RejectsDamagedState(t *testing.T) {
	good := stateOf(t, small(t))
	for _, state := range [][]byte{nil, []byte("x"), []byte(`{"times":{"a":null}}`), good[:len(good)/2], good[:len(good)-1]} {
		if _, err := Restore(state); err == nil {
			t.Errorf("Restore of %d bytes of damaged state returned no error", len(state))
		}
	}
}
