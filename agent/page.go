package agent

import (
	"bytes"
	"fmt"
	"runtime"

	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// manySamples is how many kept samples make reports and pages that leave much garbage.
const manySamples = 250

// A renderedPage is a page in bytes, or why there is none.
type renderedPage struct {
	data []byte
	err  error
}

// startPage makes the page of a report that keeps so many samples, while the report itself is
// being written. It returns nil if no page is asked for.
func (s *session) startPage(r *reporter.Report, samples int) <-chan renderedPage {
	if s.o.HTML == Never {
		return nil
	}

	page := make(chan renderedPage, 1)
	go func() {
		// A mistake in a picture must not cost the job its exit code.
		defer func() {
			if v := recover(); v != nil {
				page <- renderedPage{err: fmt.Errorf("write page: %v", v)}
			}
		}()

		if s.o.TakeOver && samples > manySamples {
			runtime.GC() // else the page would add to our peak memory
		}

		var out bytes.Buffer
		out.Grow(1 << 18) // most pages fit
		err := plotter.WritePage(&out, r, plotter.PageOptions{})
		page <- renderedPage{out.Bytes(), err}
	}()

	return page
}

// savePage writes the page of the report at path beside it and returns its path; "" if there is
// none. What goes wrong is one line; a file system that hangs is given up.
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
		return reportfile.WritePicture(name, made.data, o.page == name)
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
