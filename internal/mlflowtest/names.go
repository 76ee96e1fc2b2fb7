package mlflowtest

import (
	"net/http"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the servers.
const (
	maxMetrics    = 1000
	maxTags       = 100
	maxItems      = 1000 // in one batch
	maxKey        = 250  // characters
	maxTag        = 8000
	maxName       = 500 // of an experiment
	maxPage       = 50000
	defaultPage   = 1000
	maxUploadSize = 10 << 20
)

// checkKey refuses invalid keys of metrics and tags. It refuses a colon, as servers do on Windows and before MLflow
// 2.16.
func checkKey(key string) *apiError {
	for _, c := range key {
		if !strings.ContainsRune("_-. /", c) && !unicode.IsLetter(c) && !unicode.IsNumber(c) {
			return invalid("Invalid value %q for parameter supplied: Names may only contain alphanumerics,"+
				" underscores (_), dashes (-), periods (.), spaces ( ) and slashes (/).", key)
		}
	}

	clean := path.Clean(key)
	if clean != key || clean == "." || strings.HasPrefix(clean, "..") || strings.HasPrefix(clean, "/") {
		return invalid("Invalid value %q for parameter supplied: Names may be treated as files in certain cases,"+
			" and must not resolve to other names when treated as such. This name would resolve to '%s'", key, clean)
	}
	if n := utf8.RuneCountInString(key); n > maxKey {
		return invalid("'key' exceeds the maximum length of %d characters", maxKey)
	}
	return nil
}

// cut shortens value to max characters, as the servers do silently.
func cut(value string, max int) string {
	if r := []rune(value); len(r) > max {
		return string(r[:max])
	}
	return value
}

// collides returns an error if key is the folder of another key, or has another key as a folder. A store with a file
// for each key would fail.
func collides[V any](have map[string]V, key string) *apiError {
	if _, known := have[key]; known { // the key was checked when it was added
		return nil
	}
	for other := range have {
		if isWithin(other, key) || isWithin(key, other) {
			return isFolder(key)
		}
	}
	return nil
}

// isWithin reports whether key is a file in folder.
func isWithin(key, folder string) bool {
	return len(key) > len(folder) && key[len(folder)] == '/' && key[:len(folder)] == folder
}

func isFolder(key string) *apiError {
	return &apiError{
		status:  http.StatusInternalServerError,
		code:    "INTERNAL_ERROR",
		message: "[Errno 21] Is a directory: '" + key + "' or a part of it",
	}
}

// folders holds the folders of a run's metrics in a file store. It exists because a run may have too many metrics to
// compare each of them with every new metric.
type folders map[string]bool

// add adds the folders of key.
func (f folders) add(key string) {
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		f[dir] = true
	}
}

// safePath returns an error if p, the path of an artifact, could lead out of the run's folder.
func safePath(p string) *apiError {
	if strings.ContainsAny(p, "#\\") || strings.HasPrefix(p, "/") || strings.Contains("/"+p+"/", "/../") {
		return invalid("Invalid path")
	}
	return nil
}
