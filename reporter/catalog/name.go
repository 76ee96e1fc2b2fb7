package catalog

import (
	"path/filepath"
	"strconv"
	"strings"
)

// A FileName holds the parts of the name of a recording's file.
type FileName struct {
	// Node is the index of the node. If the node has no index, Host is its host name.
	Node int
	Host string

	Rank int // -1 if the file is not one of several ranks
	Nth  int // 1 for node-N, 2 for node-N.2: a second recording of the same node or rank
	Ext  string

	// Partial reports whether the file is a report in a store that was written while the node ran: node-N.partial.
	Partial bool
}

const (
	reportExt  = ".json"
	journalExt = ".jsonl"
	pageExt    = ".html"
	marksExt   = ".marks"
)

// ParseFileName parses the name of a recording's file without its directory: node-N.json, node-N.2.json,
// node-N.rank-R.json, or node-N.rank-R.2.json. The part before the extension may end with .partial. The extension of
// journals is .jsonl. N is the index of a node or the name of a host. The name of a host begins with a letter or digit,
// and has at least one letter.
func ParseFileName(name string) (FileName, bool) {
	ext := filepath.Ext(name)
	if ext != reportExt && ext != journalExt {
		return FileName{}, false
	}
	return parseBase(strings.TrimSuffix(name, ext), ext)
}

// parseBase parses the name of a file without its extension.
func parseBase(base, ext string) (FileName, bool) {
	n := FileName{Rank: -1, Nth: 1, Ext: ext}
	node, ok := strings.CutPrefix(base, "node-")
	if !ok {
		return FileName{}, false
	}

	node, n.Partial = strings.CutSuffix(node, ".partial")
	rest, last, found := cutLast(node, ".")
	if nth, isNumber := parseNumber(last); found && isNumber {
		n.Nth, node = nth, rest
	}
	if rest, last, found := cutLast(node, ".rank-"); found {
		if n.Rank, ok = parseNumber(last); !ok {
			return FileName{}, false
		}
		node = rest
	}

	if n.Node, ok = parseNumber(node); !ok {
		n.Host = node
	}

	return n, ok || isHost(node)
}

// cutLast cuts s around the last instance of sep, like strings.Cut.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// isHost reports whether s is valid as a host name in the name of a file.
func isHost(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const digits = "0123456789"

	return s != "" && strings.Trim(s[:1], letters+digits) == "" &&
		strings.Trim(s, letters+digits+"._-") == "" && strings.ContainsAny(s, letters)
}

// IsUnambiguous reports whether the name alone proves that perfagent wrote the file. A name with a host and without a
// rank, such as node-modules.json, may be from another program.
func (n FileName) IsUnambiguous() bool { return n.Host == "" || n.Rank >= 0 }

// parseNumber parses a number without a sign.
func parseNumber(digits string) (int, bool) {
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), err == nil
}
