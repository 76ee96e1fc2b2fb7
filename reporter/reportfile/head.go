package reportfile

import (
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// ReadHead reads the head of a report or a journal from the beginning of the file. For perf.py's JSON, which has no
// head, the error is reporter.ErrForeign.
func ReadHead(path string) (*reporter.Head, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, readError(path, err)
	}
	defer f.Close()

	var head *reporter.Head
	if f.journal {
		head, err = journal.ReadHead(f)
	} else {
		head, err = reporter.ReadHead(f, f.size)
	}
	if err != nil {
		return nil, readError(path, err)
	}
	return head, nil
}
