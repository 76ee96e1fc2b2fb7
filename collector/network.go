package collector

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v3/net"
)

// readNet reads /proc/net/dev. Under another host's procfs the file net/dev
// follows the namespace of whoever reads it (net links to self/net), so the one
// of its process 1 is asked first.
func (r *Reader) readNet() ([]Device, error) {
	stats, err := r.netCounters()
	if err != nil {
		return nil, err
	}
	if len(stats) == 0 {
		return nil, readErr(filepath.Join(r.proc, "net", "dev"), "no interface")
	}
	devs := make([]Device, len(stats))
	for i, s := range stats {
		devs[i] = Device{Name: s.Name, In: s.BytesRecv, Out: s.BytesSent}
	}
	return devs, nil
}

func (r *Reader) netCounters() ([]net.IOCountersStat, error) {
	if runtime.GOOS != "linux" {
		return net.IOCountersWithContext(r.ctx, true)
	}
	if r.hostProc {
		path := filepath.Join(r.proc, "1", "net", "dev")
		if _, err := os.Stat(path); err == nil {
			return net.IOCountersByFileWithContext(r.ctx, true, path)
		}
	}
	return net.IOCountersByFileWithContext(r.ctx, true, filepath.Join(r.proc, "net", "dev"))
}

// classifyNICs sorts interfaces. lo and names that contain "loopback" are
// Loopback. Of the others each byte is counted once: where any has a physical
// device behind it those are counted and nothing stacked on them; where none has
// (a container), all that are neither a member of another interface (bond,
// bridge) nor stacked on one that is counted (VLAN, macvlan).
func (r *Reader) classifyNICs(devs []Device) []Class {
	classes := make([]Class, len(devs))
	links := make([]nicLinks, len(devs))
	physical := false
	for i, d := range devs {
		lower := strings.ToLower(d.Name)
		classes[i] = PerfPy
		if lower == "lo" || strings.Contains(lower, "loopback") {
			classes[i] |= Loopback | Counted
			continue
		}
		links[i] = r.nicLinks(d.Name)
		physical = physical || links[i].physical
	}
	byName := make(map[string]nicLinks, len(devs))
	for i, d := range devs {
		byName[d.Name] = links[i]
	}
	for i, d := range devs {
		if classes[i]&Loopback != 0 {
			continue
		}
		if physical && links[i].physical || !physical && !links[i].member && !stackedNIC(d.Name, links[i], byName) {
			classes[i] |= Counted
		}
	}
	return classes
}

// nicLinks is what sysfs says of one interface (Documentation/ABI/testing/sysfs-class-net).
type nicLinks struct {
	physical bool     // has a device: PCI, USB, virtio…
	member   bool     // has a master: a bond, bridge or team
	master   string   // its name
	lowers   []string // interfaces that it stands on
}

func (r *Reader) nicLinks(name string) nicLinks {
	dir := filepath.Join(r.sys, "class", "net", name)
	var l nicLinks
	_, err := os.Lstat(filepath.Join(dir, "device"))
	l.physical = err == nil
	target, err := os.Readlink(filepath.Join(dir, "master"))
	switch {
	case err == nil:
		l.member, l.master = true, filepath.Base(target)
	case !errors.Is(err, os.ErrNotExist): // a tree copied without its links
		l.member = true
	}
	lowers, _ := filepath.Glob(filepath.Join(dir, "lower_*"))
	for _, p := range lowers {
		l.lowers = append(l.lowers, strings.TrimPrefix(filepath.Base(p), "lower_"))
	}
	return l
}

// stackedNIC tells whether an interface stands on one that is not its member:
// a VLAN on eth0 carries bytes that eth0 counts too, a bridge's ports do not
// count beside it.
func stackedNIC(name string, l nicLinks, all map[string]nicLinks) bool {
	for _, lower := range l.lowers {
		below, known := all[lower]
		if known && below.master != name {
			return true
		}
	}
	return false
}
