package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
)

// Read reads a report from a file of any kind that we know: our own JSON, a
// journal that a crash left behind, or perf.py's JSON; cpus is the number of CPUs
// that the latter does not tell (0 = unknown). Errors name the file and what is
// wrong with it.
func Read(path string, cpus int) (*Report, error) {
	f, err := ReadFile(path, cpus)
	if err != nil {
		return nil, err
	}
	return f.Report, nil
}

func readError(path string, err error) error {
	if pathErr := errors.Unwrap(err); pathErr != nil && strings.Contains(err.Error(), path) {
		return fmt.Errorf("read report: %w", err)
	}
	return fmt.Errorf("read report %s: %w", path, err)
}

// parse tells the formats apart by their first object.
func parse(path string, data []byte, cpus int) (*Report, Kind, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, 0, errors.New("is empty")
	}
	if isJournal(path, data) {
		r, err := parseJournal(data)
		return r, KindJournal, err
	}
	if r, err := parseReport(data); !errors.Is(err, errForeign) {
		return r, KindReport, err
	}
	var probe map[string]json.RawMessage
	if err := json.Unmarshal(data, &probe); err != nil {
		return nil, 0, located(data, err)
	}
	if len(probe) == 0 {
		return nil, 0, errors.New("is an empty object, not a report")
	}
	for _, key := range slices.Sorted(maps.Keys(probe)) {
		if _, err := strconv.ParseUint(key, 10, 31); err != nil {
			return nil, 0, fmt.Errorf("is no report: it has no \"schema\", and the key %q is not a node of perf.py's", text.Printable(text.Clip(key, 40)))
		}
	}
	r, err := ParsePerfPy(data, cpus)
	return r, KindPerfPy, err
}

// isJournal looks at the first line, and at the name where that line is damaged.
func isJournal(path string, data []byte) bool {
	first, _, _ := bytes.Cut(data, []byte{'\n'})
	return bytes.HasPrefix(first, []byte(`{"journal":`)) || filepath.Ext(path) == ".jsonl"
}

func parseReport(data []byte) (*Report, error) {
	nodes := make(map[string]*Node)
	r, err := scanReport(bytes.NewReader(data), int64(len(data)), Wanted{All: true}, func(_ *Run, name string, n *Node) error {
		nodes[name] = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.Nodes = nodes
	return r, nil
}

// checkSchema refuses other formats and newer major versions of ours.
func checkSchema(got, ours string) error {
	name, ourMajor, _ := strings.Cut(ours, "/")
	gotName, gotMajor, _ := strings.Cut(got, "/")
	if gotName != name {
		return fmt.Errorf("has the schema %q, not %s", text.Printable(text.Clip(got, 40)), ours)
	}
	major, _, _ := strings.Cut(gotMajor, ".")
	if major != ourMajor {
		return fmt.Errorf("has the schema %q; this perfagent reads %s: use a newer perfagent", text.Printable(text.Clip(got, 40)), ours)
	}
	return nil
}

// checkSeries makes sure that the envelope is as long as the samples.
func (n *Node) checkSeries(samples int) error {
	for _, key := range n.Envelope.keys() {
		band := n.Envelope[key]
		if len(band.Min) != samples || len(band.Mean) != samples || len(band.Max) != samples {
			return fmt.Errorf("the envelope of %q does not match the %d samples", text.Printable(text.Clip(key, 40)), samples)
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
	if syntax != nil && (errors.Is(err, io.ErrUnexpectedEOF) || offset >= int64(len(bytes.TrimRight(data, " \n\r\t")))) {
		return fmt.Errorf("line %d: the file ends in the middle (cut off?)", line)
	}
	return fmt.Errorf("line %d: %s", line, text.Printable(err.Error()))
}

const notFiniteHint = " is not JSON: Python wrote a number that could not be computed; write null or leave the key out"

// notFinite gives the word at which JSON broke off when it is one of those that
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

// lines yields the lines of a file without their ends; empty ones are left out.
func lines(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(data) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

// recording starts the Recording that a journal's lines are added to.
func (h *JournalHead) recording() *collector.Recording {
	rec := collector.NewRecording(host.Instant{Wall: h.Run.Start.Time}, h.Interval, h.MaxLength)
	return rec
}

// report makes the Report of a run whose end is not known.
func (h *JournalHead) report(rec *collector.Recording, damaged int, lost int64) *Report {
	run := h.Run
	elapsed := rec.End.Mono - rec.Start.Mono
	run.Start, run.End, run.WallSeconds = Time{rec.Start.Wall}, Time{rec.Start.Wall.Add(rec.End.Boot - rec.Start.Boot)}, elapsed.Seconds()
	run.Incomplete = fmt.Sprintf("from the journal of a run that is still going on or was cut off: known up to %v after the start", elapsed.Round(time.Millisecond))
	in := Input{Run: run, Node: h.Node, Recording: rec, Agent: h.Agent, Push: h.Push}
	if damaged > 0 {
		in.Missing = append(in.Missing, Missing{"journal", fmt.Sprintf("damaged lines that were left out: %d", damaged)})
	}
	if lost > 0 {
		in.Missing = append(in.Missing, Missing{"journal", fmt.Sprintf("samples that are lost: %d", lost)})
	}
	return New(in)
}
