package intake

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// python returns the path of a Python interpreter with the client libraries.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PERFAGENT_TEST_PYTHON")
	if path == "" || exec.Command(path, "-c", "import statsd, datadog, prometheus_client").Run() != nil {
		testenv.SkipOrFail(t, "needs Python with statsd, datadog and prometheus_client: make test installs them, PERFAGENT_TEST_PYTHON names it")
	}
	return path
}

// job runs a program with only PATH and the variables of in as its environment.
func job(t *testing.T, in *Intake, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, _ = in.Environ([]string{"PATH=" + os.Getenv("PATH")})
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("job: error %v, output %q; want no error and no output", err, out)
	}
}

// statsdJob uses the package statsd, and no variable of perfagent.
const statsdJob = `
from statsd.defaults.env import statsd
for i in range(1000):
    statsd.incr('requests')
    statsd.timing('request.duration', i % 10 + 0.5)
statsd.decr('requests', 3)
statsd.gauge('queue', 7)
statsd.gauge('queue', -7)
statsd.gauge('queue', 2, delta=True)
for user in ['joe', 'ann', 'joe']:
    statsd.set('users', user)
with statsd.pipeline() as p:
    for i in range(100):
        p.incr('piped', 2)
    p.timing('piped.duration', 4)
`

func TestClients_StatsDIsReceived(t *testing.T) {
	in := started(t, "on")
	job(t, in, python(t), "-c", statsdJob)
	ops := closed(t, in)
	d := ops.Times["request.duration"]
	if ops.Counters["requests"] != 997 || ops.Counters["piped"] != 200 || d.Count != 1000 || math.Abs(*d.Avg-5) > 1e-12 || *d.Min != 0.5 || *d.Max != 9.5 ||
		ops.Gauges["queue"].Last != -5 || ops.Gauges["queue"].Max != 7 || ops.Sets["users"] != (aggregate.Set{Count: 2}) ||
		ops.Times["piped.duration"].Count != 1 || ops.Dropped != (aggregate.Dropped{}) {
		t.Errorf("received %+v, want all metrics of statsdJob and nothing dropped", ops)
	}
}

// datadogJob uses the package datadog, and no variable of perfagent.
const datadogJob = `
from datadog import initialize, statsd
initialize(statsd_disable_buffering=%s)
for i in range(500):
    statsd.increment('requests', tags=['route:/a', 'env:prod'])
    statsd.histogram('size', i)
    statsd.distribution('load', -i)
    statsd.timing('duration', 2)
statsd.gauge('queue', -3)
statsd.set('users', 'joe')
with statsd.timed('timed', use_ms=True):
    pass
statsd.event('deployed', 'version 7')
statsd.service_check('fine', 0)
statsd.gauge_with_timestamp('then', 5, 1795357692)
statsd.flush()
statsd.wait_for_pending()
`

func TestClients_DogStatsDIsReceived(t *testing.T) {
	for _, unbuffered := range []string{"True", "False"} {
		t.Run("unbuffered "+unbuffered, func(t *testing.T) {
			in := started(t, "on")
			job(t, in, python(t), "-c", fmt.Sprintf(datadogJob, unbuffered))
			ops := closed(t, in)
			d := ops.Dropped
			d.Ignored = 0 // the client's telemetry and the service check
			if ops.Counters[`requests{env="prod",route="/a"}`] != 500 || ops.Values["size"].Count != 500 || ops.Values["size"].Avg != 249.5 ||
				ops.Values["load"].Avg != -249.5 || ops.Times["duration"].Total != 1000 || ops.Gauges["queue"].Last != -3 ||
				ops.Gauges["then"].Last != 5 || ops.Sets["users"].Count != 1 || ops.Times["timed"].Count != 1 || ops.Dropped.Ignored < 1 || d != (aggregate.Dropped{}) {
				t.Errorf("received %+v, want all metrics of datadogJob and only ignored lines dropped", ops)
			}
			if got := in.Marks(); len(got.Lines) != 1 || got.Lines[0].Text != "deployed" {
				t.Errorf("marks = %v, want one with the text deployed", got.Lines)
			}
		})
	}
}

func TestClients_DogStatsDOverUnixSocketIsReceived(t *testing.T) {
	in := started(t, "unix:"+t.TempDir()+"/s")
	job(t, in, python(t), "-c", "from datadog import statsd\nstatsd.disable_buffering = True\nfor i in range(5): statsd.increment('a'); import time; time.sleep(0.02)\n")
	if ops := closed(t, in); ops.Counters["a"] != 5 {
		t.Errorf("received %+v, want counter a 5", ops)
	}
}

