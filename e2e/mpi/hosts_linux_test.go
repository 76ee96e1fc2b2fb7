//go:build e2e

package mpi

import (
	"os"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/hosttest"
	"github.com/perfagent/perfagent/internal/mpitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// network is the prefix of all addresses. The network is isolated, so it cannot conflict with other networks.
const network = "10.99.0."

// newHosts returns a login host and two hosts for ranks. All hosts share the file system.
func newHosts(t *testing.T) []*hosttest.Host {
	t.Helper()
	testenv.NeedsRoot(t, "to create namespaces")
	for _, tool := range []string{"ip", "nsenter", "unshare"} {
		testenv.NeedsTool(t, tool, "apt-get install iproute2 util-linux")
	}

	names := clitest.Write(t, t.TempDir()+"/hosts", strings.ReplaceAll(
		"127.0.0.1 localhost\nNET1 login\nNET11 node1\nNET12 node2\n", "NET", network), 0o644)
	var hosts []*hosttest.Host
	for _, h := range [][2]string{{"login", "1"}, {"node1", "11"}, {"node2", "12"}} {
		hosts = append(hosts, hosttest.New(t, h[0], network+h[1], names, nil))
	}
	hosts[0].Connect(t, hosts[1:])

	return hosts
}

// onHosts runs a command on the first host, in a copy of a directory of the repository.
func onHosts(
	t *testing.T, hosts []*hosttest.Host, e mpitest.Engine, from string, words ...string,
) (o clitest.Outcome, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(testenv.Repository(t, from))); err != nil {
		t.Fatal(err)
	}
	cmd := hosts[0].Command(t, dir, words[0], words[1:]...)
	cmd.Env = e.Environ(append(quiet, "HYDRA_LAUNCHER=ssh", "OMPI_MCA_plm_rsh_agent="+e.Bin+"/ssh",
		"OMPI_MCA_oob_tcp_if_include="+network+"0/24", "OMPI_MCA_btl_tcp_if_include="+network+"0/24")...)

	return clitest.RunCommand(t, cmd), dir
}
