package reportfile

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// ReadHead reads the head of a report or a journal, from the beginning of the file. Of perf.py's JSON, which has
// none, the error is reporter.ErrForeign.
func ReadHead(path string) (*reporter.Head, error) {
	var head *reporter.Head
	err := readBeginning(path, func(f *os.File, isJournal bool) (err error) {
		if isJournal {
			head, err = journal.ReadHead(f)
		} else {
			head, err = reporter.ReadHead(f)
		}
		return err
	})

	return head, err
}

// ReadRanks reads when the ranks of the first node of a report began, by rank as decimal text. A time is zero if the
// report does not tell.
func ReadRanks(path string) (map[string]time.Time, error) {
	var ranks map[string]time.Time
	err := readBeginning(path, func(f *os.File, isJournal bool) (err error) {
		if isJournal {
			return errors.New("is a journal")
		}
		ranks, err = reporter.ReadRanks(f)
		return err
	})

	return ranks, err
}

// readBeginning opens a report or a journal for read.
func readBeginning(path string, read func(f *os.File, isJournal bool) error) error {
	f, err := openRegular(path)
	if err != nil {
		return readError(path, err)
	}
	defer f.Close()

	var start [64]byte
	n, err := f.ReadAt(start[:], 0)
	if err == nil || errors.Is(err, io.EOF) {
		err = read(f, isJournal(path, start[:n]))
	}
	if err != nil {
		return readError(path, err)
	}

	return nil
}
