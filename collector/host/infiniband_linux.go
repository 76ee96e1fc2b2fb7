package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/timeout"
)

// rdmaTimeout is the longest time that a Reading waits for the RDMA ports. The driver queries the card, which takes a
// few tenths of a millisecond, or up to a minute if the card is broken.
const rdmaTimeout = 500 * time.Millisecond

// rdma reads the counters of the ports of RDMA devices (InfiniBand, RoCE and the like). It searches for new ports once
// a minute. It retries a vanished port in each Reading, because a port disappears briefly while its driver is reloaded.
type rdma struct {
	class  string // /sys/class/infiniband
	ports  []rdmaPort
	looked time.Duration // when the ports were last searched; -1 = never
	caller *timeout.Caller[[][2]rdmaCount]
	last   map[string]Device // last known counters, by name
}

// An rdmaPort is a port with a driver that counts bytes.
type rdmaPort struct {
	name     string // "mlx5_0/1"
	counters string // directory of its counters
	wide     bool   // the counters have 64 bits
}

type rdmaCount struct {
	n   uint64
	err error
}

func openRDMA(r *Reader) deviceReader {
	b := rdma{class: filepath.Join(r.sys, "class", "infiniband"), looked: -1,
		caller: timeout.NewCaller[[][2]rdmaCount](), last: make(map[string]Device)}
	return b.read
}

func (b *rdma) read(at time.Duration, devs []Device) ([]Device, error) {
	if b.looked < 0 || at-b.looked >= rescanInterval {
		b.ports, b.looked = keepVanished(lookForPorts(b.class), b.ports), at
	}
	if len(b.ports) == 0 {
		return nil, nil
	}

	ports := b.ports
	counts, ok := b.caller.Call(rdmaTimeout, func() [][2]rdmaCount { return countsOf(ports) })
	if !ok {
		timedOut := rdmaCount{err: errRDMATimeout}
		counts = slices.Repeat([][2]rdmaCount{{timedOut, timedOut}}, len(ports))
	}

	var errs []error
	b.ports = nil
	for i, port := range ports {
		in, out := counts[i][0], counts[i][1]
		if _, was := b.last[port.name]; !isGone(in.err) && !isGone(out.err) {
			for _, err := range []error{in.err, out.err} {
				if err != nil && !slices.Contains(errs, err) { // all ports time out together
					errs = append(errs, err)
				}
			}
		} else if !was {
			continue // the port has no counter
		}
		b.ports = append(b.ports, port)
		if d, known := b.device(port, in, out); known {
			devs = append(devs, d)
		}
	}
	if len(devs) == 0 {
		devs = nil // no counter was ever read
	}
	return devs, errors.Join(errs...)
}

// keepVanished returns found and the ports in before that have vanished since.
func keepVanished(found, before []rdmaPort) []rdmaPort {
	for _, p := range before {
		isFound := slices.ContainsFunc(found, func(f rdmaPort) bool { return f.name == p.name })
		if !isFound && !exists(p.counters) {
			found = append(found, p)
		}
	}
	return found
}

var errRDMATimeout = fmt.Errorf("the RDMA devices did not answer within %v", rdmaTimeout)

// device returns port with the counters in and out. If a counter could not be read, device uses its last known value.
// known is false if it has no known value.
func (b *rdma) device(port rdmaPort, in, out rdmaCount) (d Device, known bool) {
	before, was := b.last[port.name]
	if !was && (in.err != nil || out.err != nil) {
		return d, false
	}

	d = Device{Name: port.name, Class: Counted}
	take := func(c rdmaCount, n uint64, stale, saturated DeviceClass) uint64 {
		if c.err == nil {
			n = c.n
		} else {
			d.Class |= stale
		}
		if n == math.MaxUint32 && !port.wide { // 32-bit counters do not wrap
			// The bytes up to saturation are known, unless the port's first Reading finds it saturated.
			if d.Class |= saturated; !was || before.Class&saturated != 0 {
				d.Class |= stale
			}
		}
		return n
	}
	d.In, d.Out = take(in, before.In, StaleIn, SaturatedIn), take(out, before.Out, StaleOut, SaturatedOut)
	b.last[port.name] = d
	return d, true
}

// lookForPorts lists the ports that have byte counters. Some drivers do not provide them.
func lookForPorts(class string) []rdmaPort {
	var ports []rdmaPort
	devices, _ := os.ReadDir(class) // without RDMA the directory does not exist
	for _, device := range devices {
		dir := filepath.Join(class, device.Name())
		numbers, _ := os.ReadDir(filepath.Join(dir, "ports"))
		for _, number := range numbers {
			port := filepath.Join(dir, "ports", number.Name())
			counters := filepath.Join(port, "counters")
			if !exists(filepath.Join(counters, "port_rcv_data")) || countedByFunction(dir, port) {
				continue
			}
			// The kernel provides this file only if the counters have 64 bits.
			wide := exists(filepath.Join(counters, "unicast_rcv_packets"))
			ports = append(ports, rdmaPort{device.Name() + "/" + number.Name(), counters, wide})
		}
	}
	return ports
}

// exists reports whether a file exists at path.
func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

// countedByFunction reports whether port belongs to a virtual function of a card, and the port of the physical function
// counts its bytes as well. That is the case for mlx4 on InfiniBand. With mlx5, each function has separate counters.
func countedByFunction(device, port string) bool {
	if !exists(filepath.Join(device, "device", "physfn")) {
		return false
	}
	driver, _ := os.Readlink(filepath.Join(device, "device", "driver"))
	return filepath.Base(driver) == "mlx4_core" && readWord(filepath.Join(port, "link_layer")) == "InfiniBand"
}

// countsOf returns the counters of all ports, received and sent, in the order of ports.
func countsOf(ports []rdmaPort) [][2]rdmaCount {
	counts := make([][2]rdmaCount, len(ports))
	for i, p := range ports {
		in := readRDMACount(filepath.Join(p.counters, "port_rcv_data"))
		out := in
		if !isGone(in.err) {
			out = readRDMACount(filepath.Join(p.counters, "port_xmit_data"))
		}
		counts[i] = [2]rdmaCount{in, out}
	}
	return counts
}

// errNoRDMACount is the error for a driver that provides the file but does not count.
var errNoRDMACount = errors.New("no counter")

func readRDMACount(path string) (c rdmaCount) {
	f, err := os.Open(path)
	if err != nil {
		return rdmaCount{err: err}
	}
	defer f.Close()
	var buf [64]byte
	n, err := f.Read(buf[:])
	if errors.Is(err, io.EOF) {
		err = nil
	}
	text := bytes.TrimSpace(buf[:n])
	if bytes.HasPrefix(text, []byte("N/A")) { // "N/A (no PMA)"
		return rdmaCount{err: errNoRDMACount}
	}
	c.n, c.err = numberIn(path, text, err)
	return c
}

// isGone reports whether err means that a counter does not exist, or no longer exists.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, errNoRDMACount)
}
