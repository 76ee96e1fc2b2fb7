package reporter

import (
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"
)

// The series of a node in the file of a Spool: the stride of its samples, and whether it has one; the columns; the
// envelope; each rank's name and envelope. Counts and the stride are varints, texts and lists begin with their
// length, numbers are 8 bytes, little endian.

// appendSeries appends what of a node goes into the file of a Spool.
func appendSeries(out []byte, n *Node) []byte {
	if n.Sampling == nil {
		out = append(out, 0)
	} else {
		out = binary.AppendUvarint(append(out, 1), uint64(n.Sampling.Stride))
	}

	out = binary.AppendUvarint(out, uint64(len(n.Samples.Keys)))
	for i, key := range n.Samples.Keys {
		out = appendNumbers(appendText(out, key), n.Samples.Columns[i])
	}

	out = appendEnvelope(out, n.Envelope)
	out = binary.AppendUvarint(out, uint64(len(n.Ranks)))
	for _, name := range slices.Sorted(maps.Keys(n.Ranks)) {
		out = appendEnvelope(appendText(out, name), n.Ranks[name].Envelope)
	}

	return out
}

func appendEnvelope(out []byte, e Envelope) []byte {
	out = binary.AppendUvarint(out, uint64(len(e)))
	for key, band := range e {
		out = appendText(out, key)
		for _, list := range [...]Numbers{band.Min, band.Mean, band.Max} {
			out = appendNumbers(out, list)
		}
	}

	return out
}

func appendText(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

func appendNumbers(out []byte, list []float64) []byte {
	out = slices.Grow(binary.AppendUvarint(out, uint64(len(list))), 8*len(list))
	for _, v := range list {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}

	return out
}

// parseSeries returns a node with nothing but the series that appendSeries has written.
func parseSeries(data []byte) (*Node, error) {
	r := seriesReader{rest: data}
	n := new(Node)
	if r.uvarint() == 1 {
		n.Sampling = &Sampling{Stride: int64(r.uvarint())}
	}

	for range r.count() {
		n.Samples.Keys = append(n.Samples.Keys, r.text())
		n.Samples.Columns = append(n.Samples.Columns, r.numbers())
	}

	n.Envelope = r.envelope()
	if ranks := r.count(); ranks > 0 {
		n.Ranks = make(map[string]*Rank, ranks)
		for range ranks {
			n.Ranks[r.text()] = &Rank{Envelope: r.envelope()}
		}
	}

	if r.short {
		return nil, io.ErrUnexpectedEOF
	}
	return n, nil
}

// A seriesReader takes one value after the other from what appendSeries has written.
type seriesReader struct {
	rest  []byte
	short bool // less was there than was asked for; all values are zero from there on
}

func (r *seriesReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.short = nil, true
		return 0
	}

	r.rest = r.rest[n:]
	return v
}

// count returns a number of things, each of which takes a byte or more.
func (r *seriesReader) count() int {
	v := r.uvarint()
	if v > uint64(len(r.rest)) {
		r.rest, r.short = nil, true
		return 0
	}

	return int(v)
}

func (r *seriesReader) text() string {
	n := r.count()
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *seriesReader) numbers() []float64 {
	n := r.count()
	if n > len(r.rest)/8 {
		r.rest, r.short = nil, true
		return nil
	}

	list := make([]float64, n)
	for i := range list {
		list[i] = math.Float64frombits(binary.LittleEndian.Uint64(r.rest[8*i:]))
	}
	r.rest = r.rest[8*n:]
	return list
}

func (r *seriesReader) envelope() Envelope {
	n := r.count()
	if n == 0 {
		return nil
	}

	e := make(Envelope, n)
	for range n {
		key := r.text()
		e[key] = Band{Min: r.numbers(), Mean: r.numbers(), Max: r.numbers()}
	}
	return e
}
