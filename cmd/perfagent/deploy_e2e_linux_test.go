//go:build e2e

package main

import (
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// Every query of the dashboards returns data from a real Prometheus that has scraped a run. The run for the GPU
// dashboard uses a fake nvidia-smi.
func TestE2E_Deploy_GrafanaHasData(t *testing.T) {
	t.Parallel()
	listenTool(t, "prometheus")
	for _, name := range []string{"perfagent.json", "perfagent-gpu.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queries := readDashboard(t, name).queries(t)
			if len(queries) < 8 {
				t.Fatalf("the dashboard has %d queries, want at least 8", len(queries))
			}

			cmd := clitest.Perfagent(t, append([]string{"run", "--listen", "127.0.0.1:0", "--interval", "200ms"}, holdOpen...)...)
			if name == "perfagent-gpu.json" {
				env, _ := withGPUs(t, smi)
				cmd = with(cmd, env...)
			}
			l := listenStart(t, cmd)
			p := listenPrometheus(t, l.address())
			for where, q := range queries {
				clitest.WaitUntil(t, where+": "+q, func() bool { n, there := p.query("count(" + q + ")"); return there && n >= 1 })
			}
			l.finish().Want(t, 7)
		})
	}
}
