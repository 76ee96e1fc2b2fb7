package exporter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

// A view holds the documents made from one copy of the Recording. Each document is made when it is first requested.
type view struct {
	made    time.Time
	asked   atomic.Int64 // time of the last request, in ns since 1970
	samples int64
	page    func() document
	report  func() document
}

// A document is a response body, ready to be sent.
type document struct {
	contentType   string
	plain, zipped []byte
	err           error
}

func (e *Exporter) newView(rec *collector.Recording) *view {
	report := sync.OnceValues(func() (r *reporter.Report, err error) {
		defer recoverAs(&err)
		return e.options.Report(rec), nil
	})

	v := &view{
		made: time.Now(), samples: rec.Samples,
		page: sync.OnceValue(func() document {
			return render("text/html; charset=utf-8", report, func(w io.Writer, r *reporter.Report) error {
				return plotter.WritePage(w, r, plotter.PageOptions{Live: e.refreshInterval()})
			})
		}),
		report: sync.OnceValue(func() document {
			return render("application/json", report, func(w io.Writer, r *reporter.Report) error {
				data, err := reporter.Encode(r)
				if err == nil {
					_, err = w.Write(data)
				}
				return err
			})
		}),
	}

	v.asked.Store(v.made.UnixNano())
	return v
}

// recoverAs turns a panic into an error, because a panic must not end the process during the job. It must be deferred.
func recoverAs(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v", p)
	}
}

// render makes a document from a report with write, plain and compressed.
func render(
	contentType string, report func() (*reporter.Report, error), write func(io.Writer, *reporter.Report) error,
) (d document) {
	defer recoverAs(&d.err)
	d.contentType = contentType
	r, err := report()
	if err != nil {
		return document{err: err}
	}

	var plain, zipped bytes.Buffer
	if err := write(&plain, r); err != nil {
		return document{err: err}
	}

	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestSpeed) // the level is valid
	_, _ = z.Write(plain.Bytes())                        // to memory
	_ = z.Close()
	d.plain, d.zipped = plain.Bytes(), zipped.Bytes()
	return d
}
