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

// A Merger merges reports of which the series do not fit into memory together. The series of each node go to a
// temporary file as they are read; the numbers stay in memory. A result that would be larger than 128 MiB keeps every
// number but fewer points: the series of all nodes are halved until it fits. A point then has the sample of the first
// of the two it stands for, the lesser minimum, the greater maximum, and the plain mean of the two means: the seconds
// behind each are not in a report. Its use:
//
//  1. Pack each node, in any order and from several goroutines, and Add what Pack returns, in one order;
//  2. merge Sources, which have the numbers, with Merge or diagnosis.Merge;
//  3. Encode the result: where all points fit, the same bytes as if all had been merged in memory.
type Merger struct {
	limit int
	dir   string
	file  *os.File
	end   int64

	level    atomic.Int32   // how often each series is halved
	thinnest bool           // the last halving made no difference
	size     int            // bytes that the series take in the report
	entries  []*spooledNode // in the order of the file
	byName   map[string]*spooledNode
	hash     maphash.Seed
	sources  []SourceReport
}

// A spooledNode is a node in the file.
type spooledNode struct {
	from     string // path of its report
	at       int64
	size     int      // of its series
	bareSize int      // see Packed
	keys     []string // of its samples: when they are read again, they may come in another order
	hash     uint64
}

// A PackedNode is a node on its way into a Spool.
type PackedNode struct {
	name     string
	numbers  *Node
	whole    *Node  // thinned
	level    int32  // how often
	hash     uint64 // of the series before
	bareSize int    // the size of the seriesText of the numbers
	data     []byte // the seriesText of the whole
}

// NewMerger returns a spool with a temporary file in a directory. Close removes it.
func NewMerger(dir string) (*Merger, error) { return newMerger(dir, mergedSize) }

func newMerger(dir string, limit int) (*Merger, error) {
	s := &Merger{limit: limit, dir: dir, byName: make(map[string]*spooledNode), hash: maphash.MakeSeed()}
	return s, s.create()
}

// create begins a new file. Where the system allows, it has no name from the beginning, so that nothing is left
// behind whatever happens.
func (s *Merger) create() (err error) {
	s.file, err = os.CreateTemp(s.dir, ".perfagent-merge-*.tmp")
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	s.end = 0
	_ = os.Remove(s.file.Name())
	return nil
}

// Close removes the temporary file.
func (s *Merger) Close() {
	s.file.Close()
	_ = os.Remove(s.file.Name()) // gone already but on Windows
}

// Pack takes a node of a report, which belongs to the spool from then on.
func (s *Merger) Pack(name string, n *Node) (*PackedNode, error) {
	p := &PackedNode{name: name, numbers: n.WithoutSeries(), whole: n, hash: s.seriesHash(n)}
	bare, err := p.numbers.encodeSeries()
	if err != nil {
		return nil, err
	}
	p.bareSize = len(bare)
	return p, p.settle(s.level.Load())
}

// settle thins a node to a level, and encodes its series.
func (p *PackedNode) settle(level int32) (err error) {
	for ; p.level < level; p.level++ {
		p.whole.halve()
	}
	p.data, err = p.whole.encodeSeries()
	return err
}

// Add adds a node of the report at path. Nodes of one report come one after the other. A node that the spool has with
// other series is an error.
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

// fit thins the series until a report with so many other bytes keeps its limit.
func (s *Merger) fit(others int) error {
	for others+s.size > s.limit {
		if err := s.thin(); err != nil {
			return err
		}
		if s.thinnest {
			return tooLarge(others+s.size, s.limit)
		}
	}
	return nil
}

// put writes the series of a node.
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

// Sources returns the reports that were added, without their series.
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

