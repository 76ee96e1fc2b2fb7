package collector

import (
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/collector/series"
)

// Work is what the job says of its own work while it runs: operations, counters, gauges, transfers.
type Work struct {
	// Keys are those of the time lines, as the envelope of a report has them.
	Keys []string
	// Lines has a column for each of the Keys and a bucket for each one of the Recording's Ring. It is nil while
	// there are no Keys.
	Lines *series.Ring
	// News is the newest sample of the Lines.
	News []series.Stat

	// Book is all that was said. It is nil while the Sampler receives: CopyBook returns a copy then.
	Book *book.Book

	intake *intake.Intake // nil after the end, and of a copy
}

// CopyBook returns a copy of the Book as it is now.
func (w *Work) CopyBook() *book.Book {
	if w.intake != nil {
		return w.intake.Book()
	}
	return w.Book.Clone()
}

// Clone returns a copy for another goroutine.
func (w *Work) Clone() *Work {
	if w == nil {
		return nil
	}
	c := &Work{Keys: slices.Clone(w.Keys), News: slices.Clone(w.News), Book: w.CopyBook()}
	if w.Lines != nil {
		c.Lines = w.Lines.Clone()
	}
	return c
}

// Draw adds a sample to the time lines. It comes before Recording.Add of the sample at the same time. The keys may
// only have got more.
func (w *Work) Draw(rec *Recording, keys []string, sample []series.Stat) {
	w.Keys, w.News = keys, sample
	switch {
	case len(keys) == 0:
		return
	case w.Lines == nil:
		w.Lines = rec.Ring.Beside(len(keys))
	case w.Lines.Width() < len(keys):
		w.Lines.Widen(len(keys))
	}
	w.Lines.AddStats(sample)
}

// Receive makes each sample take what the job has said to an Intake since the sample before. It is for before Run,
// which closes the Intake after the job's end.
func (s *Sampler) Receive(in *intake.Intake) {
	s.intake = in
	s.rec.Work = &Work{intake: in}
}

// receive takes what the job has said since the sample before. It returns the moments that the job marked.
func (s *Sampler) receive(at time.Time, closing bool) (moments marks.News) {
	if s.intake == nil {
		return moments
	}

	w := s.rec.Work
	if closing {
		w.Book, w.intake = s.intake.Close(), nil
		s.figures, w.Keys = w.Book.Take(at, s.figures[:0]), w.Book.Columns()
	} else {
		s.figures, w.Keys = s.intake.Collect(at, s.figures[:0])
	}
	w.Draw(s.rec, w.Keys, statsOf(w.News[:0], s.figures))

	marked, beyond := s.intake.Marks()
	moments.Lost.Marks = beyond
	for _, m := range marked {
		moments.Lines = append(moments.Lines, marks.Moment(m.Text, marks.UnixSeconds(m.At)))
	}

	return moments
}

// statsOf appends the summaries of figures to out.
func statsOf(out []series.Stat, figures []book.Figure) []series.Stat {
	for _, f := range figures {
		var s series.Stat
		s.Add(f.Mean, f.Weight)
		if s.Count > 0 {
			s.Min, s.Max = f.Min, f.Max
		}
		out = append(out, s)
	}
	return out
}
