package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReader_FollowsLustreMountsAndUnmounts(t *testing.T) {
	h := openOptional(t, "lustre-2.10")
	h.begin()
	const first = "lustrefs-ffff88105db50000 4194304 93813797294080"
	same(t, "Lustre was skipped after 1 ms", h.after(time.Millisecond).Skipped[LustreMounts], true)
	stats := "snapshot_time 1510950459.7 secs.nsecs\nwrite_bytes 1 samples [bytes] 4096 4096 4096\n"
	write(t, h.proc, "fs/lustre/llite/home-ffff0001/stats", []byte(stats))
	r := h.after(time.Second)
	same(t, "mounts with a new one", bytesOf(LustreMounts, r), []string{"home-ffff0001 0 4096 F", first})
	same(t, "mounts a second later", bytesOf(LustreMounts, h.after(time.Second)), []string{"home-ffff0001 0 4096", first})
	must(t, os.RemoveAll(filepath.Join(h.proc, "fs/lustre/llite/home-ffff0001")))
	same(t, "mounts after an unmount", bytesOf(LustreMounts, h.after(time.Second)), []string{first})
	must(t, os.RemoveAll(filepath.Join(h.proc, "fs/lustre")))
	r = h.after(time.Second)
	same(t, "mounts and failures without the client", []any{bytesOf(LustreMounts, r), failedOptional(r)}, []any{[]string(nil), nil})
	same(t, "Lustre was skipped without the client", h.after(time.Second).Skipped[LustreMounts], false)
}

func TestReader_RejectsDamagedLustreStats(t *testing.T) {
	for _, line := range []string{
		"read_bytes 1 samples [bytes] 4194304 4194304", "read_bytes 1 samples [bytes] 0 0 -4", "write_bytes many samples [bytes] 1 2 3",
		"open 3 samples [usecs] 1 2",
	} {
		h := openOptional(t, "lustre-2.10")
		write(t, h.proc, "fs/lustre/llite/lustrefs-ffff88105db50000/stats", []byte("snapshot_time 1 secs.nsecs\n"+line+"\n"))
		r := h.begin()
		if err := r.Failed[SourceLustre]; err == nil || !strings.Contains(err.Error(), `stats: "`+line+`" is not understood`) {
			t.Errorf("statistics %q: failure = %v, want that they are not understood", line, err)
		}
		same(t, line, bytesOf(LustreMounts, r), []string(nil))
	}
}

// debugfs is restricted to root and may not be mounted. On a host with Lustre, this is reported.
func TestReader_ReportsLustreWithoutDebugfs(t *testing.T) {
	h := openOptional(t, "lustre-2.14")
	debug := filepath.Join(h.sys, "kernel/debug")
	must(t, os.RemoveAll(debug))
	r := h.begin()
	same(t, "number of missing parts", len(r.Missing), 1)
	if g := r.Missing[0]; g.What != SourceLustre || g.Code != RootOnly || !strings.HasPrefix(g.Why, debug) || failedOptional(r) != nil {
		t.Errorf("missing = %+v, failure = %v; want that only root may read %s, and no failure", g, failedOptional(r), debug)
	}
}
