//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// Monitor works with the interpreter as process 1 of a container without privileges.
func TestE2E_Monitor_WorksInContainers(t *testing.T) {
	t.Parallel()
	testenv.NeedsRoot(t, "to make namespaces and to drop privileges")
	unshare := testenv.NeedsTool(t, "unshare", "apt-get install util-linux")
	setpriv := testenv.NeedsTool(t, "setpriv", "apt-get install util-linux")
	powerless := []string{setpriv, "--bounding-set=-all", "--inh-caps=-all", "--securebits=+noroot", "--no-new-privs"}
	process1 := []string{unshare, "--pid", "--fork", "--mount-proc"}
	for name, wrap := range map[string][]string{
		"process 1": process1, "no capabilities": powerless, "both": append(slices.Clone(process1), powerless...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := moduleScript(t, wrap, `
import perfagent
with open("/proc/self/status") as status:
    print([line.split()[1] for line in status if line.startswith("CapEff")][0].strip("0"))
with perfagent.Monitor(interval=0.05):
    burn(0.2)
    if os.fork() == 0:
        burn(0.1)
        os._exit(0)
    os.wait()
    time.sleep(0.1)
`)
			cmd.Dir = clitest.OpenTemp(t)
			o := clitest.RunCommand(t, cmd)
			if has := o.Out != "\n"; has == slices.Contains(wrap, setpriv) {
				t.Errorf("%v: capabilities %q, want none only below setpriv", wrap, o.Out)
			}
			r := wantMonitored(t, o, 0.3)
			if kind := r.Nodes["0"].Job.MemoryKind; kind != "pss" && kind != "cgroup" {
				t.Errorf("memory kind %q, want pss or cgroup", kind)
			}
			if pid := r.Nodes["0"].Job.PID; slices.Contains(wrap, unshare) && pid != 1 {
				t.Errorf("process %d, want 1", pid)
			}
		})
	}
}

func TestE2E_Monitor_RecordsKernelThatRestarts(t *testing.T) {
	t.Parallel()
	environment := os.Getenv("PERFAGENT_TEST_JUPYTER")
	python := filepath.Join(environment, "bin/python")
	if environment == "" || !clitest.Exists(python) {
		testenv.SkipOrFail(t, "needs Python with ipykernel: make e2e installs it, PERFAGENT_TEST_JUPYTER names the environment")
	}
	for _, c := range []struct{ name, now string }{{"shut down", "False"}, {"killed", "True"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := withModule(t, clitest.Command(t, python, "-c", strings.Replace(jupyter, "NOW", c.now, 1)))
			cmd.Env = append(cmd.Env, "HOME="+cmd.Dir, "JUPYTER_PLATFORM_DIRS=1")
			o := mustExit(t, 0, cmd)
			first := filepath.Join(o.Dir, "perfagent-out/first/node-0.json")
			untilExists(t, first)
			r := reportertest.ReadFile(t, first)
			if n := r.Nodes["0"]; len(n.Phases) != 1 || n.Phases[0].Name != "cell" || n.Sampling.Samples < 4 {
				t.Errorf("phases %+v, sampling %+v; want the phase cell and at least 4 samples", n.Phases, n.Sampling)
			}
			if c.name == "killed" && exited(r) != 137 {
				t.Errorf("run %+v, want exit code 137", r.Run)
			}
			reportertest.ReadFile(t, filepath.Join(o.Dir, "perfagent-out/second/node-0.json"))
		})
	}
}