// Encode writes a report that was merged from Sources, with its series: node by node, what the function of this name
// returns. each is called with every node, in the order of the file.
func (s *Merger) Encode(out io.Writer, merged *Report, each func(name string, n *Node)) error {
	numbers, err := merged.encodedSize()
	if err != nil {
		return err
	}
	if err := s.fit(numbers); err != nil {
		return err
	}

	bare := &Report{Schema: merged.Schema, Run: merged.Run, Nodes: map[string]*Node{}}
	frame, err := encode(bare, len(merged.Nodes))
	if err != nil {
		return err
	}
	at := bytes.LastIndex(frame, []byte(emptyNodes)) // others may be evidence of the verdict
	head, tail := frame[:at:at], frame[at+len(emptyNodes):]
	if _, err := out.Write(append(head, openNodes...)); err != nil {
		return err
	}

	type member struct {
		name string
		node *Node
		text []byte
	}
	names, separator := slices.Sorted(maps.Keys(merged.Nodes)), "" // as encoding/json sorts
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

// The frame of the nodes in a report.
const (
	emptyNodes = `"nodes": {}`
	openNodes  = `"nodes": {`
	closeNodes = "\n  }"
)

// encodeMember returns a node as it is in a report, with the line break before it.
func encodeMember(name string, n *Node) ([]byte, error) {
	data, err := Encode(&Report{Nodes: map[string]*Node{name: n}})
	_, data, _ = bytes.Cut(data, []byte(openNodes))
	return bytes.TrimSuffix(data, []byte(closeNodes+"\n}\n")), err
}

// whole returns a node of the result with its series.
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

// read returns a node with nothing but its series.
func (e *spooledNode) read(file io.ReaderAt) (*Node, error) {
	data := make([]byte, e.size)
	_, err := file.ReadAt(data, e.at)
	_, data, _ = bytes.Cut(data, []byte(`"": `))
	n, rows, errNode := readNode(newReader(bytes.NewBuffer(data)), ColumnFilter{All: true})
	if err := errors.Join(err, errNode); err != nil {
		return nil, fmt.Errorf("merge: read the temporary file: %w", err)
	}

	read := n.Samples
	n.Samples = Samples{Keys: e.keys}
	for _, key := range e.keys {
		column := read.Column(key)
		if column == nil { // nothing in it was measured
			column = absentNumbers(rows)
		}
		n.Samples.Columns = append(n.Samples.Columns, column)
	}
	return n, nil
}

// encodeSeries returns a member of a report's nodes with nothing but the series of a node. It has as many bytes more
// than that of another node with the same ranks as the two nodes differ by in a report, if only their series differ.
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

// seriesHash returns a hash of a node's series, as they were read.
func (s *Merger) seriesHash(n *Node) uint64 {
	var h maphash.Hash
	h.SetSeed(s.hash)
	add := func(key string, list []float64) {
		fmt.Fprintf(&h, "%q %d\n", key, len(list))
		_ = binary.Write(&h, binary.LittleEndian, list) // a hash takes everything
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
			add(name+"\n"+key, slices.Concat(band.Min, band.Mean, band.Max))
		}
	}
	return h.Sum64()
}

// twoRecordings returns the error for a node that is in two files.
func twoRecordings(name, a, b string, err error) error {
	return fmt.Errorf("merge: node %s is in %s and in %s: %w", text.Printable(text.Clip(name, 40)), a, b, err)
}

func tooLarge(size, limit int) error {
	return fmt.Errorf("merge: the report takes %d bytes even without its series; %d are the limit", size, limit)
}

// encodedSize returns the number of bytes that Encode returns.
func (r *Report) encodedSize() (int, error) {
	var size counter
	err := EncodeTo(&size, r)
	return int(size), err
}

// A counter counts the bytes that are written to it.
type counter int

// Write implements io.Writer.
func (c *counter) Write(data []byte) (int, error) {
	*c += counter(len(data))
	return len(data), nil
}

// halve merges neighbouring points of the node's series, as a ring does. The node
// gets new slices; the input's slices stay as they are.
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
		if _, ok := envelope[n.Samples.Keys[i]]; !ok { // perf.py's samples stand for themselves
			envelope[n.Samples.Keys[i]] = Band{column, column, column}.Fold(2, nil)
		}
		samples.Columns = append(samples.Columns, fold(column, 2, func(i, _ int) float64 { return column[i] }))
	}

	n.Samples, n.Envelope = samples, envelope
	n.Ranks = n.Ranks.withEnvelopes(func(_ string, r *Rank) Envelope { return r.Envelope.halved() })
}

// halved merges neighbouring points.
func (e Envelope) halved() Envelope {
	out := make(Envelope, len(e))
	for key, b := range e {
		out[key] = b.Fold(2, nil)
	}
	return out
}
