// Package redact hides secrets in the arguments of a command: values with a name such as password, token or key, and
// the user info in URLs. docs/site.md lists the rules.
package redact

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Off is a pattern for New that turns redaction off.
const Off = "off"

// mask replaces a secret.
const mask = "***"

// Rules determines which texts are hidden. The zero value hides values with secret names, and the user info in URLs.
type Rules struct {
	off      bool
	patterns []*regexp.Regexp
}

// New returns the rules with additional patterns, in the syntax of package regexp. The first group of each match is
// hidden, or the whole match if there is no group. If Off is among the patterns, nothing is hidden.
func New(patterns []string) (Rules, error) {
	var r Rules
	for _, pattern := range patterns {
		if pattern == Off {
			r.off = true
			continue
		}

		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return Rules{}, fmt.Errorf("%q: %w", pattern, err)
		}
		r.patterns = append(r.patterns, compiled)
	}

	return r, nil
}

// Args returns the arguments of a command with *** in place of each secret. Their number stays the same, and args
// itself is not modified.
func (r Rules) Args(args []string) []string {
	if r.off || len(args) == 0 {
		return args
	}

	out := make([]string, len(args))
	before := ""
	for i, arg := range args {
		out[i] = r.arg(before, arg)
		before = arg
	}

	return out
}

// arg redacts the argument arg. before is the previous argument.
func (r Rules) arg(before, arg string) string {
	if arg != "" && isSecretOption(before) && !isLongOption(arg) {
		return mask
	}

	found := userInfo(arg)
	found = append(found, namedValues(before, arg)...)
	for _, pattern := range r.patterns {
		for _, at := range pattern.FindAllStringSubmatchIndex(arg, -1) {
			if len(at) > 2 && at[2] >= 0 { // the pattern has a group
				at = at[2:]
			}
			found = append(found, span{at[0], at[1]})
		}
	}

	return replace(arg, found)
}

// A span is a part of a text to hide.
type span struct{ from, to int }

// replace returns s with a mask in place of each span. Spans may overlap.
func replace(s string, found []span) string {
	found = slices.DeleteFunc(found, func(f span) bool { return f.from >= f.to })
	if len(found) == 0 {
		return s
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.from, b.from) })

	var out strings.Builder
	end := 0 // s[:end] is already written or hidden
	for _, f := range found {
		if f.from >= end {
			out.WriteString(s[end:f.from])
			out.WriteString(mask)
		}
		end = max(end, f.to)
	}
	out.WriteString(s[end:])

	return out.String()
}

// userInfo returns the spans of the user info of all URLs in s, between "://" and the last "@" of the authority (RFC
// 3986, 3.2).
func userInfo(s string) []span {
	var out []span
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			return out
		}

		begin := at + i + len("://")
		authority := s[begin:]
		if end := strings.IndexAny(authority, "/?#\\\"<> \t\r\n"); end >= 0 {
			authority = authority[:end]
		}
		if n := strings.LastIndexByte(authority, '@'); n > 0 && begin > len("://") {
			out = append(out, span{begin, begin + n})
		}
		at = begin + len(authority)
	}
}

// Error returns err with a text in which args, the arguments of a command, are redacted.
func (r Rules) Error(err error, args []string) error {
	if err == nil {
		return nil
	}

	text := err.Error()
	for i, safe := range r.Args(args) {
		if arg := args[i]; safe != arg {
			text = strings.ReplaceAll(text, strconv.Quote(arg), strconv.Quote(safe))
			text = strings.ReplaceAll(text, arg, safe)
		}
	}

	return redactedError{text, err}
}

// A redactedError is err with another text.
type redactedError struct {
	text string
	err  error
}

func (e redactedError) Error() string { return e.text }

func (e redactedError) Unwrap() error { return e.err }
