package agent

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

// diskTimeout is how long a hanging disk or kernel file may delay the start of the job or the report of its exit code.
const diskTimeout = 5 * time.Second

// An output writes the files of a recording. It is an observer of the run that writes the journal.
type output struct {
	journal    *journal.Journal // nil if no directory can be written
	createErr  error            // the reason if journal is nil
	missing    []reporter.Missing
	log        *zap.Logger
	createdOut atomic.Bool // Out is the default directory, and was created for this recording

	marks         string // absolute path of the marks file; "" if there is none
	shared        bool   // other recordings of the node may read the marks file
	reportWritten bool   // the report has been written, and may be replaced
	page          string // the page that was written and may be replaced; "" if there is none yet

	// rankPartName is the name of the report, without extension, once the recording has found other ranks. While it is
	// "", the report has the journal's name.
	rankPartName string
}

// openOutput claims a name in OUT/RUN-ID. If that directory cannot be written, openOutput claims a name in a new
// temporary directory, and logs one line.
func openOutput(options Options, head journal.Head) *output {
	o := &output{log: options.Log}
	dir := filepath.Join(options.Out, head.Run.ID)

	var err, errTemp error
	o.journal, err = createJournal(dir, head, func() (string, error) {
		// Hide the default directory from git, because the user did not ask for it, and a build from a checkout with
		// untracked files is stamped as modified.
		if options.isDefaultOut && os.Mkdir(options.Out, 0o777) == nil {
			o.createdOut.Store(true)
			_ = os.WriteFile(filepath.Join(options.Out, ignoreName), []byte("*\n"), 0o666) // later writes report a full disk
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
		o.addMissing(reporter.ReportElsewhere, fmt.Errorf("%w; the report goes to %s; --out names another place", err,
			o.journal.ReportPath()))
		return o
	}

	o.createErr = fmt.Errorf("%w; nor can the temporary directory: %w", err, errTemp)
	o.addMissing(reporter.NoReportFile, fmt.Errorf("%w; there will be no report file", o.createErr))

	return o
}

// ignoreName is the file that makes git ignore a directory and all its files, including itself.
const ignoreName = ".gitignore"

// createJournal creates a directory with makeDir, and the journal in it. place names the directory in errors.
func createJournal(place string, head journal.Head, makeDir func() (string, error)) (*journal.Journal, error) {
	return withDiskTimeout("create journal in "+place, func() (*journal.Journal, error) {
		dir, err := makeDir()
		if err != nil {
			return nil, fmt.Errorf("create directory %s: %w", place, err)
		}
		j, err := journal.Create(dir, head)
		if err != nil {
			os.Remove(dir) // only if it is empty
		}
		return j, err
	})
}

// errDiskTimeout is the error if a disk does not respond in time.
var errDiskTimeout = errors.New("no response")

// withDiskTimeout calls do, which uses a disk, and gives up with errDiskTimeout after diskTimeout. The errors for a
// timeout and for a panic begin with what. A panic becomes an error because in its goroutine it would cost the job its
// exit code.
func withDiskTimeout[T any](what string, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	r, ok := timeout.Call(diskTimeout, func() (r result) {
		defer recoverAs(what, &r.err)
		r.value, r.err = do()
		return r
	})
	if !ok {
		r.err = fmt.Errorf("%s: %w within %v", what, errDiskTimeout, diskTimeout)
	}

	return r.value, r.err
}

// recoverAs turns a panic into an error, because a panic must not cost a job its exit code. It must be deferred.
func recoverAs(what string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%s: %v", what, v)
	}
}

// addMissing records a failure in the report and in the log.
func (o *output) addMissing(code reporter.Code, err error) {
	o.missing = append(o.missing, reporter.Missing{What: "report", Code: code, Why: err.Error()})
	o.log.Error(err.Error()) // shown at every --log-level
}

func (o *output) begin(*collector.Recording) {}

// observe forwards a sample to the journal.
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

// signal writes s, a signal sent to this process, to the journal.
func (o *output) signal(s collector.Signal) {
	if o.journal != nil {
		o.journal.Signal(s)
	}
}

// rename sets the name of the report, without extension, if it differs from the journal's. Call it before the report is
// written.
func (o *output) rename(name string) {
	if o.journal != nil && !strings.HasPrefix(filepath.Base(o.journal.ReportPath()), name+".") {
		o.rankPartName = name
	}
}

// reportPath returns the path for the report.
func (o *output) reportPath() string {
	if o.rankPartName != "" {
		return filepath.Join(filepath.Dir(o.journal.ReportPath()), o.rankPartName+".json")
	}
	return o.journal.ReportPath()
}

// journalPath returns the journal's path, or "" if there is no journal.
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
	if os.Remove(dir) != nil { // only if it is empty
		return
	}
	out := filepath.Dir(dir)
	if left, err := os.ReadDir(out); err == nil && len(left) == 1 && o.createdOut.Load() {
		os.Remove(filepath.Join(out, ignoreName))
	}
	os.Remove(out)
}

