package diagnosis

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// For any content of a journal, the kernel's log or a sender's name, there is a verdict that can be encoded and shown.
func FuzzVerdict(f *testing.F) {
	f.Add([]byte(`{"oom_kills":1,"host_oom_kills":1e300,"memory_home":"/a","victims":[{"process":"x\u001b[31m","pid":4242,"group":"/a/b"}]}`), 137, "SIGKILL", "timeout", 7, 3.0, 0.0)
	f.Add([]byte(`{"signals":[{"signal":"SIGTERM","pid":-1,"process":"\n"}],"job_stall":{"memory_some":1e308}}`), -1, "", "", 0, -1.0, 1e300)
	f.Add([]byte(`{"stop":{"rule":"a\u001b > 1","key":"no_key","value":1e308,"for_seconds":-1,"signal":"\n","at":"2026-11-20T12:00:00Z","killed":true},"oom_kills":1}`), 1, "SIGKILL", "", 0, 1.0, 1.0)
	f.Fuzz(func(t *testing.T, account []byte, code int, signal, process string, pid int, seconds, free float64) {
		for _, known := range []bool{true, false} {
			rec := collector.NewRecording(host.Instant{Wall: reportertest.RunStart}, time.Second, 10)
			_ = json.Unmarshal(account, &rec.Account)
			_ = json.Unmarshal(account, &rec.GPUs)
			run := reporter.Run{Command: []string{process}, WallSeconds: seconds, Incomplete: "cut off"}
			in := Input{Input: reporter.Input{Run: run, Recording: rec}, Exit: ExitContext{
				Signals: []collector.Signal{{Signal: "SIGTERM", At: reportertest.RunStart, PID: pid, Process: process}},
				Space:   []host.FreeSpace{{Path: process, FreeMB: free, Inodes: series.Optional(seconds)}}}}
			if known {
				in.Job = &reporter.Job{PID: pid, ExitCode: &code, Signal: signal}
			}
			r := New(in)
			verdictWhole(t, r.Nodes["0"].Verdict)
			if _, err := reporter.Encode(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}
