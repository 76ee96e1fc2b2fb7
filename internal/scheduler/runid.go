package scheduler

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// runIDLetters are the characters allowed in a run ID. A regular expression would be compiled at every start, while the
// job waits.
const runIDLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// maxRunID is the maximum length of a run ID.
const maxRunID = 128

// CheckRunID returns an error if id cannot name the folder of a run.
func CheckRunID(id string) error {
	switch {
	case strings.Trim(id, runIDLetters) != "":
		return fmt.Errorf("%q has characters other than letters, digits, '.', '_' and '-'", id)
	case strings.HasPrefix(id, "-"):
		return fmt.Errorf("%q looks like a flag: begin the name with a letter, a digit, '.' or '_'", id)
	case strings.Trim(id, ".") == "":
		return fmt.Errorf("%q cannot be the name of a directory", id)
	case len(id) > maxRunID:
		return fmt.Errorf("%q is longer than %d characters", id[:32]+"…", maxRunID)
	}

	return nil
}

// SafeRunID makes a run ID from any text: characters that are not allowed, and a dash at the beginning, become '_', and
// the ID is cut to maxRunID characters. The ID of the empty text is empty.
func SafeRunID(text string) string {
	safe := strings.Map(func(r rune) rune {
		if strings.ContainsRune(runIDLetters, r) {
			return r
		}
		return '_'
	}, text)
	safe = safe[:min(len(safe), maxRunID)]

	if strings.HasPrefix(safe, "-") {
		return "_" + safe[1:]
	}
	if strings.Trim(safe, ".") == "" {
		return strings.Repeat("_", len(safe))
	}

	return safe
}

// SafeHost makes a text for file names from the name of a host. The result has a letter and begins with a letter or a
// digit, so that it is not mistaken for the index of a node.
func SafeHost(name string) string {
	const digits = "0123456789"

	safe := SafeRunID(name)
	isName := safe != "" && strings.Trim(safe, digits+"._-") != "" && !strings.ContainsAny(safe[:1], "._-")
	if !isName {
		return "host-" + safe
	}

	return safe
}

// NewRunID returns a run ID made of the time and six random digits. IDs sort by time.
func NewRunID(now time.Time) string {
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)

	return now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random[:])
}
