package marks

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/internal/text"
)

// The variables of a job's environment.
const (
	Variable      = "PERFAGENT_MARKS" // path of the file
	PhaseVariable = "PERFAGENT_PHASE" // name of the phase of a command
)

// MaxText is the maximum length of a text or a name, in bytes; longer texts are truncated.
const MaxText = 200

// A Line is the content of one line of the file.
type Line struct {
	// IsPhase reports whether the line begins or ends a phase. Otherwise it marks a moment.
	IsPhase bool
	// Text is the text of the mark, or the name of the phase; "" ends a phase. It is valid UTF-8 of at most MaxText
	// bytes, and may contain control characters.
	Text string
	// At is the time in the line, in seconds since 1970; NaN if the line has no time.
	At float64
}

// A record is a line of JSON. A null phase differs from a missing phase.
type record struct {
	Mark  *string         `json:"mark"`
	Phase json.RawMessage `json:"phase"`
	At    *float64        `json:"ts"`
}

// Parse parses a line without its line end. It returns false for a blank line. A line that is not JSON of a mark or a
// phase is a mark with the line as its text.
func Parse(line []byte) (Line, bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return Line{}, false
	}
	if line[0] == '{' {
		if l, ok := parseRecord(line); ok {
			return l, true
		}
	}

	return Line{Text: text.Prefix(string(line[:min(len(line), 2*MaxText)]), MaxText), At: math.NaN()}, true
}

// parseRecord parses a line of JSON. It returns false for JSON that is neither a mark nor a phase.
func parseRecord(line []byte) (Line, bool) {
	var r record
	if json.Unmarshal(line, &r) != nil || (r.Mark == nil) == (r.Phase == nil) {
		return Line{}, false
	}

	l := Line{IsPhase: r.Mark == nil, At: math.NaN()}
	if r.At != nil {
		l.At = *r.At
	}
	switch {
	case r.Mark != nil:
		l.Text = text.Prefix(*r.Mark, MaxText)
	case json.Unmarshal(r.Phase, &l.Text) != nil: // null leaves Text empty
		return Line{}, false
	default:
		l.Text = text.Prefix(l.Text, MaxText)
	}

	return l, true
}

// NewMarkLine returns the line that marks the moment at, in seconds since 1970. It truncates what to MaxText bytes.
func NewMarkLine(what string, at float64) Line { return Line{Text: text.Prefix(what, MaxText), At: at} }

// Append appends the line to out, as JSON that Parse accepts, with a line end.
func (l Line) Append(out []byte) []byte {
	switch {
	case !l.IsPhase:
		out = append(append(out, `{"mark":`...), quoted(l.Text)...)
	case l.Text == "":
		out = append(out, `{"phase":null`...)
	default:
		out = append(append(out, `{"phase":`...), quoted(l.Text)...)
	}

	if !math.IsNaN(l.At) && !math.IsInf(l.At, 0) {
		out = strconv.AppendFloat(append(out, `,"ts":`...), l.At, 'f', 6, 64)
	}

	return append(out, '}', '\n')
}

// quoted returns s as a JSON string.
func quoted(s string) []byte {
	data, _ := text.JSON(s) // every string has a JSON form
	return data
}

// UnixSeconds returns t in seconds since 1970, the unit of Line.At.
func UnixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
