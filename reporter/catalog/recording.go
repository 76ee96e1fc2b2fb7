package catalog

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Recording is what one perfagent recorded of one node: a report, a journal, or both while the report of a
// sidecar is refreshed.
type Recording struct {
	Node int
	Nth  int // 1 for node-N, 2 for node-N.2: a second recording of the same node

	Report, Journal string // paths; "" = there is none
}

// Path returns the file to read: the report, or else the journal.
func (r Recording) Path() string {
	if r.Report != "" {
		return r.Report
	}
	return r.Journal
}

// ParseName parses the name of a recording's file without its directory: node-N.json, node-N.2.json, and the same
// with .jsonl for journals.
func ParseName(name string) (node, nth int, kind string, ok bool) {
	kind = filepath.Ext(name)
	number, found := strings.CutPrefix(strings.TrimSuffix(name, kind), "node-")
	if !found || kind != reportExt && kind != journalExt {
		return 0, 0, "", false
	}

	first, second, twice := strings.Cut(number, ".")
	node, ok = count(first)
	nth = 1
	if ok && twice {
		nth, ok = count(second)
	}
	if !ok {
		return 0, 0, "", false
	}

	return node, nth, kind, true
}

const (
	reportExt  = ".json"
	journalExt = ".jsonl"
	pageExt    = ".html"
)

// count parses a number without a sign.
func count(digits string) (int, bool) {
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), err == nil
}

// recordingsIn lists the recordings directly in a directory, by node and then in the order in which they
// began.
func recordingsIn(dir string) ([]Recording, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for reports: %w", err)
	}

	type key struct{ node, nth int }
	found := make(map[key]Recording)
	for _, e := range entries {
		node, nth, kind, ok := ParseName(e.Name())
		if !ok || e.IsDir() {
			continue
		}

		r := found[key{node, nth}]
		r.Node, r.Nth = node, nth
		if path := filepath.Join(dir, e.Name()); kind == reportExt {
			r.Report = path
		} else {
			r.Journal = path
		}
		found[key{node, nth}] = r
	}

	return slices.SortedFunc(maps.Values(found), func(a, b Recording) int {
		if a.Node != b.Node {
			return a.Node - b.Node
		}
		return a.Nth - b.Nth
	}), nil
}