func TestClients_BashIsReceived(t *testing.T) {
	bash := testenv.NeedsTool(t, "bash", "your system's package of it")
	in := started(t, "on")
	job(t, in, bash, "-c", `for i in 1 2 3; do echo "built:1|c" > /dev/udp/$PERFAGENT_OPS_HOST/$PERFAGENT_OPS_PORT; done
printf '{"op":"link","s":0.25,"ok":true}\n{"attribute":"model","value":"m7"}' > /dev/udp/${PERFAGENT_OPS_ADDR/:/\/}`)
	ops := closed(t, in)
	if ops.Counters["built"] != 3 || *ops.Times["link"].Avg != 250 || ops.Attributes["model"] != "m7" {
		t.Errorf("received %+v, want counter built 3, link 250 ms, attribute model m7", ops)
	}
}

// prometheusJob is a server of prometheus_client with vLLM's NIXL metrics for five transfers.
const prometheusJob = `
import sys, time
from prometheus_client import Counter, Gauge, Histogram, Summary, start_http_server
xfer = Histogram('vllm:nixl_xfer_time_seconds', 'x', ['model_name', 'engine'], buckets=[0.005, 0.01, 0.025, 0.05])
post = Histogram('vllm:nixl_post_time_seconds', 'x', ['model_name', 'engine'], buckets=[0.001, 0.005, 0.01])
sent = Histogram('vllm:nixl_bytes_transferred', 'x', ['model_name', 'engine'], buckets=[2.0**i for i in range(11, 34, 2)])
desc = Histogram('vllm:nixl_num_descriptors', 'x', ['model_name', 'engine'], buckets=[10, 20, 30, 50])
failed = Counter('vllm:nixl_num_failed_transfers', 'x', ['model_name', 'engine'])
for i in range(5):
    for metric, v in (xfer, 0.008), (post, 0.002), (sent, 2**20), (desc, 16):
        metric.labels('m', '0').observe(v)
failed.labels('m', '0').inc(2)
Gauge('queue', 'x').set(7)
Summary('took_seconds', 'x').observe(0.5)
start_http_server(int(sys.argv[1]), addr='127.0.0.1')
print('ready', flush=True)
sys.stdin.read()
`

func TestClients_PrometheusIsScraped(t *testing.T) {
	interpreter, port := python(t), fmt.Sprint(testenv.FreePort(t))
	in := scraping(t, time.Hour, "http://127.0.0.1:"+port+"/metrics")
	in.Start(time.Now())
	wait(t, in, "first scrape", scrapes(1)) // the server does not run yet

	cmd := exec.Command(interpreter, "-c", prometheusJob, port)
	cmd.Stderr = os.Stderr
	input := check.Value(cmd.StdinPipe())(t)
	output := check.Value(cmd.StdoutPipe())(t)
	check.Must(t, cmd.Start())
	defer cmd.Wait()
	defer input.Close()
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the server printed %q (%v), want ready", line, err)
	}
	ops := wait(t, in, "metrics", func(ops aggregate.Operations) bool {
		in.ScrapeNow()
		return ops.Gauges["queue"].Count > 2
	})

	n := in.CopyAggregator().Transfers()["nixl"]
	if n.Summary.Transfers != 5 || n.Summary.AvgXfer != 8 || n.Summary.AvgMB != 1 || n.Summary.Throughput != 125 || n.Summary.AvgDescriptors != 16 ||
		n.Summary.P90Xfer != 9.5 || n.FailedTransfers != 2 || n.Source != "scrape" {
		t.Errorf("transfers = %+v, want 5, mean 8 ms and 1 MiB, 125 MiB/s, 16 descriptors, P90 9.5 ms, 2 failed, source scrape",
			n)
	}
	if took := ops.Times["took_seconds"]; took.Count != 1 || *took.Avg != 500 || len(ops.Times) != 1 {
		t.Errorf("scraped %+v, want only one time, took_seconds, of 500 ms", ops)
	}
	for name := range ops.Gauges {
		if strings.HasPrefix(name, "python_") || strings.HasSuffix(name, "_created") {
			t.Errorf("gauge %s is reported, want no metrics about the server program itself", name)
		}
	}
}
