package catalog

import (
	"path/filepath"
	"strconv"
	"strings"
)

// A Name is what the name of a recording's file tells.
type Name struct {
	// Node is the index of the node. Where no index is known, Host is the name of the host instead.
	Node int
	Host string

	Rank int // -1 if the file is not that of one rank of several
	Nth  int // 1 for node-N, 2 for node-N.2: a second recording of the same node or rank
	Ext  string

	// Partial reports whether it is what was known of the node while it ran, as it lies in a store: node-N.partial.
	Partial bool
}

const (
	reportExt  = ".json"
	journalExt = ".jsonl"
	pageExt    = ".html"
	marksExt   = ".marks"
)

// ParseName parses the name of a recording's file without its directory: node-N.json, node-N.2.json,
// node-N.rank-R.json, node-N.rank-R.2.json, the same with .partial at the end, and with .jsonl for journals. N is the
// index of a node or the name of a host. The name of a host begins with a letter or a digit and has a letter.
func ParseName(name string) (Name, bool) {
	ext := filepath.Ext(name)
	if ext != reportExt && ext != journalExt {
		return Name{}, false
	}
	return parseBase(strings.TrimSuffix(name, ext), ext)
}

// parseBase parses the name of a file without its extension.
func parseBase(base, ext string) (Name, bool) {
	n := Name{Rank: -1, Nth: 1, Ext: ext}
	node, ok := strings.CutPrefix(base, "node-")
	if !ok {
		return Name{}, false
	}

	node, n.Partial = strings.CutSuffix(node, ".partial")
	rest, last, found := cutLast(node, ".")
	if nth, isNumber := count(last); found && isNumber {
		n.Nth, node = nth, rest
	}
	if rest, last, found := cutLast(node, ".rank-"); found {
		if n.Rank, ok = count(last); !ok {
			return Name{}, false
		}
		node = rest
	}

	if n.Node, ok = count(node); !ok {
		n.Host = node
	}

	return n, ok || isHost(node)
}

// cutLast cuts s around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// isHost reports whether s can stand for a host in the name of a file.
func isHost(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const digits = "0123456789"

	return s != "" && strings.Trim(s[:1], letters+digits) == "" &&
		strings.Trim(s, letters+digits+"._-") == "" && strings.ContainsAny(s, letters)
}

// IsSure reports whether the name alone shows that perfagent made the file. Where it has the name of a host, and no
// rank, another program may have made it: node-modules.json.
func (n Name) IsSure() bool { return n.Host == "" || n.Rank >= 0 }

// count parses a number without a sign.
func count(digits string) (int, bool) {
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), err == nil
}
