package mlflowtest

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of the servers.
const (
	mostMetrics    = 1000
	mostParams     = 100
	mostTags       = 100
	mostItems      = 1000 // in one batch
	longestKey     = 250  // characters
	longestTag     = 8000
	longestParam   = 6000
	longestName    = 500 // of an experiment
	mostPage       = 50000
	defaultPage    = 1000
	mostUploadSize = 10 << 20
)

// checkKey refuses the name of a metric, a param or a tag. A colon is refused, as
// by servers on Windows and before 2.16.
func checkKey(key string) *apiError {
	for _, c := range key {
		if !strings.ContainsRune("_-. /", c) && !unicode.IsLetter(c) && !unicode.IsNumber(c) {
			return invalid("Invalid value %q for parameter supplied: Names may only contain alphanumerics, underscores (_), "+
				"dashes (-), periods (.), spaces ( ) and slashes (/).", key)
		}
	}
	if clean := path.Clean(key); clean != key || clean == "." || strings.HasPrefix(clean, "..") || strings.HasPrefix(clean, "/") {
		return invalid("Invalid value %q for parameter supplied: Names may be treated as files in certain cases, and must not "+
			"resolve to other names when treated as such. This name would resolve to '%s'", key, clean)
	}
	if n := utf8.RuneCountInString(key); n > longestKey {
		return invalid("'key' exceeds the maximum length of %d characters", longestKey)
	}
	return nil
}

// cut shortens a value, as the servers do without a word.
func cut(value string, most int) string {
	if r := []rune(value); len(r) > most {
		return string(r[:most])
	}
	return value
}

// collides refuses a key that is a folder of another, or the other way round: a
// store that keeps each key in a file fails then.
func collides[V any](have map[string]V, key string) *apiError {
	for other := range have {
		if strings.HasPrefix(other, key+"/") || strings.HasPrefix(key, other+"/") {
			return &apiError{500, "INTERNAL_ERROR", "[Errno 21] Is a directory: '" + key + "' and '" + other + "'"}
		}
	}
	return nil
}

// safePath refuses the path of an artifact that could leave its folder.
func safePath(p string) *apiError {
	if strings.ContainsAny(p, "#\\") || strings.HasPrefix(p, "/") || strings.Contains("/"+p+"/", "/../") {
		return invalid("Invalid path")
	}
	return nil
}
