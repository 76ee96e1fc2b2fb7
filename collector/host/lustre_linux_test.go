package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReader_LustreMountsComeAndGo(t *testing.T) {
	h := openOptional(t, "lustre-2.10")
	h.begin()
	const first = "lustrefs-ffff88105db50000 4194304 93813797294080"
	same(t, "at once", h.after(time.Millisecond).Skipped[LustreMounts], true)
	stats := "snapshot_time 1510950459.7 secs.nsecs\nwrite_bytes 1 samples [bytes] 4096 4096 4096\n"
	write(t, h.proc, "fs/lustre/llite/home-ffff0001/stats", []byte(stats))
	r := h.after(time.Second)
	same(t, "a new one", bytesOf(LustreMounts, r), []string{"home-ffff0001 0 4096 F", first})
	same(t, "a second later", bytesOf(LustreMounts, h.after(time.Second)), []string{"home-ffff0001 0 4096", first})
	must(t, os.RemoveAll(filepath.Join(h.proc, "fs/lustre/llite/home-ffff0001")))
	same(t, "unmounted", bytesOf(LustreMounts, h.after(time.Second)), []string{first})
	must(t, os.RemoveAll(filepath.Join(h.proc, "fs/lustre")))
	r = h.after(time.Second)
	same(t, "without the client", []any{bytesOf(LustreMounts, r), failedOptional(r)}, []any{[]string(nil), nil})
	same(t, "held", h.after(time.Second).Skipped[LustreMounts], false)
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
			t.Errorf("statistics %q: failure %v, want one that they are not understood", line, err)
		}
		same(t, line, bytesOf(LustreMounts, r), []string(nil))
	}
}

// debugfs is for root, and may not be mounted: that is reported where there is Lustre.
func TestReader_ReportsLustreWithoutDebugfs(t *testing.T) {
	h := openOptional(t, "lustre-2.14")
	debug := filepath.Join(h.sys, "kernel/debug")
	must(t, os.RemoveAll(debug))
	r := h.begin()
	same(t, "gaps", len(r.Missing), 1)
	if g := r.Missing[0]; g.What != SourceLustre || g.Code != RootOnly || !strings.HasPrefix(g.Why, debug) || failedOptional(r) != nil {
		t.Errorf("missing %+v, failure %v; want that only root may read %s, and no failure", g, failedOptional(r), debug)
	}
}
