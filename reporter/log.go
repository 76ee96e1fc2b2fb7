package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/internal/text"
)

// The limits of a LogTail.
const (
	MaxLogLines = 1000
	MaxLogLine  = 500 // cells of a line
)

// Values of LogTail.Stream.
const (
	LogStderr = "stderr"
	LogStdout = "stdout"
	LogBoth   = "both"
)

// LogTail is the end of a failed job's log: the file to which the job wrote its standard error or output.
type LogTail struct {
	Stream string   `json:"stream"` // one of the Log constants
	File   string   `json:"file"`
	Lines  []string `json:"lines"` // the last lines that were written during the run; redacted and printable
	// Bytes is the number of bytes that were written during the run; nil if the file was truncated meanwhile.
	Bytes *int64 `json:"bytes,omitempty"`
	// Shared reports that others may have written to the file as well.
	Shared bool `json:"shared,omitempty"`
	// MayLeave reports that the user wants the lines in copies of the report for servers and stores.
	MayLeave bool `json:"may_leave,omitempty"`
}

// LogError is an error in the last lines of a failed job's log.
type LogError struct {
	Kind     string `json:"kind"` // one of the kinds of package diagnosis
	Line     string `json:"line,omitempty"`
	MayLeave bool   `json:"may_leave,omitempty"` // as in LogTail
}

// Shareable returns data, a perfagent report, without the lines of logs that may not leave the machine. It keeps every
// other byte.
func Shareable(data []byte) ([]byte, error) {
	out, err := withoutLogs(data, false)
	if err != nil {
		return nil, fmt.Errorf("remove the lines of the job's log: %w", err)
	}
	return out, nil
}

// withoutLogs returns data, a report or a node, without the lines of all logs, or of those that may not leave.
func withoutLogs(data []byte, all bool) ([]byte, error) {
	if !bytes.Contains(data, []byte(`"log_tail"`)) && !bytes.Contains(data, []byte(`"said"`)) {
		return data, nil
	}
	return appendWithoutLogs(nil, data, "", all)
}

// appendWithoutLogs appends object, the value of the member named parent, without the lines of logs.
func appendWithoutLogs(out, object []byte, parent string, all bool) ([]byte, error) {
	return appendEdited(out, object, func(out []byte, key string, value []byte) ([]byte, error) {
		switch {
		case key == "log_tail" || key == "said":
			var log LogError // a LogTail has no kind
			bad := json.Unmarshal(value, &log) != nil
			if !bad && log.MayLeave && !all {
				break
			}
			if bad || log.Kind == "" {
				return nil, errOmit
			}
			kind, err := text.JSON(LogError{Kind: log.Kind})
			return append(out, kind...), err
		case bytes.HasPrefix(value, []byte("{")) && (key == "run" || key == "nodes" || key == "ranks" ||
			key == "verdict" || parent == "nodes" || parent == "ranks"):
			return appendWithoutLogs(out, value, key, all)
		}
		return append(out, value...), nil
	})
}

// errOmit makes appendEdited leave out a member.
var errOmit = errors.New("left out")
