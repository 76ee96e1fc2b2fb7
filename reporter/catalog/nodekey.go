package catalog

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
)

// A nodeKey identifies the node of a recording: by the index if one was given, and otherwise by the host.
type nodeKey struct {
	hasIndex bool
	index    int // the given index; otherwise the index in the file, usually 0

	host, boot string // "" = unknown
}

// nodeKeyOf returns the key of a recording's node.
func nodeKeyOf(r *Entry) nodeKey {
	p := newNodeKey(r.head.Node, r.head.Identity, r.head.Host)
	if r.head.Node == "" {
		p.index = r.Node
		p.hasIndex = r.Host == "" && r.Node != 0
	}
	if p.host == "" {
		p.host = r.Host
	}
	return p
}

// newNodeKey returns the nodeKey of the node with the given key in a report. It treats an index other than 0 as given,
// even if the report does not contain the source of the index.
func newNodeKey(key string, id *reporter.Identity, host *reporter.Host) nodeKey {
	var p nodeKey
	p.index, _ = parseNumber(key)
	if id == nil {
		p.hasIndex = p.index != 0
	} else {
		p.hasIndex = id.NodeFrom != "" && id.NodeFrom != scheduler.NodeFromNone
	}
	if host != nil && host.Hostname != "" {
		p.host, p.boot = scheduler.SafeHost(host.Hostname), host.BootID
	}
	return p
}

// SameNode reports whether the reports with the heads a and b are of the same node.
func SameNode(a, b *reporter.Head) bool {
	return newNodeKey(a.Node, a.Identity, a.Host).matches(newNodeKey(b.Node, b.Identity, b.Host))
}

// matches reports whether two keys identify the same node.
func (p nodeKey) matches(o nodeKey) bool {
	switch {
	case p.hasIndex || o.hasIndex:
		return p.hasIndex == o.hasIndex && p.index == o.index
	case p.host == "" || o.host == "":
		return p.index == o.index
	}
	return p.host == o.host && (p.boot == o.boot || p.boot == "" || o.boot == "")
}

// compareNatural compares names like strings.Compare, but compares numbers in them by value: node2 comes before node10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		digitsA, digitsB := leadingDigits(a), leadingDigits(b)
		x, errX := strconv.ParseUint(digitsA, 10, 64)
		y, errY := strconv.ParseUint(digitsB, 10, 64)
		if errX != nil || errY != nil {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		if c := cmp.Or(cmp.Compare(x, y), cmp.Compare(len(digitsA), len(digitsB))); c != 0 {
			return c
		}
		a, b = a[len(digitsA):], b[len(digitsB):]
	}

	return cmp.Compare(len(a), len(b))
}

// leadingDigits returns the digits at the start of s.
func leadingDigits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }
