package slurmtest

import (
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// NeedGroups skips the test if Slurm cannot use control groups v1 on this machine.
func NeedGroups(t *testing.T) {
	t.Helper()
	testenv.NeedsRoot(t, "for Slurm's control groups")
	for _, file := range []string{"memory/memory.limit_in_bytes", "cpuacct/cpuacct.usage", "freezer/cgroup.procs"} {
		path := "/sys/fs/cgroup/" + file
		if unix.Access(filepath.Dir(path), unix.W_OK) != nil || !clitest.Exists(path) {
			t.Skipf("Slurm's limits are tested with control groups v1, but %s is missing or read-only: "+
				"boot with systemd.unified_cgroup_hierarchy=0", path)
		}
	}
}

// Configure writes munge's key (in dir/munge, which must exist), cgroup.conf, and slurm.conf with the common lines and
// more. It returns the environment for the programs.
func (p Programs) Configure(t *testing.T, dir, more string) []string {
	t.Helper()
	key := make([]byte, 128)
	_, _ = rand.Read(key) // Read never fails
	clitest.Write(t, filepath.Join(dir, "munge/key"), string(key), 0o600)

	groups := cgroupConf
	if clitest.Exists("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes") {
		groups += swapConf
	}
	clitest.Write(t, filepath.Join(dir, "cgroup.conf"), groups, 0o644)

	text := strings.ReplaceAll(commonConf, "DIR", dir) + more
	if p.Plugins != "" {
		text += "PluginDir=" + p.Plugins + "\n"
	}
	conf := clitest.Write(t, filepath.Join(dir, "slurm.conf"), text, 0o644)
	return append(p.Env(), "SLURM_CONF="+conf)
}

// Munged returns the arguments of munged for the key from Configure, and the path of munged's socket.
func (p Programs) Munged(dir string) (args []string, socket string) {
	dir = filepath.Join(dir, "munge")
	socket = filepath.Join(dir, "socket")
	return []string{
		"--foreground", "--force", "--socket=" + socket, "--key-file=" + dir + "/key", "--pid-file=" + dir + "/pid",
		"--log-file=" + dir + "/log", "--seed-file=" + dir + "/seed",
	}, socket
}

const commonConf = `ClusterName=test
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool.%n
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd.%n.pid
SlurmctldLogFile=DIR/log/slurmctld
SlurmdLogFile=DIR/log/slurmd.%n
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
ReturnToService=2
SlurmctldTimeout=300
BatchStartTimeout=100
`

const cgroupConf = `CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainCores=no
ConstrainDevices=no
ConstrainRAMSpace=yes
`

// swapConf limits swap, which needs the kernel's swap accounting.
const swapConf = `ConstrainSwapSpace=yes
AllowedSwapSpace=0
`
