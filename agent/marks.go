package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter/journal"
)

// marksExt is the extension of the marks file, to which the job writes its marks.
const marksExt = ".marks"

// openOutput claims the files of the recording. The marks file is for the job alone or, if shared is set, for all
// recordings of the node. Another recording may have created a shared file. There is no marks file if OUT cannot be
// written, or with perf.py's format, which has no field for marks.
func (s *session) openOutput(head journal.Head, shared bool) *output {
	o := openOutput(s.o, head)
	if o.journal == nil || len(o.missing) > 0 || s.o.Compat != "" {
		return o
	}

	path := trimExt(o.journal.ReportPath()) + marksExt
	if shared {
		path = filepath.Join(filepath.Dir(path), s.nodeFileName()) + marksExt
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return o
	}
	if !shared { // remove the marks of an earlier run that was killed
		if _, ok := timeout.Call(diskTimeout, func() error { return os.Remove(path) }); !ok {
			return o
		}
	}
	o.marks, o.shared = path, shared

	return o
}

// addJobInputs makes the Sampler read the job's marks and the Intake's operations.
func (s *session) addJobInputs(sampler *collector.Sampler) {
	if s.output.marks != "" {
		sampler.FollowMarks(s.output.marks, s.output.shared)
	}
	if s.intake != nil {
		sampler.CollectFrom(s.intake)
	}
}

// withMarksEnv returns c with the environment variable for its marks file, and without the phase of an outer perfagent.
// If there is no marks file, the job's marks go to the file of the outer perfagent.
func (s *session) withMarksEnv(c job.Command) job.Command {
	if s.output.marks == "" {
		return c
	}

	c.Env = append(slices.Clone(c.Env), marks.Variable+"="+s.output.marks)
	if os.Getenv(marks.PhaseVariable) != "" {
		c.Env = append(c.Env, marks.PhaseVariable+"=")
	}

	return c
}

// removeMarks removes the marks file, because the report contains the marks. A shared file is kept while another
// recording of the node has a journal.
func (o *output) removeMarks() {
	if o.marks != "" && !(o.shared && o.hasOtherJournal()) {
		os.Remove(o.marks) // the file does not exist if the job wrote no marks
	}
}

// hasOtherJournal reports whether there is another journal of the node.
func (o *output) hasOtherJournal() bool {
	dir, file := filepath.Split(o.marks)
	own, ext := filepath.Base(o.journal.Path()), filepath.Ext(o.journal.Path())
	entries, _ := os.ReadDir(dir)

	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		name := e.Name()
		return name != own && filepath.Ext(name) == ext && strings.HasPrefix(name, trimExt(file)+".")
	})
}
