package collector

import (
	"maps"
	"testing"

	"github.com/perfagent/perfagent/collector/host"
)

// account is the expected result for a tree: the devices that perfagent and perf.py count, and the bytes since boot of
// both, in MiB and in the order of Counters.
type account struct {
	Disks, PerfPyDisks, NICs []string
	MB, PerfPyMB             []float64
}

func accountOf(r *host.Reading) account {
	return account{counted(r.Devices[host.Disks], host.Counted), counted(r.Devices[host.Disks], host.PerfPy), counted(r.Devices[host.NICs], host.Counted),
		bootTotals(r, false)[:6], bootTotals(r, true)[:6]}
}

// The results were computed by hand from the trees. They are whole MiB and include each byte once.
func TestBootTotals_CountEachByteOnce(t *testing.T) {
	tests := map[string]account{
		// LVM on RAID on partitions: the bytes of dm-0 and dm-1 are also counted by md0, and the bytes of md0 by sda and sdb.
		"lvm-on-raid": {[]string{"sda", "sdb", "sr0"},
			[]string{"ram0", "loop0", "sda", "sdb", "md0", "dm-0", "dm-1", "zram0", "sr0"}, []string{"lo", "eth0"},
			[]float64{1403, 990, 2, 40, 2, 30}, []float64{4055, 2027, 2, 40, 2, 30}},
		"nvme-multipath": {[]string{"nvme0n1", "nvme1n1"},
			[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1", "dm-0"}, []string{"lo", "eth0"},
			[]float64{350, 100, 2, 40, 2, 30}, []float64{930, 180, 2, 40, 2, 30}},
		"nvme-multipath-before-6.3": {[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1"},
			[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1"}, []string{"lo", "eth0"},
			[]float64{350, 100, 2, 40, 2, 30}, []float64{350, 100, 2, 40, 2, 30}},
		// A physical host: the cards count, not the interfaces on top of them.
		"bond-vlan-bridge": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0", "eth1", "wlan0"},
			[]float64{10, 20, 5, 32, 5, 301}, []float64{10, 20, 5, 241, 5, 1028}},
		// A virtual machine with a passed-through card: eth0 counts the traffic of enP1s1.
		"accelerated-networking": {[]string{"sda"}, []string{"sda"}, []string{"lo", "eth0"},
			[]float64{1, 2, 1, 600, 1, 500}, []float64{1, 2, 1, 1184, 1, 993}},
		// The ports of a switch have a device as well, but their bytes go through eth0.
		"switch-ports": {[]string{"mmcblk0", "mmcblk0boot0", "mtdblock0"}, []string{"mmcblk0", "mmcblk0boot0", "mtdblock0"},
			[]string{"lo", "eth0"}, []float64{2, 2, 1, 600, 1, 500}, []float64{2, 2, 1, 1770, 1, 1470}},
		"container": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[]float64{10, 20, 5, 10, 5, 100}, []float64{10, 20, 5, 10, 5, 100}},
		// The bridge counts without its members, and eth1 without its VLAN. A tunnel counts, because its destination is
		// unknown.
		"container-bridge": {[]string{"loop0"}, []string{"loop0"}, []string{"lo", "br0", "eth1", "tun0"},
			[]float64{5, 6, 1, 21, 1, 109}, []float64{5, 6, 1, 42, 1, 255}},
		"container-without-sysfs": {[]string{"vda", "nvme0n1", "xvda1", "mmcblk0"},
			[]string{"loop0", "vda", "nvme0n1", "md127", "dm-0", "xvda1", "mmcblk0"}, []string{"lo", "eth0", "eth1"},
			[]float64{47, 69, 5, 12, 5, 101}, []float64{61, 88, 5, 12, 5, 101}},
		"sysfs-without-blocks": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[]float64{10, 20, 1, 1, 1, 1}, []float64{10, 20, 1, 1, 1, 1}},
		"loopback-names": {[]string{}, []string{}, []string{"lo", "loopback0", "MyLoopBack", "LO", "lo0", "eth0", "eth0:1"},
			[]float64{0, 0, 2222, 18, 1111, 15}, []float64{0, 0, 2222, 18, 1111, 15}},
		"slash-in-name": {[]string{"cciss/c0d0", "cciss/c0d1"}, []string{"cciss/c0d0", "cciss/c0d1", "dm-0"}, []string{"lo", "eth0"},
			[]float64{107, 208, 1, 1, 1, 1}, []float64{113, 215, 1, 1, 1, 1}},
		"netdev-without-headings": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[]float64{10, 20, 5, 10, 5, 100}, []float64{10, 20, 5, 10, 5, 100}},
		// The interfaces of the host's process 1 count, not the reader's.
		"sidecar": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eno1"},
			[]float64{10, 20, 50, 800, 50, 900}, []float64{10, 20, 50, 800, 50, 900}},
	}

	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			r := fixture(t, name).Read()
			same(t, "failures", wideFailed(r), map[string]error{})
			same(t, "account", accountOf(r), want)
		})
	}
}

// wideFailed returns the failures of the sources that every tree has.
func wideFailed(r *host.Reading) map[string]error {
	failed := maps.Clone(r.Failed)
	for _, source := range []string{host.SourceLoad, host.SourceSwap, host.SourcePressure} {
		delete(failed, source)
	}
	return failed
}
