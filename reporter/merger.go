package reporter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/internal/text"
)

// A Merger merges reports when their series do not fit into memory together. It writes the series of each node to a
// temporary file, and keeps the numbers in memory. A result that would be larger than 128 MiB keeps every number but
// fewer points: the series of all nodes are halved until it fits. Halving joins each pair of neighboring points into
// one with the sample of the first, the lesser minimum, the greater maximum, and the mean of the two means. The mean is
// unweighted, because a report does not contain the length of each point. To use a Merger:
//
//  1. Pack each node, in any order and from any goroutine, and Add the packed nodes from one goroutine;
//  2. merge Sources, which hold the numbers, with Merge or diagnosis.Merge;
//  3. Encode the result. If all points fit, the output is the same as if the reports had been merged in memory.
type Merger struct {
	limit int
	dir   string
	file  *os.File
	end   int64

	level    atomic.Int32   // number of halvings of each series
	thinnest bool           // the last halving made no difference
	size     int            // bytes of the series in the report
	entries  []*spooledNode // in the order of the file
	byName   map[string]*spooledNode
	hash     maphash.Seed
	sources  []SourceReport
}

// A spooledNode is a node in the temporary file.
type spooledNode struct {
	from     string // path of its report
	at       int64
	size     int      // of its series
	bareSize int      // see PackedNode
	keys     []string // of its samples, in their order, which reading may change
	hash     uint64
}

// A PackedNode is a node that is ready to be added to a Merger.
type PackedNode struct {
	name     string
	numbers  *Node
	whole    *Node  // with its series
	level    int32  // number of halvings
	hash     uint64 // of the series before halving
	bareSize int    // size of numbers.encodeSeries()
	data     []byte // whole.encodeSeries()
}

// NewMerger returns a Merger with a temporary file in dir. Close removes the file.
func NewMerger(dir string) (*Merger, error) { return newMerger(dir, mergedSize) }

func newMerger(dir string, limit int) (*Merger, error) {
	s := &Merger{limit: limit, dir: dir, byName: make(map[string]*spooledNode), hash: maphash.MakeSeed()}
	return s, s.create()
}

// create creates a new temporary file. If the system allows it, create removes the name of the file immediately, so
// that not even a crash leaves the file behind.
func (s *Merger) create() (err error) {
	s.file, err = os.CreateTemp(s.dir, ".perfagent-merge-*.tmp")
	if err != nil {
		return fmt.Errorf("merge: write a temporary file next to the merged report: %w", err)
	}
	s.end = 0
	_ = os.Remove(s.file.Name())
	return nil
}

// Close removes the temporary file.
func (s *Merger) Close() {
	s.file.Close()
	_ = os.Remove(s.file.Name()) // already removed, except on Windows
}

// Pack prepares a node of a report for Add. The caller must not use the node afterwards.
func (s *Merger) Pack(name string, n *Node) (*PackedNode, error) {
	p := &PackedNode{name: name, numbers: n.WithoutSeries(), whole: n, hash: s.seriesHash(n)}
	bare, err := p.numbers.encodeSeries()
	if err != nil {
		return nil, err
	}
	p.bareSize = len(bare)
	return p, p.settle(s.level.Load())
}

// settle halves the node until it has the given level, and encodes its series.
func (p *PackedNode) settle(level int32) (err error) {
	for ; p.level < level; p.level++ {
		p.whole.halve()
	}
	p.data, err = p.whole.encodeSeries()
	return err
}

// Add adds p, a node of the report at path. The nodes of a report must be added one after the other. If the node was
// already added with other series, Add returns an error.
func (s *Merger) Add(path string, run *Run, p *PackedNode) error {
	if n := len(s.sources); n == 0 || s.sources[n-1].Report.Nodes[p.name] != nil || s.sources[n-1].Path != path {
		s.sources = append(s.sources, SourceReport{path, &Report{Schema: Schema, Nodes: make(map[string]*Node)}})
	}
	source := s.sources[len(s.sources)-1]
	source.Report.Run = *run
	source.Report.Nodes[p.name] = p.numbers

	if had := s.byName[p.name]; had != nil {
		if had.hash != p.hash {
			return twoRecordings(p.name, had.from, path, errTwoRecordings)
		}
		return nil
	}

	if level := s.level.Load(); p.level < level {
		if err := p.settle(level); err != nil {
			return err
		}
	}
	e := &spooledNode{from: path, hash: p.hash, bareSize: p.bareSize, keys: p.whole.Samples.Keys}
	s.byName[p.name] = e
	if err := s.put(e, p.data); err != nil {
		return err
	}

	for s.size > s.limit && !s.thinnest {
		if err := s.thin(); err != nil {
			return err
		}
	}
	return nil
}

