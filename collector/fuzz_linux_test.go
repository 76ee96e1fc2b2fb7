package collector

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// FuzzReader reads whole trees. With any file contents, each source has either values or a reason for having none, and
// the Sample is valid.
func FuzzReader(f *testing.F) {
	read := func(tree, name string) []byte {
		data, _ := os.ReadFile(filepath.Join(collectortest.Root(f), "testdata/proc", tree, name)) // a tree may lack the file
		return data
	}

	for _, tree := range []string{"healthy", "lvm-on-raid", "loopback-names",
		"damaged-stat-short-line", "damaged-netdev-short-line", "damaged-diskstats-short-line", "damaged-meminfo-nonsense"} {
		f.Add(read(tree, "stat"), read(tree, "meminfo"), read(tree, "diskstats"), read(tree, "net/dev"))
	}
	proc := f.TempDir()
	_, sys := collectortest.Tree(f, "healthy")
	r := openTree(f, proc, sys)
	healthy := fixture(f, "healthy").Read()
	f.Fuzz(func(t *testing.T, stat, meminfo, diskstats, netdev []byte) {
		for name, data := range map[string][]byte{"stat": stat, "meminfo": meminfo, "diskstats": diskstats, "net/dev": netdev} {
			write(t, proc, name, data)
		}
		got := r.Read()
		for source, there := range map[string]bool{host.SourceCPU: got.CPU != nil, host.SourceMemory: got.Memory != nil,
			host.SourceDisk: len(got.Disk) > 0, host.SourceDiskIO: got.Devices[host.Disks] != nil, host.SourceNetwork: got.Devices[host.NICs] != nil} {
			if there == (got.Failed[source] != nil) {
				t.Fatalf("%s: has values: %v, failure: %v; want either values or a failure", source, there, got.Failed[source])
			}
			if err := got.Failed[source]; err != nil && strings.Contains(err.Error(), "damaged kernel file") /* how guard reports a panic */ {
				t.Fatal(err)
			}
		}
		got.At = at(1e9)
		base := *healthy
		base.At = at(0)
		_, s := NewCounterState(&base).Next(got, 0)
		must(t, checkSample(&s, nothingBefore()))
	})
}
