package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// Decode returns the report that Encode wrote. It returns ErrForeign if the data are not a perfagent report.
func Decode(data []byte) (*Report, error) {
	nodes := make(map[string]*Node)
	keep := func(_ *Run, name string, n *Node) error {
		nodes[name] = n
		return nil
	}
	r, err := scanReport(bytes.NewReader(data), int64(len(data)), Wanted{All: true}, keep)
	if err != nil {
		return nil, err
	}
	r.Nodes = nodes
	return r, nil
}

// CheckSchema refuses other formats and newer major versions of ours.
func CheckSchema(got, ours string) error {
	name, ourMajor, _ := strings.Cut(ours, "/")
	gotName, gotMajor, _ := strings.Cut(got, "/")
	if gotName != name {
		return fmt.Errorf("has the schema %q, not %s", text.Printable(text.Clip(got, 40)), ours)
	}
	major, _, _ := strings.Cut(gotMajor, ".")
	if major != ourMajor {
		return fmt.Errorf("has the schema %q; this perfagent reads %s: use a newer perfagent",
			text.Printable(text.Clip(got, 40)), ours)
	}
	return nil
}

// checkSeries makes sure that the envelopes are as long as the samples.
func (n *Node) checkSeries(samples int) error {
	if err := n.Envelope.check(samples); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(n.Ranks)) {
		if err := n.Ranks[name].Envelope.check(samples); err != nil {
			return fmt.Errorf("rank %s: %w", name, err)
		}
	}
	return nil
}

// check makes sure that each list of the envelope is as long as the samples.
func (e Envelope) check(samples int) error {
	for _, key := range e.keys() {
		band := e[key]
		if len(band.Min) != samples || len(band.Mean) != samples || len(band.Max) != samples {
			return fmt.Errorf("the envelope of %q does not match the %d samples",
				text.Printable(text.Clip(key, 40)), samples)
		}
	}
	return nil
}

// located adds the line to an error of encoding/json, and says plainly what is
// wrong with a file that was cut off.
func located(data []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}

	if offset < 0 {
		return errors.New(text.Printable(err.Error()))
	}

	line := 1 + bytes.Count(data[:min(int(offset), len(data))], []byte{'\n'})
	if word := notFinite(data, offset); syntax != nil && word != "" {
		return fmt.Errorf("line %d: %s%s", line, word, notFiniteHint)
	}

	atEnd := offset >= int64(len(bytes.TrimRight(data, " \n\r\t")))
	if syntax != nil && (atEnd || errors.Is(err, io.ErrUnexpectedEOF)) {
		return fmt.Errorf("line %d: the file ends in the middle (cut off?)", line)
	}
	return fmt.Errorf("line %d: %s", line, text.Printable(err.Error()))
}

const notFiniteHint = " is not JSON: Python wrote a number that could not be computed; write null or leave the key out"

// notFinite returns the word at which JSON broke off when it is one of those that
// Python writes for numbers which JSON lacks. offset counts the bytes up to and
// including the offending one.
func notFinite(data []byte, offset int64) string {
	at := int(offset) - 1
	if at < 0 || at >= len(data) {
		return ""
	}
	for _, word := range []string{"NaN", "Infinity"} {
		if !bytes.HasPrefix(data[at:], []byte(word)) {
			continue
		}
		if at > 0 && data[at-1] == '-' {
			return "-" + word
		}
		return word
	}
	return ""
}