// save writes the report with fill, removes the journal, and returns the report's path. If the disk is full or hangs,
// the report goes to a temporary directory. If that fails as well, the error is the reason for the first failure.
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
		case hangs: // the journal's file system hangs as well
		case errTemp == nil:
			o.removeJournal()
		default:
			_ = o.journal.Sync()
		}
		return path, errTemp
	})
	if errTemp != nil {
		err = fmt.Errorf("%w; partial data is in %s", err, o.journal.Path())
		o.log.Warn(err.Error())
		return "", err
	}
	o.log.Warn(fmt.Sprintf("%v; the report is %s", err, path))

	return path, nil
}

// write writes the report under the claimed name, or a numbered one if that is taken, and removes the journal.
func (o *output) write(fill func(io.Writer) error) (path string, err error) {
	path = o.reportPath()
	err = o.refresh(fill)
	for k := 2; errors.Is(err, fs.ErrExist); k++ { // another program took the name despite the claim
		path = fmt.Sprintf("%s.%d.json", trimExt(o.reportPath()), k)
		err = reportfile.WriteNew(path, fill)
	}
	if err == nil {
		o.removeJournal()
	}

	return path, err
}

// refresh writes the report of an active recording. The first call uses the name that the journal claimed; later calls
// replace the file.
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

// earlierTimeout limits how long the search for earlier runs may delay the report.
var earlierTimeout = 10 * time.Millisecond

// addEarlier adds the usage of earlier runs of the same command to r, the report of one node. The search takes more
// than a millisecond, so it is skipped for a run that is too short to be compared.
func (s *session) addEarlier(r *reporter.Report) {
	if len(r.Run.Command) == 0 || s.o.Compat != "" || r.Run.WallSeconds < reporter.MinComparedSeconds {
		return
	}
	earlier, _ := timeout.Call(earlierTimeout, func() (e *reporter.Earlier) {
		var err error
		defer recoverAs("damaged report", &err) // the report then has no earlier runs
		return catalog.Earlier(s.o.Out, s.nodeFileName(), r.Run.Command, time.Now().Add(earlierTimeout))
	})
	for _, n := range r.EachNode() {
		n.Earlier = earlier
	}
}

func trimExt(path string) string { return path[:len(path)-len(filepath.Ext(path))] }

const (
	// mostSiblings is the maximum number of links to pages of other nodes.
	mostSiblings = 100

	// siblingsTimeout limits how long savePage waits for the list of the other nodes' pages, because the file system
	// may hang.
	siblingsTimeout = time.Second
)

// siblings returns the names of the existing pages of other nodes in the report's directory, or nil if the directory
// cannot be read.
func (o *output) siblings() []string {
	if o == nil || o.journal == nil {
		return nil
	}

	own := plotter.PagePath(o.journal.ReportPath())
	entries, _ := timeout.Call(siblingsTimeout, func() []os.DirEntry {
		list, _ := os.ReadDir(filepath.Dir(own))
		return list
	})

	var out []string
	for _, e := range entries {
		page, _ := filepath.Match("node-*.html", e.Name())
		if page && e.Name() != filepath.Base(own) && len(out) < mostSiblings {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return out
}

// savePage writes the page of r next to the report at path and returns the page's path, or "" if no page is wanted or
// can be written. It logs an error in one line, and gives up on a file system that hangs.
func (s *session) savePage(path string, r *reporter.Report) string {
	if path == "" || s.o.HTML == Never || s.o.HTML != Always && !summary.WorthPage(r) {
		return ""
	}

	name, out := plotter.PagePath(path), s.output
	_, err := withDiskTimeout("write page "+name, func() (none struct{}, err error) {
		defer recoverAs("write page", &err) // a panic while drawing must not cost the job its exit code
		var page bytes.Buffer               // because r may change while a disk hangs
		if err := plotter.WritePage(&page, r, plotter.PageOptions{Siblings: out.siblings()}); err != nil {
			return none, err
		}
		return none, reportfile.WritePicture(name, out.page == name, bytesWriter(page.Bytes()))
	})
	if err != nil {
		s.log.Warn(err.Error())
		return ""
	}
	out.page = name

	return name
}
