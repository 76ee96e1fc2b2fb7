package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// classifyNICs classifies interfaces. lo and names that contain "loopback" are Loopback. Among the others, each byte
// counts once. If any interface is physical, only physical interfaces count, without interfaces stacked on them. If
// none is, as in a container, every interface counts that is neither a member of another interface (bond, bridge) nor
// stacked on an interface that counts (VLAN, macvlan).
func (r *Reader) classifyNICs(devs []Device) []DeviceClass {
	classes := make([]DeviceClass, len(devs))
	links := make(map[string]nicLinks, len(devs))
	physical := false
	for i, d := range devs {
		lower := strings.ToLower(d.Name)
		classes[i] = PerfPy
		if lower == "lo" || strings.Contains(lower, "loopback") {
			classes[i] |= Loopback | Counted
			continue
		}
		links[d.Name] = r.nicLinks(d.Name)
		physical = physical || links[d.Name].physical
	}

	for i, d := range devs {
		l := links[d.Name]
		if classes[i]&Loopback != 0 || l.physical != physical {
			continue
		}
		// The master also counts the bytes of a member. A bond is not a physical device, so its members count. The synthetic
		// card of a virtual machine is physical, so its member, the card that accelerates it, does not count.
		member := l.member && (!physical || links[l.master].physical)
		if !member && !stackedNIC(d.Name, links) {
			classes[i] |= Counted
		}
	}

	return classes
}

// nicLinks holds an interface's links in sysfs (Documentation/ABI/testing/sysfs-class-net).
type nicLinks struct {
	physical bool     // has a device (PCI, USB, virtio…)
	member   bool     // has a master (a bond, bridge or team)
	master   string   // name of the master
	lowers   []string // interfaces that this interface is stacked on
}

// nicLinks reads the links of the interface name from sysfs.
func (r *Reader) nicLinks(name string) nicLinks {
	dir := filepath.Join(r.sys, "class", "net", name)
	var l nicLinks
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l
	}

	for _, e := range entries {
		switch lower, isLower := strings.CutPrefix(e.Name(), "lower_"); {
		case e.Name() == "device":
			l.physical = true
		case e.Name() == "master": // not a link in a tree that was copied without links
			target, err := os.Readlink(filepath.Join(dir, "master"))
			l.member = true
			if err == nil {
				l.master = filepath.Base(target)
			}
		case isLower:
			l.lowers = append(l.lowers, lower)
		}
	}
	return l
}

// stackedNIC reports whether the interface name is stacked on an interface of the same kind (physical or not) that is
// not its member. A VLAN on eth0 is stacked, because eth0 counts its bytes as well. A bridge is not, because it counts
// instead of its ports.
func stackedNIC(name string, links map[string]nicLinks) bool {
	return slices.ContainsFunc(links[name].lowers, func(lower string) bool {
		below, known := links[lower]
		return known && below.physical == links[name].physical && below.master != name
	})
}
