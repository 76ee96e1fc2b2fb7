package collector

import (
	"errors"
	"slices"

	"github.com/perfagent/perfagent/collector/host"
)

// A Failure is a reason why a source, or one of its files, had no values, with the number of times it occurred.
type Failure struct {
	Source string
	File   string `json:",omitempty"` // "" = the whole source
	Why    string
	Count  int64
}

// noteFailures counts the reasons why sources failed.
func (s *Sampler) noteFailures(r *host.Reading) {
	if len(r.Failed) == 0 {
		return
	}
	for _, source := range host.Sources() {
		for _, err := range unwrapJoined(r.Failed[source]) {
			s.noteFailure(source, err)
		}
	}
}

// unwrapJoined flattens joined errors into a list.
func unwrapJoined(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, unwrapJoined(e)...)
	}
	return all
}

func (s *Sampler) noteFailure(source string, err error) {
	f := Failure{Source: source, Why: err.Error(), Count: 1}
	if of := (host.FileError{}); errors.As(err, &of) {
		f.File = of.File
	}
	i := slices.IndexFunc(s.rec.Failures, func(old Failure) bool { return old.Source == source && old.Why == f.Why })
	switch {
	case i >= 0:
		s.rec.Failures[i].Count++
	case len(s.rec.Failures) < maxFailures:
		s.rec.Failures = append(s.rec.Failures, f)
	}
}
