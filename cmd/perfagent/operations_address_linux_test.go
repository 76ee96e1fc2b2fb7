package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// opsPorts returns the first of two consecutive UDP ports that are free on 127.0.0.1. Both are outside the kernel's
// range for clients. The TCP ports of the same numbers are held until the test ends to reserve them, just as
// testenv.FreePort holds the UDP port.
func opsPorts(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		if reserve(t, port) && reserve(t, port+1) {
			return port
		}
	}
	t.Fatal("no two consecutive ports are free, want a port for --ops and the next one")
	return 0
}

// reserve holds the given TCP port until the test ends, and reports whether the UDP port of the same number is free.
func reserve(t testing.TB, port int) bool {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", port)
	held, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	t.Cleanup(func() { held.Close() })
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	udp.Close()
	return true
}

// opsMissing returns why operations are missing, for reasons with the given code.
func opsMissing(n *reporter.Node, code reporter.Code) []string {
	var why []string
	for _, m := range n.Missing {
		if m.What == "operations" && m.Code == code {
			why = append(why, m.Why)
		}
	}
	return why
}

// opsVariables is a job that prints its environment variables for operations.
var opsVariables = []string{"sh", "-c", `env | grep -E '^(PERFAGENT_OPS_|STATSD_|DD_)' | sort; exit 7`}

// A port in use is reported in one line on stderr and in the report. The job runs normally.
func TestOperations_PortInUseIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	taken := testenv.FreePort(t) // its UDP port is held
	o := mustRun(t, 7, append([]string{"run", "--summary", "never", "--ops", fmt.Sprint(taken), "--"}, opsVariables...)...)
	o.WantLine(t, "--ops "+fmt.Sprint(taken), "address already in use")
	n := o.Report(t).Nodes["0"]
	why := opsMissing(n, reporter.OperationsNotReceived)
	if len(why) != 1 || !strings.Contains(why[0], "address already in use") {
		t.Errorf("missing %v, want one entry with \"address already in use\"", n.Missing)
	}
	if o.Out != "" || n.Operations == nil || len(n.Operations.Sources) > 0 {
		t.Errorf("stdout %q, operations %+v; want no variables and no sources", o.Out, n.Operations)
	}
}

// perfagent opens the two requested ports, and passes them to the job.
func TestOperations_ReceivesOnRequestedPorts(t *testing.T) {
	t.Parallel()
	bash := testenv.NeedsTool(t, "bash", "your system's package of it")
	for host, warns := range map[string]bool{"": false, "localhost:": false, "127.0.0.1:": false, "0.0.0.0:": true} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			port := opsPorts(t)
			o := mustRun(t, 0, "run", "--summary", "never", "--ops", host+strconv.Itoa(port), "--", bash, "-c",
				`env | grep -E '^(PERFAGENT_OPS_|STATSD_|DD_)' | sort
				echo "a:-2|g" > /dev/udp/127.0.0.1/`+strconv.Itoa(port)+`
				echo "b:-2|g" > /dev/udp/127.0.0.1/`+strconv.Itoa(port+1))
			want := fmt.Sprintf("DD_DOGSTATSD_URL=udp://127.0.0.1:%[2]d\nPERFAGENT_OPS_ADDR=127.0.0.1:%[1]d\n"+
				"PERFAGENT_OPS_DOGSTATSD_ADDR=127.0.0.1:%[2]d\nPERFAGENT_OPS_HOST=127.0.0.1\nPERFAGENT_OPS_PORT=%[1]d\n"+
				"STATSD_HOST=127.0.0.1\nSTATSD_PORT=%[1]d\n", port, port+1)
			if o.Out != want {
				t.Errorf("environment of the job\n%swant\n%s", o.Out, want)
			}
			if warns {
				o.WantLine(t, "--ops 0.0.0.0:"+strconv.Itoa(port), "anyone who can reach")
			} else if o.Err != "" {
				t.Errorf("stderr %q, want none: a loopback address needs no warning", o.Err)
			}
			if n := o.Report(t).Nodes["0"]; n.Operations.Gauges["a"].Last != -2 || n.Operations.Gauges["b"].Last != -2 {
				t.Errorf("gauges %+v, want -2 as the last value of a and b", n.Operations.Gauges)
			}
		})
	}
}

