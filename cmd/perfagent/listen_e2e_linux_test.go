//go:build e2e

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/agent/exporter"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

func TestE2E_Listen_PromtoolAcceptsTheMetrics(t *testing.T) {
	t.Parallel()
	listenTool(t, "promtool")
	l := listenRun(t, append([]string{"--interval", "100ms"}, holdOpen...)...)
	l.untilSampled(2)
	_, _, text := l.get("/metrics")
	for _, m := range exporter.Metrics() {
		if listenEverywhere(m.Name) && !strings.Contains(text, "\n"+m.Name+"{") {
			t.Errorf("/metrics lacks %s", m.Name)
		}
	}
	if out, err := promtoolCheck(t, text); err != nil || out != "" {
		t.Errorf("promtool rejects /metrics: %v\n%s\n%s", err, out, text)
	}
	// Check that promtool detects a violation.
	if out, err := promtoolCheck(t, strings.ReplaceAll(text, "perfagent_samples_total", "perfagent_samples")); err == nil {
		t.Errorf("promtool accepts a counter without _total, want an error: %s", out)
	}
	l.finish().Want(t, 7)
}

// Prometheus returns at least the CPU seconds that the job measured, less 0.1 s and 3 %, because the kernel samples the
// values in /proc/stat. The metric includes other processes, so the total lies between the growth of /proc/stat just
// inside and just outside the scrapes, within two ticks.
func TestE2E_Listen_PrometheusReturnsCPUSeconds(t *testing.T) {
	t.Parallel()
	cmd := clitest.AsHelper(clitest.Perfagent(t, "run", "--listen", "0", "--interval", "250ms", "--run-id", "prom-1", "--"), "burner")
	before := listenSpent(t, 0, 1, 2)
	l := listenStart(t, cmd)
	l.PID("ready")
	inside := listenSpent(t, 0, 1, 2) // the baseline was taken before the job
	p := listenPrometheus(t, l.address())
	const busy = `sum(perfagent_cpu_seconds_total{mode=~"user|nice|system",run_id="prom-1",node="0"})`
	var idle float64
	clitest.WaitUntil(t, "Prometheus has scraped", func() bool {
		var there bool
		idle, there = p.query(busy)
		return there
	})
	from := listenSpent(t, 0, 1, 2)
	fmt.Fprintln(l.hold.(*os.File))
	burnt, err := strconv.ParseFloat(l.Field("burnt"), 64)
	check.Must(t, err)
	now := listenSpent(t, 0, 1, 2)
	least := now - inside
	samples, _ := l.series("perfagent_samples_total")
	clitest.WaitUntil(t, "Prometheus has scraped a later sample", func() bool {
		v, _ := p.query("perfagent_samples_total")
		return v > samples
	})
	var after float64
	clitest.WaitUntil(t, "Prometheus has the CPU seconds", func() (there bool) { after, there = p.query(busy); return there })
	most := listenSpent(t, 0, 1, 2) - before
	t.Logf("Prometheus: %.2f s, then %.2f s; the job burned %.2f s, the node %.2f to %.2f s", idle, after, burnt, least, most)
	// While a virtual machine is paused, the clocks of its processes advance, but its ticks do not.
	if after-idle < min(burnt*0.97-0.1, now-from-0.02) {
		t.Errorf("Prometheus counts %.2f s of CPU time, want about the %.2f s that the job burned", after-idle, burnt)
	}
	if after < least-0.02 || after > most+0.02 {
		t.Errorf("Prometheus counts %.2f s of CPU time, want %.2f to %.2f s, as in /proc/stat", after, least, most)
	}
	clitest.WaitUntil(t, "perfagent is up in Prometheus", func() bool { up, _ := p.query(`up{job="perfagent"}`); return up == 1 })
	for _, m := range exporter.Metrics() {
		if !listenEverywhere(m.Name) {
			continue
		}
		clitest.WaitUntil(t, "Prometheus has "+m.Name, func() bool { n, _ := p.query("count(" + m.Name + `{run_id="prom-1",node="0"})`); return n >= 1 })
	}
	l.finish().Want(t, 0)
}

