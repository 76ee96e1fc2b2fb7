package roster

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A Key identifies a launch of a user on a node. Agents with equal keys share a roster.
type Key struct {
	RunID    string `json:"run_id"`
	Restart  int    `json:"restart"`
	Launch   string `json:"launch"` // "" if no launcher started the process
	Out      string `json:"out"`    // the directory of the reports
	NodeName string `json:"node_name"`
	Node     *int   `json:"node"` // the index of the node; nil unless a flag or a variable sets it
}

// ErrNested is the error of Join if this process belongs to the job of another agent in the roster.
var ErrNested = errors.New("roster: this process runs in the job of another perfagent of the same launch")

// String returns a text that is different for different keys.
func (k Key) String() string {
	data, _ := json.Marshal(k) // strings and numbers never fail
	return string(data)
}

// Dirs returns the directories for rosters, in order of preference.
func Dirs() []string { return []string{"/dev/shm", os.TempDir()} }

// nameLength is the number of characters in a file name that distinguish a user's rosters.
const nameLength = 24

// prefix returns the common prefix of the file names of this user's rosters.
func prefix() string { return fmt.Sprintf("perfagent-%d-", os.Geteuid()) }

// path returns the path of the key's roster in dir.
func (k Key) path(dir string) string {
	sum := sha256.Sum256([]byte(k.String()))
	return filepath.Join(dir, prefix()+fmt.Sprintf("%x", sum[:nameLength/2]))
}

// A line is one line of a roster. It records that an agent has joined or, if Left is set, that the agent has written
// its part and left.
type line struct {
	Lock  int64  `json:"lock"` // offset of the agent's lock, which identifies it
	PID   int    `json:"pid,omitempty"`
	Rank  *int   `json:"rank,omitempty"` // nil if no launcher sets a rank
	Round int    `json:"turn,omitempty"` // number of agents of the same rank that joined earlier
	Left  bool   `json:"left,omitempty"`
	Part  string `json:"piece,omitempty"` // path of the report; "" if it was not written
}

// isOf reports whether the line is from an agent of rank. A nil rank never matches.
func (l line) isOf(rank *int) bool { return rank != nil && l.Rank != nil && *l.Rank == *rank }

// maxSize bounds how many bytes of a roster are read. It is enough for about ten thousand agents.
const maxSize = 4 << 20

// parse splits data into the lines of agents that joined (in) and of agents that left (out), each in the order of data.
// It skips malformed lines.
func parse(data []byte) (in, out []line) {
	for text := range bytes.Lines(data) {
		var l line
		switch {
		case json.Unmarshal(text, &l) != nil || l.Lock <= 0:
		case l.Left:
			out = append(out, l)
		default:
			in = append(in, l)
		}
	}

	return in, out
}

// partPaths returns the paths of the reports of all agents that left, or nil if one of the agents wrote no report.
func partPaths(lines []line) []string {
	var out []string
	for _, l := range lines {
		if l.Part == "" {
			return nil
		}
		out = append(out, l.Part)
	}

	return out
}
