package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lustreOf are the devices of Lustre with their bytes, and F for one that is fresh.
func lustreOf(r *Reading) (list []string) {
	for _, d := range r.Devices[LustreMounts] {
		text := fmt.Sprintf("%s %d %d", d.Name, d.In, d.Out)
		if d.Class&Fresh != 0 {
			text += " F"
		}
		list = append(list, text)
	}
	return list
}

func TestReader_LustreMountsComeAndGo(t *testing.T) {
	h := openRare(t, "lustre-2.10")
	h.begin()
	const first = "lustrefs-ffff88105db50000 4194304 93813797294080"
	same(t, "at once", h.after(time.Millisecond).Held[LustreMounts], true)
	stats := "snapshot_time 1510950459.7 secs.nsecs\nwrite_bytes 1 samples [bytes] 4096 4096 4096\n"
	write(t, h.proc, "fs/lustre/llite/home-ffff0001/stats", []byte(stats))
	r := h.after(time.Second)
	same(t, "a new one", lustreOf(r), []string{"home-ffff0001 0 4096 F", first})
	same(t, "a second later", lustreOf(h.after(time.Second)), []string{"home-ffff0001 0 4096", first})
	if err := os.RemoveAll(filepath.Join(h.proc, "fs/lustre/llite/home-ffff0001")); err != nil {
		t.Fatal(err)
	}
	same(t, "unmounted", lustreOf(h.after(time.Second)), []string{first})
	if err := os.RemoveAll(filepath.Join(h.proc, "fs/lustre")); err != nil {
		t.Fatal(err)
	}
	r = h.after(time.Second)
	same(t, "without the client", []any{lustreOf(r), failedRare(r)}, []any{[]string(nil), nil})
	same(t, "held", h.after(time.Second).Held[LustreMounts], false)
}

func TestReader_LustreDamaged(t *testing.T) {
	for _, line := range []string{
		"read_bytes 1 samples [bytes] 4194304 4194304", "read_bytes 1 samples [bytes] 0 0 -4", "write_bytes many samples [bytes] 1 2 3",
		"open 3 samples [usecs] 1 2",
	} {
		h := openRare(t, "lustre-2.10")
		write(t, h.proc, "fs/lustre/llite/lustrefs-ffff88105db50000/stats", []byte("snapshot_time 1 secs.nsecs\n"+line+"\n"))
		r := h.begin()
		if err := r.Failed[SourceLustre]; err == nil || !strings.Contains(err.Error(), `stats: "`+line+`" is not understood`) {
			t.Errorf("%s: %v", line, err)
		}
		same(t, line, lustreOf(r), []string(nil))
	}
}

// debugfs is for root, and may not be mounted: that is said where Lustre is.
func TestReader_LustreWithoutDebugfs(t *testing.T) {
	h := openRare(t, "lustre-2.14")
	debug := filepath.Join(h.sys, "kernel/debug")
	if err := os.RemoveAll(debug); err != nil {
		t.Fatal(err)
	}
	r := h.begin()
	same(t, "gaps", len(r.Gaps), 1)
	if g := r.Gaps[0]; g.What != SourceLustre || g.Code != RootOnly || !strings.HasPrefix(g.Why, debug) || failedRare(r) != nil {
		t.Errorf("%+v, failure %v", g, failedRare(r))
	}
}
