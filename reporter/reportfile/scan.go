package reportfile

import (
	"errors"
	"fmt"
	"os"

	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/reporter"
)

// maxScanSize is the size of the largest report that is read node by node.
const maxScanSize = 4 << 30

// Scan reads a report node by node, like reporter.Scan: only a few nodes are in memory at a time. Like Read, it reads
// journals, perf.py's JSON, pipes and devices whole, with all columns. An error from node ends the scan and is returned
// unchanged; other errors are the same as Read's.
func Scan(path string, cpus int, wanted reporter.ColumnFilter, node reporter.NodeFunc) (*reporter.Run, error) {
	var stopped error
	run, err := scan(path, wanted, func(run *reporter.Run, name string, n *reporter.Node) error {
		stopped = node(run, name, n)
		return stopped
	})
	switch {
	case stopped != nil:
		return nil, stopped
	case errors.Is(err, reporter.ErrForeign):
		return scanWhole(path, cpus, node)
	case err != nil:
		return nil, readError(path, err)
	}
	return run, nil
}

// scan reads a perfagent report. For any other file, the error is reporter.ErrForeign.
func scan(path string, wanted reporter.ColumnFilter, node reporter.NodeFunc) (*reporter.Run, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	switch {
	case f.journal:
		return nil, reporter.ErrForeign
	case f.size > maxScanSize:
		return nil, fmt.Errorf("is %d MiB large; a report has at most %d", f.size>>20, maxScanSize>>20)
	}
	run, err := reporter.Scan(f, f.size, wanted, node)
	if errors.Is(err, reporter.ErrForeign) && f.size > reporter.MaxFileSize {
		err = fmt.Errorf("is not a perfagent report, and with %d MiB too large to be read as another one", f.size>>20)
	}
	return run, err
}

// ReadWithoutSeries reads a report without the series of its nodes, except for the columns that
// reporter.Node.WithoutSeries keeps. It reads only the beginning of a report of one node. Errors are the same as
// Read's.
func ReadWithoutSeries(path string, cpus int) (*reporter.Report, error) {
	if f, err := openRegular(path); err == nil {
		defer f.Close()
		if r, ok := reporter.ScanWithoutSeries(f, f.size); ok {
			return r, nil
		}
	}

	out := &reporter.Report{Schema: reporter.Schema, Nodes: make(map[string]*reporter.Node)}
	run, err := Scan(path, cpus, reporter.RequiredColumns(), func(_ *reporter.Run, name string, n *reporter.Node) error {
		out.Nodes[name] = n.WithoutSeries()
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Run = *run

	return out, nil
}

// A regularFile is an open file with a size.
type regularFile struct {
	*os.File
	size    int64
	journal bool // whether the file is a journal
}

// openRegular opens a regular file. Its error is reporter.ErrForeign for a pipe, a device, or a missing
// file.
func openRegular(path string) (*regularFile, error) {
	// Call Stat before opening: opening and closing a FIFO would be visible to its writer.
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return nil, reporter.ErrForeign
	}
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err != nil {
		f.Close()
		return nil, err
	}
	var start [64]byte
	n, _ := f.ReadAt(start[:], 0) // later reads return the error
	return &regularFile{f, st.Size(), isJournal(path, start[:n])}, nil
}

// scanWhole implements Scan by calling Read.
func scanWhole(path string, cpus int, node reporter.NodeFunc) (*reporter.Run, error) {
	r, err := Read(path, cpus)
	if err != nil {
		return nil, err
	}
	for _, name := range r.NodeNames() {
		if err := node(&r.Run, name, r.Nodes[name]); err != nil {
			return nil, err
		}
	}
	return &r.Run, nil
}