// With hundreds of misbehaving clients, samples are taken on time, a good client receives responses, and the end of the
// job is not delayed.
func TestE2E_Listen_BadClientsDoNotDelayJobOrGoodClients(t *testing.T) {
	t.Parallel()
	for try := 1; ; try++ {
		harm := listenBesieged(t)
		switch {
		case harm == "":
			return
		case try == 5: // real harm would occur in every try
			t.Fatal(harm)
		}
		t.Logf("try %d: %s", try, harm)
	}
}

// Every block that is fenced as "sh curl" runs without an error in a new directory, with a free port in place of the
// documented port.
func TestE2E_Docs_ListenCommandsRun(t *testing.T) {
	t.Parallel()
	testenv.NeedsTool(t, "curl", "apt-get install curl")
	path := filepath.Dir(clitest.Binary(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	for _, b := range slices.Concat(fenced(t, "../../docs/listen.md", "sh curl"), fenced(t, "../../docs/site.md", "sh curl")) {
		dir, home := t.TempDir(), t.TempDir()
		runBlock(t, b.line, patientCurl+strings.ReplaceAll(b.text, "9123", freePort(t)), dir, "PATH="+path, "HOME="+home, "TMPDIR="+home)
	}
}

// promtool accepts the configuration in docs/listen.md.
func TestE2E_Docs_ListenPrometheusConfigurationIsValid(t *testing.T) {
	t.Parallel()
	promtool := listenTool(t, "promtool")
	config := fenced(t, "../../docs/listen.md", "yaml")[0].text
	cmd := clitest.Command(t, promtool, "check", "config", "--lint-fatal", "prometheus.yml")
	clitest.Write(t, filepath.Join(cmd.Dir, "prometheus.yml"), config, 0o644)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool rejects the configuration of docs/listen.md: %v\n%s", err, out)
	}
	if !strings.Contains(config, "static_configs") {
		t.Errorf("the configuration of docs/listen.md has no static_configs:\n%s", config)
	}
}

// The operations of a job are served while the job runs, even if their names contain special characters.
func TestE2E_Listen_ServesOperationsWhileJobRuns(t *testing.T) {
	t.Parallel()
	l := listenRun(t, "--interval", "100ms", "--ops", "on", "--", testenv.NeedsTool(t, "bash", "apt-get install bash"), "-c", `exec 9> /dev/udp/$PERFAGENT_OPS_HOST/$PERFAGENT_OPS_PORT
		for i in 1 2 3; do echo '{"op":"get","ms":20,"tags":{"a":"\"\\\n</script>"}}' >&9; echo '{"op":"<b>","ok":false}' >&9; done
		printf 'rows:-2.5|c\nqueue:7|g\nnonsense\n' >&9
		echo '{"transfer":"nixl","xfer_us":1000,"bytes":1048576}' >&9; echo '{"transfer":"nixl","failed":"notification"}' >&9
		read line; exit 7`)
	for name, want := range map[string]float64{
		"perfagent_operation_seconds_count": 0, "perfagent_operation_errors_total{operation=_b_}": 3,
		"perfagent_job_value{series=rows}": -2.5, "perfagent_job_value{series=queue}": 7,
		"perfagent_transfer_seconds_sum": 0.001, "perfagent_transfer_bytes_total": 1048576,
		"perfagent_transfer_failures_total{kind=notification}": 1,
		"perfagent_intake_events_total{source=statsd}":         10, "perfagent_intake_dropped_total{reason=malformed}": 1,
	} {
		clitest.WaitUntil(t, fmt.Sprintf("%s is %v", name, want), func() bool { v, there := l.series(name); return there && v == want })
	}

	_, _, text := l.get("/metrics")
	if out, err := promtoolCheck(t, text); err != nil || out != "" {
		t.Errorf("promtool rejects /metrics: %v\n%s\n%s", err, out, text)
	}
	l.finish().Want(t, 7)
}
