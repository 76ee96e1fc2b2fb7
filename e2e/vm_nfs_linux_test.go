//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// vmNFSModules returns the names of the kernel modules of the NFS server and client.
func vmNFSModules() []string {
	return []string{"net/sunrpc/sunrpc", "fs/nfs_common/grace", "fs/lockd/lockd", "fs/nfs_common/nfs_acl", "net/sunrpc/auth_gss/auth_rpcgss",
		"fs/nfsd/nfsd", "fs/netfs/netfs", "fs/fscache/fscache", "fs/nfs/nfs", "net/dns_resolver/dns_resolver", "fs/nfs/nfsv4"}
}

// vmUseNFS is a script that uses the mount after the start of perfagent. Afterwards, the server hangs for 20 s.
const vmUseNFS = "busybox sleep 1; /init usenfs 4 100 && /init hangnfs 20 && busybox sleep 1"

// vmNFS checks that a real mount with two mount points is counted once, with all bytes and calls. Sampling must
// continue while the server hangs, although the usage of this file system is requested.
func vmNFS(t *testing.T, r *vmResult) {
	if r.Code != 0 {
		t.Fatalf("exit code %d, want 0", r.Code)
	}
	m := r.node.Metrics
	if m["total_nfs_read_mb"] != 4 || m["total_nfs_write_mb"] != 4 {
		t.Errorf("%v MiB read, %v MiB written, want 4 each", m["total_nfs_read_mb"], m["total_nfs_write_mb"])
	}
	if len(r.node.Mounts) != 1 {
		t.Fatalf("mounts %+v, want 1", r.node.Mounts)
	}
	mount := r.node.Mounts[0]
	if mount.Type != "nfs4" || mount.Source != "127.0.0.1:/" || !slices.Equal(mount.MountedOn, []string{"/mnt/nfs", "/mnt/bound"}) {
		t.Errorf("mount %+v, want 127.0.0.1:/ as nfs4 on /mnt/nfs and /mnt/bound", mount)
	}
	calls := map[string]float64{}
	for _, op := range mount.Operations {
		calls[op.Name] = op.Calls
	}
	if calls["LOOKUP"] < 101 || calls["LOOKUP"] > 110 || calls["WRITE"] < 4 || calls["READ"] < 4 || mount.ExecuteSeconds < 20 {
		t.Errorf("calls %v in %v s; want 101 to 110 LOOKUP, at least 4 READ and 4 WRITE, at least 20 s",
			calls, mount.ExecuteSeconds)
	}
	if gap := r.node.Sampling.LongestGapSeconds; gap >= 18 {
		t.Errorf("longest gap = %v s, want less than 18 s although the server hung for 20 s", gap)
	}
	for _, source := range []string{"nfs", "lustre", "energy", "thermal"} {
		if i := slices.IndexFunc(r.node.Missing, func(m reporter.Missing) bool { return m.What == source }); i >= 0 {
			t.Errorf("source %s is missing: %+v", source, r.node.Missing[i])
		}
	}
}