// The user's variables stay unchanged, and the report names the servers to which they send the job's operations.
func TestOperations_KeepsVariablesOfUser(t *testing.T) {
	t.Parallel()
	const statsd, dogstatsd = "STATSD_HOST=graphite.example.org", "DD_AGENT_HOST=agent.example.org"
	cmd := clitest.Perfagent(t, append([]string{"run", "--summary", "never", "--"}, opsVariables...)...)
	o := mustExit(t, 7, with(cmd, "PERFAGENT_OPS=on", statsd, dogstatsd))
	if !strings.Contains(o.Out, "PERFAGENT_OPS_ADDR=127.0.0.1:") {
		t.Errorf("the job's environment lacks the address of perfagent:\n%s", o.Out)
	}
	why := opsMissing(o.Report(t).Nodes["0"], reporter.OperationsElsewhere)
	if len(why) != 2 || !strings.Contains(why[0], statsd) || !strings.Contains(why[1], dogstatsd) {
		t.Errorf("reasons %q, want one for STATSD_HOST and one for DD_AGENT_HOST", why)
	}
}

// If operations are off, the job gets no variables for them, and the report has no keys.
func TestOperations_OffAddsNoVariablesAndNoKeys(t *testing.T) {
	t.Parallel()
	plain := clitest.RunCommand(t, clitest.Command(t, "sh", "-c", "env | sort"))
	for _, flags := range [][]string{nil, {"--ops", "off"}} {
		o := mustRun(t, 0, slices.Concat([]string{"run"}, flags, []string{"--summary", "never", "--", "sh", "-c", "env | sort"})...)
		if got, want := withoutDirectories(o.Out), withoutDirectories(plain.Out); !slices.Equal(got, want) {
			t.Errorf("%v: environment of the job\n%q\nwant as without perfagent\n%q", flags, got, want)
		}
		text := clitest.Read(t, theReport(t, o))
		if strings.Contains(text, `"operations"`) || strings.Contains(text, `"transfers"`) {
			t.Errorf("%v: want nothing about operations or transfers in the report:\n%s", flags, text)
		}
	}
}

// withoutDirectories returns the lines of an environment, except the lines that depend on the test or the run.
func withoutDirectories(environ string) []string {
	return slices.DeleteFunc(strings.Split(environ, "\n"), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains([]string{"PERFAGENT_MARKS", "PERFAGENT_NODE", "PERFAGENT_PARENT", "PERFAGENT_RUN_ID", "TMPDIR", "PWD", "_"}, name)
	})
}

// A sidecar receives operations at the address in --ops.
func TestOperations_SidecarReceivesAtAddressInFlag(t *testing.T) {
	t.Parallel()
	address := "127.0.0.1:" + strconv.Itoa(opsPorts(t))
	l, path := beside(t, nil, "--ops", address)
	conn, err := net.Dial("udp", address)
	check.Must(t, err)
	defer conn.Close()
	for range 100 {
		_, err := conn.Write([]byte("rows:1|c\nget:2|ms"))
		check.Must(t, err)
	}

	l.Signal(syscall.SIGTERM)
	mustEnd(l, 0)
	n := reportertest.ReadFile(t, path).Nodes["0"]
	read, lost := lostAndFound(n)
	if ops := n.Operations; ops.Counters["rows"] != 100 || ops.Times["get"].Count != 100 || read != 100 || lost != 0 {
		t.Errorf("operations %+v, %d datagrams read, %d lost; want 100 rows, 100 of get, 100, 0", ops, read, lost)
	}
}

// A DogStatsD event becomes a mark at its timestamp or, without a timestamp, at the time of its arrival.
func TestOperations_EventsAreMarks(t *testing.T) {
	t.Parallel()
	n, o := opsRun(t, opsPython(t), "-c", `
import glob, os, time
from datadog import initialize, statsd
initialize(statsd_disable_buffering=True)
def marked(text):
    while not any('"' + text in open(path).read() for path in glob.glob('perfagent-out/*/*.jsonl')): time.sleep(0.01)
    print(time.time())
print(time.time())
statsd.event('first', 'text')
marked('first')
open(os.environ['PERFAGENT_MARKS'], 'a').write('second\n')
marked('second')
statsd.event('third\nof two lines', 'more text', tags=['a:b'])
marked('third')
`)
	var texts []string
	times := strings.Fields(o.Out) // each mark is between two of them
	for i, m := range n.Marks[:min(3, len(n.Marks))] {
		texts = append(texts, m.Text)
		begin, end := check.Value(strconv.ParseFloat(times[i], 64))(t), check.Value(strconv.ParseFloat(times[i+1], 64))(t)
		if m.Timestamp < begin-0.01 || m.Timestamp > end+0.01 {
			t.Errorf("mark %q is at %f, want %f to %f", m.Text, m.Timestamp, begin, end)
		}
	}
	if !slices.Equal(texts, []string{"first", "second", `third\nof two lines`}) {
		t.Errorf("marks %q, want \"first\", \"second\" and the one with two lines; operations %+v", texts, n.Operations)
	}
}
