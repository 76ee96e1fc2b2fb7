//go:build e2e

package campaign

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// shortJob returns a job that takes some tens of milliseconds.
func (tr trial) shortJob(code int) job {
	return job{tr.TempDir(), tr.random.IntN(8), tr.random.IntN(64), 5 + tr.random.IntN(35), code}
}

// perfagent starts perfagent in a new directory.
func (tr trial) perfagent(args ...string) *process {
	tr.Helper()
	return launch(tr, clitest.Perfagent(tr, args...))
}

// strike kills the victim at the chosen time, and waits until all processes have ended. It returns perfagent's exit
// code, or -1 if perfagent was killed.
func (tr trial) strike(p *process, j job) int {
	tr.Helper()
	if tr.sound {
		return p.wait(tr)
	}
	time.Sleep(tr.after)
	switch tr.victim {
	case ofPerfagent:
		p.kill(tr)
	case ofJob:
		p.killJob(j.story(tr).pid)
	case ofBoth:
		p.killGroup(tr)
	}
	return p.wait(tr)
}

// killRun kills perfagent, its job, or both.
func killRun(tr trial) outcome {
	j := tr.shortJob(7)
	page := []string{"-i10ms", "--no-page"}[tr.random.IntN(2)]
	p := tr.perfagent(append([]string{"run", "--interval", "10ms", "--out", "out", "--summary", "line",
		page, "--"}, j.words(tr)...)...)
	return tr.auditRun(p, j, tr.strike(p, j))
}

// auditRun checks the files of a run in the directory "out".
func (tr trial) auditRun(p *process, j job, code int) outcome {
	tr.Helper()
	s := j.story(tr)
	tr.auditJob(p, j, s, code)

	dir := filepath.Join(p.Dir, "out")
	o := tr.auditFiles(dir)
	o.killed = code == -1 || code == 128+9
	for _, path := range glob(tr, dir, "node-0.json") {
		wantReport(tr, path, s, j.end, code == 128+9 || tr.victim == ofBoth && s.ended == 0)
	}
	for _, path := range reportsSaid(p.Dir, p.stderr.String()) {
		if !clitest.Exists(path) {
			tr.Errorf("%s was said to be there: %s", path, p.stderr.String())
		}
	}
	switch {
	case code != -1 && (o.reports != 1 || o.journals+o.torn > 0):
		tr.Errorf("perfagent ended with %d: %+v: %s", code, o, p.stderr.String())
	case s.begun > 0 && o.reports+o.journals+o.torn == 0:
		tr.Errorf("the job began, and nothing is known of it")
	}
	tr.wantClean(p.Dir, "out")
	return o
}

// auditJob checks that the job ended normally, unless the job was the victim.
func (tr trial) auditJob(p *process, j job, s story, code int) {
	tr.Helper()
	said := p.stdout.String()
	if s.begun > 1 || s.signals > 0 || said != "said\n" &&
		(said != "" || s.ended == 1 || tr.victim == ofPerfagent && s.begun == 1) {
		tr.Errorf("the job was harmed: %+v, stdout %q", s, p.stdout.String())
	}
	if code != -1 && code != j.end && (tr.sound || tr.victim != ofJob || code != 128+9) {
		tr.Errorf("exit code %d: %s", code, p.stderr.String())
	}
	if tr.victim != ofPerfagent {
		return
	}
	if s.begun != s.ended || code != -1 && s.begun == 0 {
		tr.Errorf("the job did not end by itself: %+v", s)
	}
	if status, orphan := p.statuses[s.pid]; orphan && s.begun > 0 && status.ExitStatus() != j.end {
		tr.Errorf("the job ended with %v", status)
	}
}

// glob returns the files with the given name in all runs of a directory.
func glob(tr trial, dir, name string) []string {
	tr.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", name))
	if err != nil {
		tr.Fatal(err)
	}
	return paths
}

// auditFiles checks that all files with final names in the runs of a directory are complete.
func (tr trial) auditFiles(dir string) (o outcome) {
	tr.Helper()
	for _, path := range glob(tr, dir, "*") {
		name := filepath.Base(path)
		switch {
		case strings.HasSuffix(name, ".tmp"):
		case filepath.Ext(name) == ".json":
			reportertest.ReadFile(tr, path)
			o.reports++
		case filepath.Ext(name) == ".html":
			if !strings.HasSuffix(clitest.Read(tr, path), "</html>\n") {
				tr.Errorf("%s is not whole", path)
			}
		case filepath.Ext(name) == ".jsonl" && tr.auditJournal(path):
			o.journals++
		case filepath.Ext(name) == ".jsonl":
			o.torn++
		default:
			tr.Errorf("what is %s?", path)
		}
	}
	if o.reports+o.journals+o.torn == 0 {
		o.none++
	}
	return o
}

// auditJournal checks that a journal is readable up to its last complete sample. It reports whether the journal has a
// first line. If the line is missing, perfagent was killed while writing it.
func (tr trial) auditJournal(path string) bool {
	tr.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tr.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if !bytes.HasSuffix(lines[0], []byte("\n")) {
		return false
	}
	samples := int64(0)
	for _, line := range lines[1:] {
		if bytes.HasPrefix(line, []byte(`{"sample"`)) && bytes.HasSuffix(line, []byte("}\n")) {
			samples++
		}
	}
	r, err := reportfile.Read(path, 0)
	if err != nil {
		tr.Errorf("%s: %v\n%s", path, err, data)
		return true
	}
	for _, n := range r.Nodes {
		if n.Sampling == nil || n.Sampling.Samples != samples {
			tr.Errorf("%s: read sampling %+v, want the %d samples of its complete lines", path, n.Sampling, samples)
		}
	}
	show := tr.perfagent("show", path)
	if code := show.wait(tr); code != 0 {
		tr.Errorf("show %s: exit code %d: %s", path, code, show.stderr.String())
	}
	return true
}

// wantClean checks that perfagent removes all of its files below the directories of reports, outs, in dir. A run that
// was killed before its first sample counts as ended once its journal is old, so wantClean makes the files older.
func (tr trial) wantClean(dir string, outs ...string) {
	tr.Helper()
	for _, out := range outs {
		out = filepath.Join(dir, out)
		if !clitest.Exists(out) {
			continue
		}
		earlier := time.Now().Add(-time.Hour)
		for _, path := range filesBelow(tr, out) {
			if err := os.Chtimes(path, earlier, earlier); err != nil {
				tr.Error(err)
			}
		}
		prune := tr.perfagent("prune", "--force", "--keep", "0", "--out", out)
		code := prune.wait(tr)
		if left := filesBelow(tr, out); code != 0 || len(left) > 0 {
			tr.Errorf("prune: exit code %d; left: %v: %s%s", code, left, prune.stdout.String(), prune.stderr.String())
		}
	}
}

// filesBelow returns all files below a directory.
func filesBelow(tr trial, dir string) (paths []string) {
	tr.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		tr.Fatal(err)
	}
	return paths
}
