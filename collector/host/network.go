package host

import (
	"os"
	"path/filepath"
	"strings"
)

// classifyNICs classifies interfaces. lo and names that contain "loopback" are Loopback. Of the others each byte counts
// once: if any interface has a physical device, only those count, and nothing stacked on them. If none has one (a
// container), all count that are neither a member of another interface (bond, bridge) nor stacked on one that counts
// (VLAN, macvlan).
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
		// A member's bytes are its master's too. A bond is not a physical device, so its members count. The synthetic
		// card of a virtual machine is one, so its member, the card that accelerates it, does not count.
		member := l.member && (!physical || links[l.master].physical)
		if !member && !stackedNIC(d.Name, links) {
			classes[i] |= Counted
		}
	}

	return classes
}

// nicLinks holds an interface's links in sysfs (Documentation/ABI/testing/sysfs-class-net).
type nicLinks struct {
	physical bool     // has a device: PCI, USB, virtio…
	member   bool     // has a master: a bond, bridge or team
	master   string   // its name
	lowers   []string // interfaces below it
}

// nicLinks reads the links of an interface from sysfs.
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
		case e.Name() == "master": // the link has no target in a tree that was copied without links
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

// stackedNIC reports whether an interface is on top of one of its kind (physical or not) that is not its member: a VLAN
// on eth0 carries bytes that eth0 counts too, and a bridge counts instead of its ports.
func stackedNIC(name string, links map[string]nicLinks) bool {
	for _, lower := range links[name].lowers {
		below, known := links[lower]
		if known && below.physical == links[name].physical && below.master != name {
			return true
		}
	}
	return false
}
