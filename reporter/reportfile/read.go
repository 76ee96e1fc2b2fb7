package reportfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// Kind is the format of a file.
type Kind int

// Formats of files.
const (
	KindReport  Kind = iota // a perfagent report
	KindJournal             // the journal of an active or interrupted run
	KindPerfPy              // perf.py's JSON
)

// File is a file together with the report in it.
type File struct {
	Path   string
	Kind   Kind
	Data   []byte
	Report *reporter.Report
}

// Read reads the report in a file of any Kind. cpus is the number of logical CPUs of each node, which perf.py's JSON
// lacks; 0 = unknown. Errors contain the path and the problem.
func Read(path string, cpus int) (*reporter.Report, error) {
	f, err := Load(path, cpus)
	if err != nil {
		return nil, err
	}
	return f.Report, nil
}

// Load is like Read, for callers that also need the kind of the file or its bytes.
func Load(path string, cpus int) (*File, error) {
	data, err := readWhole(path)
	f := &File{Path: path, Data: data}
	if err == nil {
		f.Report, f.Kind, err = parse(path, data, cpus)
	}
	if err != nil {
		return nil, readError(path, err)
	}
	return f, nil
}

// parse parses data, the content of the file at path, and returns its format.
func parse(path string, data []byte, cpus int) (*reporter.Report, Kind, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, 0, errors.New("is empty")
	}
	if isJournal(path, data) {
		r, err := journal.Parse(data)
		return r, KindJournal, err
	}
	if r, err := reporter.Decode(data); !errors.Is(err, reporter.ErrForeign) {
		return r, KindReport, err
	}
	if err := notReportError(path, data); err != nil {
		return nil, 0, err
	}
	r, err := reporter.ParsePerfPy(data, cpus)
	return r, KindPerfPy, err
}

// notReportError returns an error for a file that, unlike a report, does not start like a JSON object. For a page, the
// error names the report next to it.
func notReportError(path string, data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil
	}

	if ext := filepath.Ext(path); strings.EqualFold(ext, ".html") {
		report := strings.TrimSuffix(path, ext) + ".json"
		if _, err := os.Stat(report); err == nil {
			return fmt.Errorf("is the page; the report is %s in the same directory", filepath.Base(report))
		}
		return errors.New("is a page, not a report")
	}

	return errors.New("is not a report of perfagent or perf.py")
}

// isJournal reports whether the file that begins with data is a journal. It examines the first line or, if that line is
// damaged, the file name.
func isJournal(path string, data []byte) bool {
	first, _, _ := bytes.Cut(data, []byte{'\n'})
	return bytes.HasPrefix(first, []byte(`{"journal":`)) || filepath.Ext(path) == ".jsonl"
}

// readWhole reads the file at path. If the file is larger than reporter.MaxFileSize, it returns an error.
func readWhole(path string) ([]byte, error) {
	const most = reporter.MaxFileSize
	data, err := durable.ReadFile(path, most)
	var tooLarge *durable.SizeError
	switch {
	case errors.Is(err, durable.ErrDirectory):
		return nil, errors.New("is a directory, not a report")
	case errors.As(err, &tooLarge) && tooLarge.Size > 0:
		return nil, fmt.Errorf("is %d MiB large: only perfagent plot and merge read reports of more than %d MiB",
			tooLarge.Size>>20, most>>20)
	case errors.As(err, &tooLarge):
		return nil, fmt.Errorf("is larger than the %d MiB that a report may have", most>>20)
	}
	return data, err
}

// readError returns err with the path, unless err already contains it.
func readError(path string, err error) error {
	if pathErr := errors.Unwrap(err); pathErr != nil && strings.Contains(err.Error(), path) {
		return fmt.Errorf("read report: %w", err)
	}
	if words := err.Error(); strings.HasPrefix(words, "is ") || strings.HasPrefix(words, "has ") { // no subject
		return fmt.Errorf("%s %w", path, err)
	}
	return fmt.Errorf("read report %s: %w", path, err)
}
