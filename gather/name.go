package gather

import (
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/store"
)

// A name says which recording an object is.
type name struct {
	run     string
	node    string // node-N
	again   int    // K of node-N.K; 1 for the first recording
	partial bool   // what was known of it while it ran
}

// String returns the name of the object.
func (n name) String() string {
	out := n.run + "/" + n.node
	if n.again > 1 {
		out += "." + strconv.Itoa(n.again)
	}
	if n.partial {
		out += ".partial"
	}
	return out
}

// parse reads the name of an object. It reports false for one that is not the report of a whole node: the piece of a
// rank is not.
func parse(s string) (n name, ok bool) {
	run, base, _ := strings.Cut(s, "/")
	of, ok := catalog.ParseName(base + ".json")
	if !ok || !store.IsName(s) || of.Rank >= 0 {
		return name{}, false
	}
	return name{run, journal.BaseName(of.Node, of.Host, ""), of.Nth, of.Partial}, true
}
