//go:build e2e

package mpi

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/hosttest"
	"github.com/perfagent/perfagent/internal/mpitest"
)

// After a failure, Open MPI sends SIGTERM to the other ranks. It kills them after a second, or as soon as one of them
// has ended.
func TestOpenMPI_FailuresKeepExitCode(t *testing.T) {
	wantFailures(t, mpitest.OpenMPI(t), []failure{
		{how: "SIGSEGV", signal: "SIGSEGV", wrapped: 139},
		{how: "SIGKILL", signal: "SIGKILL", wrapped: 137},
		{how: "7", code: 7, wrapped: 7},
		{how: "finalize", code: 0, wrapped: 0},
	})
}

// After a failure, Hydra kills the other ranks immediately. If a rank exits with a nonzero code, mpiexec returns 9 with
// perfagent; without perfagent, it returns 9 or the code.
func TestMPICH_FailuresKeepExitCode(t *testing.T) {
	wantFailures(t, mpitest.MPICH(t), []failure{
		{how: "SIGSEGV", signal: "SIGSEGV", wrapped: 11},
		{how: "SIGKILL", signal: "SIGKILL", wrapped: 9},
		{how: "7", code: 7, wrapped: 9, chance: []int{1, 7, 9}},
		{how: "finalize", code: 0, wrapped: 0},
	})
}

// If another engine is also installed, programs use the requested engine.
func TestEngines_UseRequestedLibrary(t *testing.T) {
	mpich, openmpi := mpitest.MPICH(t), mpitest.OpenMPI(t)
	for _, c := range []struct {
		asked, other mpitest.Engine
		name         string
		library      string // library of the other engine
	}{{mpich, openmpi, "MPICH", "libmpi.so.40"}, {openmpi, mpich, "Open MPI", "libmpi.so.12"}} {
		decoy := t.TempDir()
		for _, dir := range c.other.Libraries() {
			if path := filepath.Join(dir, c.library); clitest.Exists(path) {
				if err := os.Symlink(path, filepath.Join(decoy, "libmpi.so")); err != nil {
					t.Fatal(err)
				}
			}
		}
		o := clitest.RunCommand(t, script(t, c.asked, `LD_LIBRARY_PATH="$LD_LIBRARY_PATH:`+decoy+
			`" python3 -c 'from mpi4py import MPI; print(MPI.Get_library_version())'`))
		if o.Want(t, 0); !strings.Contains(o.Out, c.name) {
			t.Errorf("engine of the program is not %s: %s", c.name, o.Out)
		}
	}
}

func TestMPICH_AbortKeepsExitCode(t *testing.T) { wantAbort(t, mpitest.MPICH(t)) }

func TestOpenMPI_DeliversSignalsOnce(t *testing.T) {
	wantSignalsOnce(t, mpitest.OpenMPI(t), syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGUSR1)
}

// mpiexec forwards USR1 and ALRM.
func TestMPICH_DeliversSignalsOnce(t *testing.T) {
	wantSignalsOnce(t, mpitest.MPICH(t), syscall.SIGUSR1, syscall.SIGUSR1)
}

func TestMPI_RunsOnTwoHosts(t *testing.T) {
	hosts := newHosts(t)
	for name, find := range map[string]func(*testing.T) mpitest.Engine{
		"openmpi": mpitest.OpenMPI, "mpich": mpitest.MPICH,
	} {
		t.Run(name, func(t *testing.T) {
			e := find(t)
			hosttest.WriteShell(t, e.Bin+"/ssh", hosts)
			wantOneHost(t, hosts, e, name)
			wantTwoHosts(t, hosts, e, name)
			wantTranscript(t, hosts, e, map[string]string{"openmpi": "Open MPI", "mpich": "MPICH and Intel MPI"}[name])
		})
	}
}
