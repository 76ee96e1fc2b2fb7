package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// headJournal writes a journal of a rank with n samples. With snapshot it is then rewritten from the Recording.
func headJournal(t testing.TB, n int, snapshot bool) (data []byte, want *reporter.Head) {
	t.Helper()
	s := reportertest.NewStream(1)
	rec := s.Recording(10)
	rec.Host = host.Info{Hostname: "gpu7", BootID: "b"}
	now := reporter.Time{Time: s.Start.Wall.UTC()}
	head := Head{
		Run: reporter.Run{ID: "r", Start: now, End: now}, Node: 3, Rank: "5", Interval: time.Second, MaxLength: 10,
		Identity: &reporter.Identity{NodeFrom: "none", Launch: "m"},
	}
	data = written(t, head, func(j *Journal) {
		for range n {
			j.Observe(s.Next(rec), rec)
			if snapshot {
				j.wantSnapshot.Store(true)
			}
		}
	})
	want = &reporter.Head{Run: head.Run, Node: "3", Rank: "5", Identity: head.Identity}
	if n > 0 {
		want.Host = &reporter.Host{Hostname: "gpu7", BootID: "b"}
	}
	return data, want
}

func TestReadHead_ReadsHeadAndHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		samples  int
		snapshot bool
	}{"before the first sample": {}, "samples": {samples: 3}, "snapshot": {3, true}} {
		data, want := headJournal(t, c.samples, c.snapshot)
		if c.snapshot != bytes.Contains(data, []byte(`"snapshot"`)) {
			t.Fatalf("%s: want snapshot %v, journal %.200s", name, c.snapshot, data)
		}
		got := check.Value(ReadHead(bytes.NewReader(data)))(t)
		if got.Host != nil { // the stream has more host fields
			got.Host = &reporter.Host{Hostname: got.Host.Hostname, BootID: got.Host.BootID}
		}
		same(t, name+": head", got, want)
	}
}

func TestReadHead_RefusesDamagedHead(t *testing.T) {
	t.Parallel()
	for data, words := range map[string]string{
		"": "is empty", `{"journal":"x`: "damaged", `{"journal":"x/1"}`: "schema", `{"journal":"perfagent.journal/9"}`: "newer", `[1]`: "damaged",
	} {
		if _, err := ReadHead(strings.NewReader(data)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v, want one containing %q", data, err, words)
		}
	}
}

func FuzzReadHead(f *testing.F) {
	for _, snapshot := range []bool{false, true} {
		data, _ := headJournal(f, 2, snapshot)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if head, err := ReadHead(bytes.NewReader(data)); (head == nil) == (err == nil) {
			t.Fatalf("ReadHead returned %v, %v, want either a head or an error", head, err)
		}
	})
}

// The newest timestamp is the last sample's. There is none if the last line is incomplete or is not a sample.
func TestNewestTimes_ReadsLastSample(t *testing.T) {
	t.Parallel()
	data, _ := headJournal(t, 5, false)
	path := filepath.Join(t.TempDir(), "node-3.jsonl")
	check.Must(t, os.WriteFile(path, data, 0o600))
	want := parsed(t, data).Nodes["3"].Samples.Column("timestamp")
	newest, written, ok := NewestTimes(path)
	if got := float64(newest.UnixMicro()) / 1e6; !ok || got != want[len(want)-1] {
		t.Errorf("newest time %v (known: %v), want %v", got, ok, want[len(want)-1])
	}
	if st, err := os.Stat(path); err != nil || !written.Equal(st.ModTime()) {
		t.Errorf("written at %v, want the file's modification time (error %v)", written, err)
	}

	for name, data := range map[string]string{
		"incomplete line": strings.TrimSuffix(string(data), "\n"), "signal line last": string(data) + `{"signal":{}}` + "\n",
		"only a head": string(data[:bytes.IndexByte(data, '\n')+1]), "empty file": "", "damaged line last": string(data) + "{\n",
	} {
		check.Must(t, os.WriteFile(path, []byte(data), 0o600))
		if newest, _, ok := NewestTimes(path); ok {
			t.Errorf("%s: newest time %v, want none", name, newest)
		}
	}
	if _, _, ok := NewestTimes(path + "x"); ok {
		t.Error("NewestTimes of a missing file returned true, want false")
	}
}
