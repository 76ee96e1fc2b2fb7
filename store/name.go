package store

import (
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/journal"
)

// maxElement is the maximum length of each of the two parts of a name: the limit for a file name, less the longest
// suffix.
const maxElement = 255 - len(".json.ready")

// IsName reports whether s is RUN-ID/node-N, the form of a name in every store. As the path of a file, such a name
// cannot lead out of the store.
func IsName(s string) bool {
	run, node, _ := strings.Cut(s, "/")
	return isElement(run) && isElement(node) && strings.HasPrefix(node, "node-")
}

// A layout maps the names of objects to keys.
type layout struct {
	prefix, separator, suffix string // around RUN-ID and node-N
	bare                      bool   // a name of another form is itself a key
}

// Key implements Connector.
func (l layout) Key(name string) string {
	if l.bare && !IsName(name) {
		return name
	}
	return l.prefix + strings.Replace(name, "/", l.separator, 1) + l.suffix
}

// nameOf returns the name of the object with the given key. ok is false if the key has another form.
func (l layout) nameOf(key string) (name string, ok bool) {
	base, begins := strings.CutPrefix(key, l.prefix)
	base, ends := strings.CutSuffix(base, l.suffix)
	at := strings.LastIndex(base, l.separator+"node-")
	if !begins || !ends || at < 0 {
		return "", false
	}
	return base[:at] + "/" + base[at+len(l.separator):], true
}

// elementChars are the characters of run IDs and of the names of nodes' reports.
const elementChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// isElement reports whether s may be a run ID or the name of a node's report.
func isElement(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= maxElement && strings.Trim(s, elementChars) == ""
}

// An objectName is the parsed name of an object, which identifies a recording.
type objectName struct {
	run     string
	node    string // node-N
	nth     int    // K of node-N.K; 1 for the first recording
	partial bool   // a partial report, put while the node ran
}

// Index returns N of node-N: the node's index or host name.
func (n objectName) Index() string { return strings.TrimPrefix(n.node, "node-") }

// String returns the name of the object.
func (n objectName) String() string {
	out := n.run + "/" + n.node
	if n.nth > 1 {
		out += "." + strconv.Itoa(n.nth)
	}
	if n.partial {
		out += ".partial"
	}
	return out
}

// parseName parses s, the name of an object. ok is false if the object is not the report of a whole node, for instance
// because it is the report of a single rank.
func parseName(s string) (n objectName, ok bool) {
	run, base, _ := strings.Cut(s, "/")
	of, ok := catalog.ParseFileName(base + ".json")
	if !ok || !IsName(s) || of.Rank >= 0 {
		return objectName{}, false
	}
	return objectName{run, journal.BaseName(of.Node, of.Host, ""), of.Nth, of.Partial}, true
}
