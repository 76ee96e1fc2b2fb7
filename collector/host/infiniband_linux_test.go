package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// openPorts opens the healthy host with the RDMA ports of a tree.
func openPorts(t *testing.T, tree string) *Reader {
	t.Helper()
	proc, _ := collectortest.Tree(t, "healthy")
	return openHost(t, proc, filepath.Join(collectortest.Root(t), "testdata", "sys", tree))
}

// mibOfPorts is one MiB in the unit of a port's counters.
const mibOfPorts = (1 << 20) / rdmaUnit

func TestReader_ReadsRDMAPorts(t *testing.T) {
	const full = 1<<32 - 1
	for tree, test := range map[string]struct {
		want []Device
		why  string // end of the failure's text; "" = no failure
	}{
		// Two ports, including one with RoCE. The driver of efa_0 has other counters.
		"infiniband": {want: []Device{
			{"mlx5_0/1", 7 << 20 * mibOfPorts, 5 << 10 * mibOfPorts, Counted},
			{"mlx5_1/1", 3 * mibOfPorts, 2 * mibOfPorts, Counted}}},
		// Old counters stay at the end of their range, each of them independently.
		"infiniband-saturated": {want: []Device{
			{"mlx4_0/1", full, 100 * mibOfPorts, Counted | StaleIn | SaturatedIn},
			{"mlx4_0/2", 50 * mibOfPorts, 60 * mibOfPorts, Counted}}},
		// A 64-bit counter may also have that value, and a 32-bit counter may be near its end.
		"infiniband-widths": {want: []Device{
			{"mlx5_0/1", full, 8589934592, Counted},
			{"qib0/1", mibOfPorts, full - 1, Counted}}},
		// One port has a malformed counter, and another one a driver that does not count.
		"infiniband-damaged": {want: []Device{{"mlx5_1/1", 20 * mibOfPorts, 30 * mibOfPorts, Counted}},
			why: `mlx5_0/ports/1/counters/port_rcv_data: "lots" is not a count`},
		"healthy": {},
	} {
		t.Run(tree, func(t *testing.T) {
			r := openPorts(t, tree)
			for range 2 {
				got := r.Read()
				same(t, "ports", got.Devices[RDMAPorts], test.want)
				err := got.Failed[SourceInfiniBand]
				check.True(t, (err != nil) == (test.why != ""), "failure = %v, want %q, or none if that is empty", err, test.why)
				check.True(t, err == nil || strings.HasSuffix(fmt.Sprint(err), test.why), "failure = %v, want the end %q", err, test.why)
			}
		})
	}
}

// ports is a temporary sysfs with RDMA ports.
type ports struct{ sys string }

func (p ports) dir(name string) string {
	device, number, _ := strings.Cut(name, "/")
	return filepath.Join(p.sys, "class", "infiniband", device, "ports", number)
}

// set writes the counters of a port.
func (p ports) set(t *testing.T, name string, in, out uint64) {
	t.Helper()
	dir := filepath.Join(p.dir(name), "counters")
	must(t, os.MkdirAll(dir, 0o777))
	write(t, dir, "port_rcv_data", []byte(strconv.FormatUint(in, 10)+"\n"))
	write(t, dir, "port_xmit_data", []byte(strconv.FormatUint(out, 10)+"\n"))
}

// newPorts returns a sysfs without ports, a function that reads the ports, and a function that advances the clock.
func newPorts(t *testing.T) (p ports, read func() []Device, pass func(time.Duration)) {
	t.Helper()
	p = ports{t.TempDir()}
	open := openRDMA(&Reader{sys: p.sys})
	now := time.Duration(0)
	read = func() []Device {
		t.Helper()
		devs := check.Value(open(now, nil))(t)
		return devs
	}
	return p, read, func(d time.Duration) { now += d }
}

// New ports are found by a search, which takes place once a minute.
func TestRDMA_SearchesForNewPortsOncePerMinute(t *testing.T) {
	p, read, pass := newPorts(t)
	same(t, "ports at first", read(), []Device(nil))
	p.set(t, "mlx5_0/1", 10, 20)
	pass(rescanInterval - 1)
	same(t, "ports before the next search", read(), []Device(nil))
	pass(1)
	same(t, "ports after a minute", read(), []Device{{"mlx5_0/1", 10, 20, Counted}})

	p.set(t, "mlx5_1/1", 1, 2)
	pass(rescanInterval)
	same(t, "ports after another search", namesOf(read(), Counted), []string{"mlx5_0/1", "mlx5_1/1"})
}

