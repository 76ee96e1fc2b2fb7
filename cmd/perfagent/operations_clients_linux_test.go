package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// Jobs that know their client but not perfagent. Each collects the values that it sends and prints them.
const (
	opsSent = `
import atexit, collections, json, random
random.seed(7)
sent = { 'counters': collections.Counter(), 'gauges': {}, 'sets': {}, 'events': [],
        'times': collections.defaultdict(list), 'values': collections.defaultdict(list)}
atexit.register(lambda: print(json.dumps(sent)))
`

	opsStatsD = opsSent + `
from statsd.defaults.env import statsd
for i in range(2000):
    n, ms = random.randint(-3, 9), round(random.expovariate(0.1), 3)
    statsd.incr('rows', n); sent['counters']['rows'] += n
    statsd.timing('request', ms); sent['times']['request'].append(ms)
    statsd.gauge('queue', n); sent['gauges']['queue'] = n
    statsd.set('users', n)
sent['sets']['users'] = 13
sent['datagrams'] = 4 * 2000
`

	opsDatadog = opsSent + `
from datadog import initialize, statsd
initialize()
for i in range(2000):
    n, ms = random.randint(1, 9), round(random.expovariate(0.1), 3)
    statsd.increment('rows', n, tags=['route:/a', 'prod']); sent['counters']['rows{prod="",route="/a"}'] += n
    statsd.timing('request', ms); sent['times']['request'].append(ms)
    statsd.histogram('size', ms); sent['values']['size'].append(ms)
    statsd.distribution('load', -ms); sent['values']['load'].append(-ms)
    statsd.gauge('queue', -n); sent['gauges']['queue'] = -n
    statsd.set('users', n)
sent['sets']['users'] = 9
statsd.event('deployed\x1b[2J', 'version 7'); sent['events'].append('deployed\x1b[2J')
statsd.flush()
`
)

// opsBash is a job without a client library.
const opsBash = `
send() { echo "$1" > /dev/udp/$STATSD_HOST/$STATSD_PORT; }
for i in {1..200}; do send "rows:$i|c"; send "request:$i.5|ms"; done
send "queue:4|g"; send "queue:-7|g"; send "rows:1|c|@0.5"; send "users:joe|s"; send "users:ann|s"; send "users:joe|s"
printf '{"op":"link","s":0.25}\n{"op":"link","us":750000,"key":"a.o"}\n' > /dev/udp/${PERFAGENT_OPS_ADDR/:/\/}
dogstatsd=${DD_DOGSTATSD_URL#udp://}
printf 'size:1:2:3|h|#a:b' > /dev/udp/${dogstatsd/:/\/}
`

// opsSaid is a job's own account of the values that it sent. Datagrams is 0 if it does not know their number.
type opsSaid struct {
	Datagrams     int64
	Counters      map[string]float64
	Gauges        map[string]float64
	Sets          map[string]int
	Times, Values map[string][]float64
	Events        []string
}

// The report has exactly the events of clients that do not know perfagent.
func TestOperations_ReportHasExactlyTheEventsOfClients(t *testing.T) {
	t.Parallel()
	python, bash := opsPython(t), testenv.NeedsTool(t, "bash", "your system's package of it")
	var numbers []float64
	sum := 2.0 // "1" at a rate of 0.5
	for i := 1.0; i <= 200; i++ {
		numbers, sum = append(numbers, i+0.5), sum+i
	}
	for _, test := range []struct {
		name string
		job  []string
		said *opsSaid // nil if the job prints it
	}{
		{"statsd", []string{python, "-c", opsStatsD}, nil},
		{"datadog", []string{python, "-c", opsDatadog}, nil},
		{"bash", []string{bash, "-c", opsBash}, &opsSaid{
			Datagrams: 409, // bash sends each line separately
			Counters:  map[string]float64{"rows": sum},
			Gauges:    map[string]float64{"queue": -3},
			Sets:      map[string]int{"users": 2},
			Times:     map[string][]float64{"request": numbers, "link": {250, 750}},
			Values:    map[string][]float64{`size{a="b"}`: {1, 2, 3}},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n, o := opsRun(t, test.job...)
			said := test.said
			if said == nil {
				if err := json.Unmarshal([]byte(o.Out), &said); err != nil {
					t.Fatalf("the job printed no JSON: %v: %s", err, o.Out)
				}
			}
			wantSaid(t, n, said)
		})
	}
}