// fit halves the series until they fit into the limit together with the rest of the report, which is in merged.
func (s *Merger) fit(merged *Report) error {
	others, err := merged.encodedSize()
	for err == nil && others+s.size > s.limit {
		if err = s.thin(); err == nil && s.thinnest {
			err = tooLarge(others+s.size, s.limit)
		}
	}
	return err
}

// put appends data, the encoded series of e, to the file.
func (s *Merger) put(e *spooledNode, data []byte) error {
	if _, err := s.file.Write(data); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	e.at, e.size = s.end, len(data)
	s.end += int64(e.size)
	s.size += e.size - e.bareSize
	s.entries = append(s.entries, e)

	return nil
}

// Sources returns the added reports without their series.
func (s *Merger) Sources() []SourceReport { return s.sources }

// thin halves all series.
func (s *Merger) thin() error {
	old, entries := s.file, s.entries
	defer func() {
		old.Close()
		_ = os.Remove(old.Name())
	}()
	if err := s.create(); err != nil {
		return err
	}
	s.entries, s.size, s.thinnest = nil, 0, true
	s.level.Add(1)

	type halved struct {
		*spooledNode
		data  []byte
		fewer bool
	}
	return parallel.InOrder(len(entries), func(i int, emit func(halved) error) error {
		n, err := entries[i].read(old)
		if err != nil {
			return err
		}

		p := PackedNode{whole: n}
		points := n.Samples.Len()
		if err := p.settle(1); err != nil {
			return err
		}
		return emit(halved{entries[i], p.data, n.Samples.Len() < points})
	}, func(h halved) error {
		s.thinnest = s.thinnest && !h.fewer
		return s.put(h.spooledNode, h.data)
	})
}

// Encode writes merged, which was merged from Sources, with its series, node by node. It writes the bytes that the
// function Encode would return, and calls each for every node in the order of the file.
func (s *Merger) Encode(out io.Writer, merged *Report, each func(name string, n *Node)) error {
	if err := s.fit(merged); err != nil {
		return err
	}

	bare := &Report{Schema: merged.Schema, Run: merged.Run, Nodes: map[string]*Node{}}
	frame, err := encode(bare, len(merged.Nodes))
	if err != nil {
		return err
	}
	at := bytes.LastIndex(frame, []byte(emptyNodes)) // the evidence of the verdict may contain the same text
	head, tail := frame[:at:at], frame[at+len(emptyNodes):]
	if _, err := out.Write(append(head, openNodes...)); err != nil {
		return err
	}

	type member struct {
		name string
		node *Node
		text []byte
	}
	names, separator := slices.Sorted(maps.Keys(merged.Nodes)), "" // the order of encoding/json
	err = parallel.InOrder(len(names), func(i int, emit func(member) error) error {
		n, err := s.whole(names[i], merged.Nodes[names[i]])
		if err != nil {
			return err
		}
		text, err := encodeMember(names[i], n)
		if err != nil {
			return err
		}
		return emit(member{names[i], n, text})
	}, func(m member) error {
		_, err := out.Write(append([]byte(separator), m.text...))
		separator = ","
		each(m.name, m.node)
		return err
	})
	if err != nil {
		return err
	}

	_, err = out.Write(append([]byte(closeNodes), tail...))
	return err
}

// The text around the nodes in a report.
const (
	emptyNodes = `"nodes": {}`
	openNodes  = `"nodes": {`
	closeNodes = "\n  }"
)

// encodeMember encodes n as a member of a report's nodes, with the line break before it.
func encodeMember(name string, n *Node) ([]byte, error) {
	data, err := Encode(&Report{Nodes: map[string]*Node{name: n}})
	_, data, _ = bytes.Cut(data, []byte(openNodes))
	return bytes.TrimSuffix(data, []byte(closeNodes+"\n}\n")), err
}

// whole returns numbers, a node of the result, with its series.
func (s *Merger) whole(name string, numbers *Node) (*Node, error) {
	series, err := s.byName[name].read(s.file)
	if err != nil {
		return nil, err
	}

	n := numbers.WithSeries(series)
	if n.Sampling != nil {
		sampling := *n.Sampling
		sampling.Stride = series.Sampling.Stride
		n.Sampling = &sampling
	}
	return n, nil
}

