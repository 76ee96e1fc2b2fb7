package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// diskTimeout is how long a disk or a kernel file that hangs may delay the start of the job or the
// return of its exit code.
const diskTimeout = 5 * time.Second

// An output writes the files of a recording. It is an observer of the run, for the journal.
type output struct {
	journal    *journal.Journal // nil if no directory can be written
	createErr  error            // why not
	missing    []reporter.Missing
	log        *zap.Logger
	createdOut atomic.Bool // the directory for the reports is the default one, and was made for this recording

	marks         string // the file in which the job says what it does, an absolute path; "" if there is none
	shared        bool   // other recordings of the node may follow it, too
	reportWritten bool   // the report has been written before, and may be replaced
	page          string // the page that was written and may be replaced; "" = none yet

	// rankPartName is the name of the report, without extension, once the recording has learned of other ranks.
	// Before, and without any, it is "", and the report has the journal's name.
	rankPartName string
}

// openOutput claims a name in OUT/RUN-ID. If that cannot be written, it claims one in a new temporary
// directory, and logs one line.
func openOutput(options Options, head journal.Head) *output {
	o := &output{log: options.Log}
	dir := filepath.Join(options.Out, head.Run.ID)

	var err, errTemp error
	o.journal, err = createJournal(dir, head, func() (string, error) {
		if options.isDefaultOut {
			o.makeOut(options.Out)
		}
		return dir, os.MkdirAll(dir, 0o777)
	})
	if err == nil {
		return o
	}

	o.journal, errTemp = createJournal(os.TempDir(), head, func() (string, error) {
		return os.MkdirTemp("", "perfagent-")
	})
	if errTemp == nil {
		o.addMissing(reporter.ReportElsewhere, fmt.Errorf("%w; the report goes to %s", err, o.journal.ReportPath()))
		return o
	}

	o.createErr = fmt.Errorf("%w; nor can the temporary directory: %w", err, errTemp)
	o.addMissing(reporter.NoReportFile, fmt.Errorf("%w; there will be no report file", o.createErr))

	return o
}

// ignoreName is the file by which git leaves out a directory and what is in it, itself included.
const ignoreName = ".gitignore"

// makeOut makes the default directory for the reports, unless it is there. Git does not see it: the user has not
// asked for it, and what is built from a checkout with untracked files is stamped as modified.
func (o *output) makeOut(out string) {
	if os.Mkdir(out, 0o777) == nil {
		o.createdOut.Store(true)
		_ = os.WriteFile(filepath.Join(out, ignoreName), []byte("*\n"), 0o666) // a full disk is met again
	}
}

// createJournal makes a directory and the journal in it. where names the directory in the error of a
// timeout.
func createJournal(where string, head journal.Head, makeDir func() (string, error)) (*journal.Journal, error) {
	return withDiskTimeout("create journal in "+where, func() (*journal.Journal, error) {
		dir, err := makeDir()
		if err != nil {
			return nil, fmt.Errorf("create directory: %w", err)
		}
		j, err := journal.Create(dir, head)
		if err != nil {
			os.Remove(dir) // only if it is empty
		}
		return j, err
	})
}

// errDiskTimeout is why a disk was given up.
var errDiskTimeout = errors.New("no answer")

// withDiskTimeout asks a disk, and gives up with errHangs if it hangs. what is asked is in the error. A panic is an
// error, too: in a goroutine of its own it would cost the job its exit code.
func withDiskTimeout[T any](what string, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	a, ok := timeout.Call(diskTimeout, func() (a answer) {
		defer recoverAs(what, &a.err)
		a.value, a.err = ask()
		return a
	})
	if !ok {
		a.err = fmt.Errorf("%s: %w within %v", what, errDiskTimeout, diskTimeout)
	}

	return a.value, a.err
}

// recoverAs makes an error of a panic in what is done: it must not cost a job its exit code. It is deferred.
func recoverAs(what string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%s: %v", what, v)
	}
}

// addMissing records in the report and in the log that something does not work.
func (o *output) addMissing(code reporter.Code, err error) {
	o.missing = append(o.missing, reporter.Missing{What: "report", Code: code, Why: err.Error()})
	o.log.Error(err.Error()) // shown at every --log-level
}

func (o *output) begin(*collector.Recording) {}

// observe journals a sample.
func (o *output) observe(s *collector.Sample, rec *collector.Recording) {
	if o.journal != nil {
		o.journal.Observe(s, rec)
	}
}

