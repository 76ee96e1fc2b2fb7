package mlflow

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxKey is the maximum length of a key in characters.
const maxKey = 250

// CheckKey returns an error if not every MLflow server takes a key of a metric, a parameter or a
// tag. A key has 1 to 250 characters: letters, digits, underscore, dash, dot, space and slash. It
// may become a file's name on the server, so it must not change when it is normalized as a path.
// The colon, which only some servers take, is refused.
func CheckKey(key string) error {
	switch n := utf8.RuneCountInString(key); {
	case key == "":
		return errors.New("the key is empty")
	case n > maxKey:
		return fmt.Errorf("the key %s has %d characters, at most %d", quote(key), n, maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("the key %s is not UTF-8", quote(key))
	}

	for _, r := range key {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_-. /", r) {
			return fmt.Errorf("the key %s has a %q in it: letters, digits, _ - . / and spaces only", quote(key), r)
		}
	}
	norm := path.Clean(key)
	if norm != key || norm == "." || strings.HasPrefix(norm, "..") || strings.HasPrefix(norm, "/") {
		return fmt.Errorf("the key %s is not the same when read as a path: no empty part, none of dots alone,"+
			" no slash at either end", quote(key))
	}
	return nil
}