// read returns a node with only the series of e.
func (e *spooledNode) read(file io.ReaderAt) (*Node, error) {
	data := make([]byte, e.size)
	_, err := file.ReadAt(data, e.at)
	_, data, _ = bytes.Cut(data, []byte(`"": `))
	n, errNode := readNode(newReader(bytes.NewBuffer(data)), ColumnFilter{All: true})
	if err := errors.Join(err, errNode); err != nil {
		return nil, fmt.Errorf("merge: read the temporary file: %w", err)
	}

	read := n.Samples
	n.Samples = Samples{Keys: e.keys}
	for _, key := range e.keys {
		column := read.Column(key)
		if column == nil { // it has no measured value
			column = absentNumbers(read.Len())
		}
		n.Samples.Columns = append(n.Samples.Columns, column)
	}
	return n, nil
}

// encodeSeries encodes only the series of n, as a member of a report's nodes. For two nodes that differ only in their
// series, the lengths of the results differ by as much as the lengths of the nodes in a report.
func (n *Node) encodeSeries() ([]byte, error) {
	series := &Node{Samples: n.Samples, Envelope: n.Envelope, Ranks: make(map[string]*Rank, len(n.Ranks))}
	if n.Sampling != nil {
		series.Sampling = &Sampling{Stride: n.Sampling.Stride}
	}
	for name, rank := range n.Ranks {
		series.Ranks[name] = &Rank{Envelope: rank.Envelope}
	}
	return encodeMember("", series)
}

// seriesHash returns a hash of the series of n, which must not have been halved.
func (s *Merger) seriesHash(n *Node) uint64 {
	var h maphash.Hash
	h.SetSeed(s.hash)
	add := func(key string, lists ...[]float64) {
		fmt.Fprintf(&h, "%q", key)
		for _, list := range lists {
			fmt.Fprintln(&h, len(list))
			_ = binary.Write(&h, binary.LittleEndian, list) // a hash accepts all writes
		}
	}
	for i, key := range n.Samples.Keys {
		add(key, n.Samples.Columns[i])
	}
	envelopes := map[string]Envelope{"": n.Envelope}
	for name, rank := range n.Ranks {
		envelopes[name] = rank.Envelope
	}
	for _, name := range slices.Sorted(maps.Keys(envelopes)) {
		for _, key := range envelopes[name].keys() {
			band := envelopes[name][key]
			add(name+"\n"+key, band.Min, band.Mean, band.Max)
		}
	}
	return h.Sum64()
}

// twoRecordings returns the error for a node that is in the files a and b.
func twoRecordings(name, a, b string, err error) error {
	return fmt.Errorf("merge: node %s is in %s and in %s: %w", text.Printable(text.Clip(name, 40)), a, b, err)
}

func tooLarge(size, limit int) error {
	return fmt.Errorf("merge: the report has %d bytes even without its series; the limit is %d", size, limit)
}

// encodedSize returns the length of Encode's output.
func (r *Report) encodedSize() (int, error) {
	var size counter
	err := EncodeTo(&size, r)
	return int(size), err
}

// A counter counts the bytes written to it.
type counter int

// Write implements io.Writer.
func (c *counter) Write(data []byte) (int, error) {
	*c += counter(len(data))
	return len(data), nil
}

// halve merges each pair of neighboring points of the node's series, as a full ring does. The node gets new slices; the
// old slices are unchanged.
func (n *Node) halve() {
	if n.Samples.Len() < 2 {
		return
	}
	if n.Sampling != nil {
		s := *n.Sampling
		s.Stride *= 2
		n.Sampling = &s
	}

	envelope := n.Envelope.halved()
	samples := Samples{Keys: n.Samples.Keys}
	for i, column := range n.Samples.Columns {
		if _, ok := envelope[n.Samples.Keys[i]]; !ok { // perf.py's samples have no envelope
			envelope[n.Samples.Keys[i]] = Band{column, column, column}.Fold(2, nil)
		}
		samples.Columns = append(samples.Columns, fold(column, 2, func(i, _ int) float64 { return column[i] }))
	}

	n.Samples, n.Envelope = samples, envelope
	n.Ranks = n.Ranks.withEnvelopes(func(_ string, r *Rank) Envelope { return r.Envelope.halved() })
}

// halved returns a copy of e in which each pair of neighboring points is merged.
func (e Envelope) halved() Envelope {
	out := make(Envelope, len(e))
	for key, b := range e {
		out[key] = b.Fold(2, nil)
	}
	return out
}
