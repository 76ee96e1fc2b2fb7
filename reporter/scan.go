package reporter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/internal/text"
)

const (
	// MaxFileSize is the maximum size in bytes of a report that is read whole. A merged report of a thousand nodes is
	// smaller (see Merge).
	MaxFileSize = 256 << 20
	// maxValueSize is the maximum size in bytes of a node, or of any other value, in a report file.
	maxValueSize = 256 << 20
	// maxNodes limits the memory for a file with very many tiny nodes.
	maxNodes = 1 << 20
)

// ColumnFilter selects columns of the nodes' series. The numbers of other columns are skipped, which is faster than
// reading them.
type ColumnFilter struct {
	Samples   []string // keys of the samples, such as timestamp
	Envelope  []string // keys of the envelope, such as cpu_pct_per_cpu_avg
	Timelines bool     // timelines of operations and transfers: see OperationTimeline
	All       bool     // every column of both
}

func (w ColumnFilter) hasSample(key string) bool { return w.All || slices.Contains(w.Samples, key) }

func (w ColumnFilter) hasBand(key string) bool {
	if w.All || slices.Contains(w.Envelope, key) {
		return true
	}
	_, isTimeline := ParseTimelineKey(key)
	return w.Timelines && isTimeline
}

// NodeFunc is called for each node, with the run that all nodes share.
type NodeFunc = func(run *Run, name string, n *Node) error

// ErrForeign is the error of Decode and Scan for data that are not a perfagent report.
var ErrForeign = errors.New("is not a perfagent report")

// Scan reads a perfagent report node by node, with only one node in memory at a time. The report may have any size,
// with up to 256 MiB per node. Scan calls node for each node, in the order of the file, with the whole run. The callee
// may keep and modify the node. It is the node that Decode would return, but with only the wanted columns of Samples
// and Envelope; Samples.Len is 0 if no wanted key has a value. Scan also returns the run.
//
// An error from node ends the scan and is returned unchanged. Other errors are the same as Decode's; node may already
// have been called for nodes before the fault in the file.
func Scan(file io.ReaderAt, size int64, wanted ColumnFilter, node NodeFunc) (*Run, error) {
	r, err := scanReport(file, size, wanted, node)
	if err != nil {
		return nil, err
	}
	return &r.Run, nil
}

// scanReport implements Scan. Its result has no nodes.
func scanReport(file io.ReaderAt, size int64, wanted ColumnFilter, node NodeFunc) (*Report, error) {
	s := scanner{file: file, size: size, limit: maxValueSize, wanted: wanted, seen: make(map[string]bool)}
	var stopped error
	err := s.readReport(func(name string) error {
		n, err := s.node(name)
		if err != nil {
			return err
		}
		stopped = node(&s.report.Run, name, n)
		return stopped
	})
	switch {
	case stopped != nil:
		return nil, stopped
	case err != nil:
		return nil, s.explain(err)
	}
	return &s.report, nil
}

// scanner reads a report file.
type scanner struct {
	file   io.ReaderAt
	size   int64
	limit  int64 // maxValueSize, except in tests
	wanted ColumnFilter

	input  *boundedReader
	in     *reader
	report Report          // without nodes
	seen   map[string]bool // keys of the report
	taken  bool            // the nodes were read
	// secondPass reports that this is the second pass over the file, which is needed if the nodes come before the
	// schema or the run.
	secondPass bool
}

// readReport reads the report in one pass, or in two if the nodes come before the schema or the run. take reads the
// value of a node.
func (s *scanner) readReport(take func(name string) error) error {
	switch err := s.pass(take); {
	case err != nil || s.taken:
		return err
	case !s.seen["schema"]:
		return ErrForeign
	case !s.seen["nodes"]:
		return errNoNodes
	}
	s.secondPass = true
	err := s.pass(take)
	if err == nil && !s.taken { // the file has changed since the first pass
		err = errNoNodes
	}
	return err
}

var errNoNodes = errors.New("has no nodes")

// open starts reading the file.
func (s *scanner) open() {
	s.input = &boundedReader{file: io.NewSectionReader(s.file, 0, s.size), limit: s.limit}
	s.in = newReader(s.input)
	s.in.input = s.input
}

// pass reads the file from its start to its end.
func (s *scanner) pass(take func(name string) error) error {
	s.open()
	if s.in.PeekKind() != '{' {
		return ErrForeign
	}
	err := s.in.object("", func(quoted []byte) error { return s.member(strings.ToLower(unquote(quoted)), take) })
	if err != nil {
		return err
	}
	return s.end()
}

// end checks that nothing follows the report.
func (s *scanner) end() error {
	if s.in.PeekKind() != 0 {
		return &positionError{s.in.InputOffset(), errors.New("there is more text after the end of the report")}
	}
	if _, err := s.in.ReadToken(); err != io.EOF {
		return err
	}
	return nil
}

// member reads a member of the report. It reads the nodes with take if the schema and the run are known, and skips them
// otherwise.
func (s *scanner) member(key string, take func(name string) error) error {
	if !slices.Contains([]string{"schema", "run", "nodes"}, key) {
		return s.in.SkipValue()
	}
	if s.seen[key] && !s.secondPass {
		return &positionError{s.in.InputOffset(), fmt.Errorf("%q appears twice", key)}
	}

	s.seen[key] = true
	switch {
	case key == "nodes" && (s.secondPass || s.seen["schema"] && s.seen["run"]):
		s.taken = true
		return s.eachNode(take)
	case s.secondPass:
		return s.in.SkipValue()
	case key == "nodes":
		return s.eachNode(func(string) error { return s.in.SkipValue() })
	case key == "run":
		return s.read(&s.report.Run)
	}
	err := s.read(&s.report.Schema)
	if err == nil {
		err = CheckSchema(s.report.Schema, Schema)
	}
	return err
}

