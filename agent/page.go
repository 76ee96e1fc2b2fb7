package agent

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

const (
	// mostSiblings is the maximum number of links to pages of other nodes.
	mostSiblings = 100

	// siblingsTimeout is how long savePage waits for the directory listing with the other nodes' pages, on a file
	// system that hangs.
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