// end stops the journal, so that the report can include its error.
func (o *output) end() []reporter.Missing {
	if o.journal == nil {
		return o.missing
	}
	if err := o.journal.Stop(diskTimeout); err != nil {
		return append(o.missing, reporter.Missing{What: "journal", Code: reporter.JournalFailed, Why: err.Error()})
	}

	return o.missing
}

// signal journals a signal that this process was sent.
func (o *output) signal(s collector.Signal) {
	if o.journal != nil {
		o.journal.Signal(s)
	}
}

// rename gives the report another name, without extension, than its journal has. Before it is written.
func (o *output) rename(name string) {
	if o.journal != nil && !strings.HasPrefix(filepath.Base(o.journal.ReportPath()), name+".") {
		o.rankPartName = name
	}
}

// reportPath returns the name that the report is to get.
func (o *output) reportPath() string {
	if o.rankPartName != "" {
		return filepath.Join(filepath.Dir(o.journal.ReportPath()), o.rankPartName+".json")
	}
	return o.journal.ReportPath()
}

// journalPath returns the journal's file; "" if there is none.
func (o *output) journalPath() string {
	if o.journal == nil {
		return ""
	}
	return o.journal.Path()
}

// abandon removes the files of a job that never started.
func (o *output) abandon() {
	if o.journal == nil {
		return
	}

	_ = o.journal.Stop(diskTimeout)
	_ = o.journal.Remove()
	o.removeMarks()
	dir := filepath.Dir(o.journal.Path())
	if os.Remove(dir) == nil { // only when nothing else is in it
		o.removeOut(filepath.Dir(dir))
	}
}

// removeOut removes the directory for the reports if nothing is in it that is not ours.
func (o *output) removeOut(out string) {
	if left, err := os.ReadDir(out); err == nil && len(left) == 1 && o.createdOut.Load() {
		os.Remove(filepath.Join(out, ignoreName))
	}
	os.Remove(out)
}

// save writes the report, by fill, removes the journal, and returns the report's path. The error says why the
// report could not be written anywhere. save gives up on a file system that hangs.
func (o *output) save(fill func(io.Writer) error) (path string, err error) {
	if o.journal == nil {
		return "", o.createErr
	}

	path, err = withDiskTimeout("write report "+o.reportPath(), func() (string, error) { return o.write(fill) })
	if err == nil {
		return path, nil
	}
	hangs := errors.Is(err, errDiskTimeout)
	path, errTemp := withDiskTimeout("write report", func() (string, error) {
		path, errTemp := writeElsewhere(filepath.Base(o.reportPath()), fill)
		switch {
		case hangs: // so does what would be done to the journal
		case errTemp == nil:
			o.removeJournal()
		default:
			_ = o.journal.Sync()
		}
		return path, errTemp
	})
	if errTemp != nil {
		return "", o.lost(err)
	}
	o.log.Warn(fmt.Sprintf("%v; the report is %s", err, path))

	return path, nil
}

// lost says in one line that the journal is all that there will be.
func (o *output) lost(err error) error {
	err = fmt.Errorf("%w; partial data is in %s", err, o.journal.Path())
	o.log.Warn(err.Error())

	return err
}

// write writes the report in the place that was claimed, and removes the journal.
func (o *output) write(fill func(io.Writer) error) (path string, err error) {
	path = o.reportPath()
	err = o.refresh(fill)
	for k := 2; errors.Is(err, fs.ErrExist); k++ { // another program ignored our claim
		path = fmt.Sprintf("%s.%d.json", trimExt(o.reportPath()), k)
		err = reportfile.WriteNew(path, fill)
	}
	if err == nil {
		o.removeJournal()
	}

	return path, err
}

// refresh writes the report of an active recording. The first call takes the name that the journal
// claimed; later calls replace the file.
func (o *output) refresh(fill func(io.Writer) error) error {
	if o.reportWritten {
		return reportfile.Write(o.reportPath(), fill)
	}

	err := reportfile.WriteNew(o.reportPath(), fill)
	o.reportWritten = err == nil

	return err
}

func (o *output) removeJournal() {
	if err := o.journal.Remove(); err != nil {
		o.log.Warn(fmt.Sprintf("remove journal: %v", err))
	}
	o.removeMarks()
}

// writeElsewhere writes a report into a new temporary directory.
func writeElsewhere(name string, fill func(io.Writer) error) (path string, err error) {
	dir, err := os.MkdirTemp("", "perfagent-")
	if err != nil {
		return "", err
	}

	path = filepath.Join(dir, name)
	if err := reportfile.WriteNew(path, fill); err != nil {
		os.Remove(dir)
		return "", err
	}

	return path, nil
}

func trimExt(path string) string { return path[:len(path)-len(filepath.Ext(path))] }
