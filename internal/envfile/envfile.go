// Package envfile reads files of NAME=VALUE lines, as systemd's EnvironmentFile does. "#" begins a comment line, spaces
// around the name and the value are ignored, and one pair of quotes around the value is removed. Variables are not
// expanded.
package envfile

import (
	"bytes"
	"strings"
)

// MaxSize is the size limit for files, in bytes.
const MaxSize = 64 << 10

// A Setting is a line of a file. Lines are counted from 1.
type Setting struct {
	Line        int
	Name, Value string
}

// Parse returns the settings in data, the contents of a file, in the order of their lines. bad lists the numbers of
// lines that are not empty and are neither settings nor comments.
func Parse(data []byte) (settings []Setting, bad []int) {
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		line := strings.TrimSpace(string(raw))
		if line == "" || line[0] == '#' {
			continue
		}

		name, value, found := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if !found || !isName(name) || strings.ContainsRune(value, 0) {
			bad = append(bad, number)
			continue
		}
		settings = append(settings, Setting{Line: number, Name: name, Value: unquote(strings.TrimSpace(value))})
	}

	return settings, bad
}

// isName reports whether s is a valid name for an environment variable.
func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', i > 0 && '0' <= c && c <= '9':
		default:
			return false
		}
	}

	return s != ""
}

// unquote removes one pair of quotes around s.
func unquote(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : n-1]
	}
	return s
}
