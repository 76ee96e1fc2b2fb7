package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

// addHTMLFlag declares the flag of the commands that write a page beside a report.
func addHTMLFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "html", "auto", "the page beside the report: auto (write it) or never")
}

// rendered is a page in bytes, or why there is none.
type rendered struct {
	data []byte
	err  error
}

// manySamples is how many make reports and pages that leave garbage which counts.
const manySamples = 250

// startPage makes the page of a report, of a number of kept samples, while the report
// itself is being written; nil where none is asked for.
func (o *sampleOptions) startPage(r *reporter.Report, samples int) <-chan rendered {
	if o.html == "never" {
		return nil
	}
	page := make(chan rendered, 1)
	go func() {
		// A mistake in a picture must not cost the job its exit code.
		defer func() {
			if v := recover(); v != nil {
				page <- rendered{err: fmt.Errorf("write page: %v", v)}
			}
		}()
		if samples > manySamples {
			runtime.GC() // else the page would add to the greatest memory that we took
		}
		data, err := renderPage(r)
		page <- rendered{data, err}
	}()
	return page
}

func renderPage(r *reporter.Report) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(1 << 18) // most pages fit
	err := plotter.WritePage(&out, r, plotter.PageOptions{})
	return out.Bytes(), err
}

// savePage writes the page of the report at path beside it and tells where; "" where
// there is none. What goes wrong is one line; a file system that hangs is given up.
func (p *place) savePage(path string, page <-chan rendered) string {
	if path == "" || page == nil {
		return ""
	}
	name := pageName(path)
	err, ok := patience.Ask(diskPatience, func() error {
		made := <-page
		if made.err != nil {
			return made.err
		}
		return reporter.WritePicture(name, made.data, p.page == name)
	})
	if !ok {
		err = fmt.Errorf("write page %s: no answer within %v", name, diskPatience)
	}
	if err != nil {
		p.log.Warn(err.Error())
		return ""
	}
	p.page = name
	return name
}

// pageName is where the page of a report stands: beside it.
func pageName(report string) string {
	if ext := filepath.Ext(report); strings.EqualFold(ext, ".json") {
		report = report[:len(report)-len(ext)]
	}
	return report + ".html"
}