// wantSaid compares a report with a job's account.
func wantSaid(t *testing.T, n *reporter.Node, said *opsSaid) {
	t.Helper()
	ops := n.Operations
	if read, lost := lostAndFound(n); said.Datagrams > 0 && read+lost != said.Datagrams {
		t.Errorf("%d datagrams read and %d lost, want %d together", read, lost, said.Datagrams)
	}
	dropped := ops.Dropped
	dropped.Ignored = 0 // telemetry of a client
	if dropped != (aggregate.Dropped{}) || len(ops.Examples) > 0 {
		t.Errorf("dropped %+v, examples %v; want none", ops.Dropped, ops.Examples)
	}
	if !maps.Equal(ops.Counters, said.Counters) {
		t.Errorf("counters %v, want %v as the job sent", ops.Counters, said.Counters)
	}
	if len(ops.Gauges) != len(said.Gauges) || len(ops.Sets) != len(said.Sets) ||
		len(ops.Times) != len(said.Times) || len(ops.Values) != len(said.Values) {
		t.Errorf("operations %+v, want as many as the job sent: %+v", ops, said)
	}
	for name, last := range said.Gauges {
		if g := ops.Gauges[name]; g.Last != last {
			t.Errorf("gauge %s is %+v, want %v last", name, g, last)
		}
	}
	for name, members := range said.Sets {
		if s := ops.Sets[name]; s.Count != members || s.AtLeast {
			t.Errorf("set %s is %+v, want %d members exactly", name, s, members)
		}
	}
	for name, sent := range said.Times {
		got := ops.Times[name]
		wantNumbers(t, name, sent, got.Count, got.Avg, got.Min, got.Max, got.Last, got.P90)
	}
	for name, sent := range said.Values {
		got := ops.Values[name]
		wantNumbers(t, name, sent, got.Count, &got.Avg, got.Min, got.Max, got.Last, got.P90)
	}

	var marks []string
	for _, m := range n.Marks {
		marks = append(marks, m.Text)
	}
	if !slices.Equal(marks, said.Events) {
		t.Errorf("marks %q, want the events that the job sent, %q", marks, said.Events)
	}
}

// wantNumbers compares the statistics of a series with the values that were sent. Quantiles are within 1 %.
func wantNumbers(t *testing.T, name string, sent []float64, count float64, avg, low, high, last, p90 *float64) {
	t.Helper()
	if avg == nil || low == nil || high == nil || last == nil || p90 == nil {
		t.Errorf("%s lacks the average, minimum, maximum, last or P90 of %v values sent", name, len(sent))
		return
	}
	sum := 0.0
	for _, v := range sent {
		sum += v
	}
	want := sum / float64(len(sent))
	if count != float64(len(sent)) || math.Abs(*avg-want) > 1e-9*math.Abs(want) ||
		*low != slices.Min(sent) || *high != slices.Max(sent) || *last != sent[len(sent)-1] {
		t.Errorf("%s: count %v, avg %v, %v to %v, last %v; want %d, avg %v, %v to %v, last %v",
			name, count, *avg, *low, *high, *last, len(sent), want, slices.Min(sent), slices.Max(sent),
			sent[len(sent)-1])
	}
	slices.Sort(sent)
	exact := sent[int(math.Ceil(0.9*float64(len(sent))))-1]
	if math.Abs(*p90-exact) > 0.0101*math.Abs(exact) {
		t.Errorf("%s: P90 %v, want %v to 1.01 %%", name, *p90, exact)
	}
}

// opsApp is a program for gunicorn.
const opsApp = `
import time
def app(environ, start_response):
    time.sleep(0.002)
    found = environ['PATH_INFO'] != '/none'
    start_response('200 OK' if found else '404 Not Found', [('Content-Length', '1')])
    return [b'x']
`

// The documents' programs send operations without a refused record.
func TestDocs_OperationsProgramsSendValidRecords(t *testing.T) {
	t.Parallel()
	python := opsPython(t)
	for _, b := range fenced(t, operationsDoc, "python job") {
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			t.Parallel()
			n, o := opsRun(t, python, "-c", b.text)
			ops := n.Operations
			if o.Out != "" || o.Err != "" || len(ops.Times) != 1 || len(ops.Counters) != 1 ||
				ops.Dropped != (aggregate.Dropped{}) {
				t.Errorf("operations %+v, outcome %+v; want one time, one counter, nothing dropped and no output",
					ops, o)
			}
			clitest.RunCommand(t, clitest.Command(t, python, "-c", b.text)).Want(t, 0) // without perfagent
		})
	}
}
