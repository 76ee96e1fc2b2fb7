package agent

import (
	"bytes"
	"cmp"
	"io"
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
	if path == "" || !s.wantsPage(r) {
		return ""
	}

	name, out := plotter.PagePath(path), s.output
	_, err := withDiskTimeout("write page "+name, func() (struct{}, error) {
		page, err := renderPage(r, plotter.PageOptions{Siblings: out.siblings()})
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, reportfile.WritePicture(name, out.page == name, func(w io.Writer) error {
			_, err := page.WriteTo(w)
			return err
		})
	})
	if err != nil {
		s.log.Warn(err.Error())
		return ""
	}
	out.page = name

	return name
}

// wantsPage reports whether a report gets a page.
func (s *session) wantsPage(r *reporter.Report) bool {
	return s.o.HTML == Always || s.o.HTML != Never && summary.WorthPage(r)
}

// renderPage renders the page of r in memory. It is not written directly, because r may change while a disk hangs. A
// panic while drawing must not cost the job its exit code.
func renderPage(r *reporter.Report, o plotter.PageOptions) (page *bytes.Buffer, err error) {
	defer recoverAs("write page", &err)

	page = &bytes.Buffer{}
	return page, plotter.WritePage(page, r, o)
}
