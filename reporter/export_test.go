package reporter

import (
	"io"
)

// Unexported identifiers for tests.
const (
	MaxSampleKeys = maxSampleKeys
)

var (
	NewSpoolWithin = newMerger
	WhyAbsent      = whyMissing
	ScanReport     = scanReport
)

// Codes returns the table of codes.
func Codes() []Reason { return codeTable }

// ScanWithin scans with a limit on the size of a value.
func ScanWithin(file io.ReaderAt, size, limit int64) error {
	s := scanner{file: file, size: size, limit: limit, seen: make(map[string]bool)}
	return s.explain(s.readReport(func(name string) error { _, err := s.node(name); return err }))
}

// CSVColumns returns the names of the columns of a report's CSV without their units, and a function for their values.
// named reports whether a column for the node comes first.
func CSVColumns(r *Report) (named bool, names []string, values func(column int, n *Node) []float64) {
	t := newCSVTable(r)
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return t.named, names, func(column int, n *Node) []float64 { return t.columns[column].values(n) }
}

// Halve merges each pair of neighboring points of a node's series.
func Halve(n *Node) { n.halve() }

// MergeWithin merges in memory, and halves all series until the result fits, as a Merger does with a file.
func MergeWithin(inputs []SourceReport, limit int) (*Report, error) {
	r, err := Merge(inputs)
	for err == nil {
		size, errSize := r.encodedSize()
		if errSize != nil || size <= limit {
			return r, errSize
		}
		thinned := false
		for _, n := range r.Nodes {
			before := n.Samples.Len()
			n.halve()
			thinned = thinned || n.Samples.Len() < before
		}
		if !thinned {
			err = tooLarge(size, limit)
		}
	}
	return r, err
}