// read reads a small value.
func (s *scanner) read(into any) error { return s.locate(s.in.decode(into)) }

// locate adds the position in the file to err, unless err is nil, a syntax error or an error of the input.
func (s *scanner) locate(err error) error {
	if syntax := (*jsontext.SyntacticError)(nil); err == nil || s.input.err != nil || errors.As(err, &syntax) {
		return err
	}
	return &positionError{s.in.at, err}
}

// eachNode calls take for each node. take must read the node's value.
func (s *scanner) eachNode(take func(name string) error) error {
	switch s.in.PeekKind() {
	case 'n':
		return errNoNodes
	case '{', 0:
	default:
		return &positionError{s.in.InputOffset(), errors.New("nodes are not an object")}
	}

	names := make(map[string]bool)
	err := s.in.object("", func(quoted []byte) error {
		name := unquote(quoted)
		if err := checkName(name, names); err != nil {
			return &positionError{s.in.InputOffset(), err}
		}
		names[name] = true
		return take(name)
	})
	if err == nil && len(names) == 0 {
		err = errNoNodes
	}
	return err
}

// checkName returns an error if name is not a node index or is already in before, or if before has maxNodes names.
func checkName(name string, before map[string]bool) error {
	_, ok := parseIndex(name)
	switch {
	case !ok:
		return fmt.Errorf("has a node %q, which is not a node index", text.Printable(text.Clip(name, 40)))
	case before[name]:
		return fmt.Errorf("node %s appears twice", name)
	case len(before) == maxNodes:
		return fmt.Errorf("has more than %d nodes", maxNodes)
	}
	return nil
}

// parseIndex returns the index of a node or rank with the given name. It returns false if the name is not a number in
// strconv's format.
func parseIndex(name string) (index int, ok bool) {
	i, err := strconv.ParseUint(name, 10, 31)
	return int(i), err == nil && strconv.FormatUint(i, 10) == name
}

// node reads the node with the given name. Its errors contain the position in the file.
func (s *scanner) node(name string) (*Node, error) {
	n, err := readNode(s.in, s.wanted)
	if err != nil {
		return nil, s.locate(fmt.Errorf("node %s: %w", name, err))
	}
	return n, nil
}

// readNode reads a node. An error refers to the value at r.at.
func readNode(r *reader, wanted ColumnFilter) (*Node, error) {
	if r.PeekKind() == 'n' {
		_, err := r.value()
		return nil, cmp.Or(err, errors.New("null is not a node"))
	}

	at, n, rows := r.InputOffset(), &Node{}, 0
	err := r.decode(n, custom(r, func(s *Samples) (err error) {
		rows, err = s.read(r, wanted)
		return err
	}), custom(r, func(e *Envelope) error { return e.read(r, wanted) }))
	if err == nil {
		r.at, err = at, n.complete(rows)
	}
	return n, err
}

// boundedReader limits the input of a decoder, which keeps the text of each value in memory.
type boundedReader struct {
	file  io.Reader
	limit int64 // of a value's size
	read  int64
	mark  int64 // start of the current value, or slightly before
	err   error // read error other than io.EOF
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.read-b.mark > b.limit {
		tooLarge := fmt.Errorf("the value that begins here has more than %d MiB, the limit of a node", b.limit>>20)
		b.err = &positionError{b.mark, tooLarge}
		return 0, b.err
	}
	n, err := b.file.Read(p[:min(len(p), 1<<20)])
	b.read += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// positionError is an error with its position in the file, in bytes.
type positionError struct {
	at  int64
	err error
}

func (p *positionError) Error() string { return p.err.Error() }
func (p *positionError) Unwrap() error { return p.err }

// explain converts an error of the scan to the error for the caller, which contains the line number.
func (s *scanner) explain(err error) error {
	var wrong *positionError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &wrong):
		return s.inLine(wrong.at, text.Printable(wrong.Error()))
	case s.input.err != nil && errors.Is(err, s.input.err):
		return s.input.err
	case err == io.EOF:
		return s.inLine(s.size, cutOff)
	case !errors.As(err, &syntax):
		return err
	case errors.Is(syntax.Err, io.ErrUnexpectedEOF):
		return s.inLine(syntax.ByteOffset, cutOff)
	}
	words := text.Printable(syntax.Err.Error())
	var at [1]byte
	if _, err := s.file.ReadAt(at[:], syntax.ByteOffset); err == nil && (at[0] == 'N' || at[0] == 'I') {
		words += ": NaN and Infinity, which Python writes, are not JSON; write null or leave the key out"
	}
	return s.inLine(syntax.ByteOffset, words)
}

const cutOff = "the file ends in the middle (cut off?)"

// inLine returns an error with the text what and the line of position at.
func (s *scanner) inLine(at int64, what string) error {
	head := io.NewSectionReader(s.file, 0, min(at, s.size))
	buf := make([]byte, 64<<10)
	for line := 1; ; {
		n, err := head.Read(buf)
		line += bytes.Count(buf[:n], []byte{'\n'})
		if err != nil {
			return fmt.Errorf("line %d: %s", line, what)
		}
	}
}
