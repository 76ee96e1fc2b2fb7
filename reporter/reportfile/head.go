package reportfile

import (
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// ReadHead reads the head of a report or a journal, from the beginning of the file. Of perf.py's JSON, which has
// none, the error is reporter.ErrForeign.
func ReadHead(path string) (*reporter.Head, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, readError(path, err)
	}
	defer f.Close()

	var start [64]byte
	n, _ := f.ReadAt(start[:], 0) // what is wrong with it shows when more is read
	var head *reporter.Head
	st, err := f.Stat()
	switch {
	case err != nil:
	case isJournal(path, start[:n]):
		head, err = journal.ReadHead(f)
	default:
		head, err = reporter.ReadHead(f, st.Size())
	}
	if err != nil {
		return nil, readError(path, err)
	}
	return head, nil
}
