package agent

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// A renderedPage is a page, or why there is none.
type renderedPage struct {
	pieces pieces
	err    error
}

// Pieces keep what is written. Of a string they make no copy: most of a page is part of the program.
type pieces []string

// Write implements io.Writer.
func (p *pieces) Write(data []byte) (int, error) { return p.WriteString(string(data)) }

// WriteString implements io.StringWriter.
func (p *pieces) WriteString(s string) (int, error) {
	*p = append(*p, s)
	return len(s), nil
}

// copyTo writes the pieces, one after the other.
func (p pieces) copyTo(w io.Writer) error {
	for _, s := range p {
		if _, err := io.WriteString(w, s); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
	}
	return nil
}

// startPage renders the page of a report while the report itself is being written. It returns nil if no page is wanted.
func (s *session) startPage(r *reporter.Report) <-chan renderedPage {
	if s.o.HTML == Never {
		return nil
	}

	page := make(chan renderedPage, 1)
	go func() {
		// A panic in a picture must not cost the job its exit code.
		defer func() {
			if v := recover(); v != nil {
				page <- renderedPage{err: fmt.Errorf("write page: %v", v)}
			}
		}()

		var made renderedPage
		made.err = plotter.WritePage(&made.pieces, r, plotter.PageOptions{Siblings: s.output.siblings()})
		page <- made
	}()

	return page
}

const (
	// mostSiblings is how many pages of other nodes a page links.
	mostSiblings = 100

	// siblingsPatience is how long a page waits for their names on a file system that hangs.
	siblingsPatience = time.Second
)

// siblings returns the names of the pages of other nodes that are beside the report by now. Of a
// directory that cannot be read there are none.
func (o *output) siblings() []string {
	if o == nil || o.journal == nil {
		return nil
	}

	own := plotter.PagePath(o.journal.ReportPath())
	entries, _ := patience.Ask(siblingsPatience, func() []os.DirEntry {
		list, _ := os.ReadDir(filepath.Dir(own))
		return list
	})

	var out []string
	for _, e := range entries {
		if page, _ := filepath.Match("node-*.html", e.Name()); page && e.Name() != filepath.Base(own) && len(out) < mostSiblings {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return out
}

// savePage writes the page beside the report at path and returns its path, or "" if there is none. It
// logs an error in one line, and gives up on a file system that hangs.
func (o *output) savePage(path string, page <-chan renderedPage) string {
	if path == "" || page == nil {
		return ""
	}

	name := plotter.PagePath(path)
	err, ok := patience.Ask(diskPatience, func() error {
		made := <-page
		if made.err != nil {
			return made.err
		}
		return reportfile.WritePicture(name, o.page == name, made.pieces.copyTo)
	})
	if !ok {
		err = fmt.Errorf("write page %s: no answer within %v", name, diskPatience)
	}
	if err != nil {
		o.log.Warn(err.Error())
		return ""
	}
	o.page = name

	return name
}
