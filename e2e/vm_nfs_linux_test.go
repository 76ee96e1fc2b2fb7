//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// vmNFSModules are the modules of the kernel's NFS server and client.
func vmNFSModules() []string {
	return []string{"net/sunrpc/sunrpc", "fs/nfs_common/grace", "fs/lockd/lockd", "fs/nfs_common/nfs_acl", "net/sunrpc/auth_gss/auth_rpcgss",
		"fs/nfsd/nfsd", "fs/netfs/netfs", "fs/fscache/fscache", "fs/nfs/nfs", "net/dns_resolver/dns_resolver", "fs/nfs/nfsv4"}
}

// vmUseNFS uses the mount after the start of perfagent and before its end. In between, the server hangs for 3 s.
const vmUseNFS = "busybox sleep 1; /init usenfs 4 100 && /init hangnfs 3 && busybox sleep 1"

// vmNFS checks that a real mount at two places counts once, with each byte and each call. Samples continue while its
// server hangs, although the usage of this file system is requested.
func vmNFS(t *testing.T, r *vmResult) {
	if r.Code != 0 {
		t.Fatalf("exit code %d, want 0", r.Code)
	}
	m := r.node.Metrics
	if m["total_nfs_read_mb"] != 4 || m["total_nfs_write_mb"] != 4 {
		t.Errorf("%v MiB read, %v written, want 4 each", m["total_nfs_read_mb"], m["total_nfs_write_mb"])
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
	if calls["LOOKUP"] < 101 || calls["LOOKUP"] > 110 || calls["WRITE"] < 4 || calls["READ"] < 4 || mount.ExecuteSeconds < 3 {
		t.Errorf("calls %v in %v s; want 101 to 110 of LOOKUP, 4 or more of READ and WRITE, 3 s or more",
			calls, mount.ExecuteSeconds)
	}
	if gap := r.node.Sampling.LongestGapSeconds; gap >= 2.5 {
		t.Errorf("longest gap %v s, want less than 2.5 although the server hung for 3 s", gap)
	}
	for _, source := range []string{"nfs", "lustre", "energy", "thermal"} {
		if i := slices.IndexFunc(r.node.Missing, func(m reporter.Missing) bool { return m.What == source }); i >= 0 {
			t.Errorf("missing %+v, want no entry for %s", r.node.Missing[i], source)
		}
	}
}