// A vanished port is not a failure. It is read again as soon as it returns, even if a search took place in its absence.
func TestRDMA_VanishedPortIsStaleUntilItReturns(t *testing.T) {
	byName := func(devs []Device) map[string]Device {
		ports := make(map[string]Device)
		for _, d := range devs {
			ports[d.Name] = d
		}
		return ports
	}
	for _, away := range []time.Duration{time.Second, rescanInterval} {
		p, read, pass := newPorts(t)
		p.set(t, "mlx5_0/1", 10, 20)
		p.set(t, "mlx5_1/1", 1, 2)
		read()

		must(t, os.RemoveAll(p.dir("mlx5_0/1")))
		other := Device{"mlx5_1/1", 1, 2, Counted}
		for range 2 {
			pass(away)
			same(t, "ports while one is missing", byName(read()), map[string]Device{
				"mlx5_0/1": {"mlx5_0/1", 10, 20, Counted | StaleIn | StaleOut}, "mlx5_1/1": other})
		}

		p.set(t, "mlx5_0/1", 3, 4)
		pass(time.Second)
		same(t, "ports after the return", byName(read()), map[string]Device{
			"mlx5_0/1": {"mlx5_0/1", 3, 4, Counted}, "mlx5_1/1": other})
	}
}

// A counter that saturates has counted correctly up to the end of its range. After that it is stale until it restarts,
// even while it cannot be read.
func TestRDMA_SaturatedCounterCountsUpToItsEnd(t *testing.T) {
	const full = 1<<32 - 1
	p, read, _ := newPorts(t)
	for _, step := range []struct {
		in, out uint64
		class   DeviceClass
	}{
		{4000000000, full, Counted | StaleOut | SaturatedOut}, // already saturated at first: its earlier value is unknown
		{full, full, Counted | SaturatedIn | StaleOut | SaturatedOut},
		{full, full, Counted | StaleIn | SaturatedIn | StaleOut | SaturatedOut},
		{7, full, Counted | StaleOut | SaturatedOut},
		{8, 5, Counted},
		{8, full, Counted | SaturatedOut},
	} {
		p.set(t, "qib0/1", step.in, step.out)
		same(t, "port", read(), []Device{{"qib0/1", step.in, step.out, step.class}})
	}
}

// An unreadable counter keeps its last value, so that nothing is lost.
func TestRDMA_UnreadableCounterKeepsItsLastValue(t *testing.T) {
	p, read, _ := newPorts(t)
	p.set(t, "mlx5_0/1", 10, 20)
	read()
	write(t, p.dir("mlx5_0/1"), "counters/port_rcv_data", []byte("\n"))
	write(t, p.dir("mlx5_0/1"), "counters/port_xmit_data", []byte("21\n"))
	open := openRDMA(&Reader{sys: p.sys})
	devs, err := open(0, nil)
	check.True(t, len(devs) == 0 && err != nil, "damaged port, never read: devices = %v, error = %v; want none, an error", devs, err)
	p.set(t, "mlx5_0/1", 10, 20)
	devs, err = open(0, nil)
	check.True(t, len(devs) == 1 && err == nil, "repaired port: devices = %v, error = %v; want 1 device, no error", devs, err)
	write(t, p.dir("mlx5_0/1"), "counters/port_rcv_data", []byte("\n"))
	devs, err = open(0, nil)
	same(t, "ports with an unreadable counter", devs, []Device{{"mlx5_0/1", 10, 20, Counted | StaleIn}})
	check.True(t, err != nil, "no error for an unreadable counter")
}

// A card that does not respond delays only one Reading, by one timeout.
func TestRDMA_UnresponsiveCardDelaysOneReading(t *testing.T) {
	p, _, _ := newPorts(t)
	p.set(t, "mlx5_0/1", 10, 20)
	open := openRDMA(&Reader{sys: p.sys})
	check.Value(open(0, nil))(t)
	path := filepath.Join(p.dir("mlx5_0/1"), "counters", "port_rcv_data")
	must(t, os.Remove(path))
	must(t, syscall.Mkfifo(path, 0o666)) // opening it blocks until there is a writer
	for range 3 {
		devs, err := open(0, nil)
		same(t, "ports while the card does not respond", devs, []Device{{"mlx5_0/1", 10, 20, Counted | StaleIn | StaleOut}})
		wantError(t, "an unresponsive card", err, "did not answer within 500ms")
	}
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil { // unblock it
		f.Close()
	}
}

// On an old card, the physical function also counts the bytes of its virtual functions. On mlx5, each function counts
// separately.
func TestRDMA_CountsBytesOfVirtualFunctionsOnce(t *testing.T) {
	p, read, _ := newPorts(t)
	for device, driver := range map[string]string{"mlx4_0": "mlx4_core", "mlx4_1": "mlx4_core", "mlx4_2": "mlx4_core",
		"mlx5_0": "mlx5_core", "mlx5_1": "mlx5_core"} {
		p.set(t, device+"/1", 10, 20)
		dir := filepath.Join(p.sys, "class", "infiniband", device, "device")
		must(t, os.MkdirAll(dir, 0o777))
		must(t, os.Symlink("../../../../bus/pci/drivers/"+driver, filepath.Join(dir, "driver")))
		layer := "InfiniBand\n"
		if device == "mlx4_2" {
			layer = "Ethernet\n"
		}
		write(t, p.dir(device+"/1"), "link_layer", []byte(layer))
		if device != "mlx4_0" && device != "mlx5_0" {
			write(t, dir, "physfn", nil)
		}
	}
	same(t, "counted ports", namesOf(read(), Counted), []string{"mlx4_0/1", "mlx4_2/1", "mlx5_0/1", "mlx5_1/1"})
}
