package wire

import (
	"unicode/utf8"

	"github.com/perfagent/perfagent/opstats"
)

// A Kind is the kind of an Event.
type Kind uint8

// The kinds of events. Each comment lists the fields of Event that are used in addition to Series and At.
const (
	Nothing         Kind = iota // an empty line
	Timing                      // Values (ms), Rate, Key, Bytes and HasBytes; or Failed
	Counter                     // Values, Rate
	Gauge                       // Values: the new value
	GaugeDelta                  // Values: the change
	Value                       // Values, Rate, Text (the unit, or empty)
	Set                         // Text: a member
	Attribute                   // Attribute
	Transfer                    // Transfer, Rank; Series is the transfer's name
	TransferFailure             // Text ("transfer", "notification" or "kv_expired"), Rank; Series as above
	TransferData                // Data (an object of lists), Rank; Series is the transfer's name
	ProxyStore                  // Data (an object of metrics), Version, Text (the id); no Series
	Mark                        // Text; no Series
)

// A Dialect determines the meaning of a gauge with a sign: a change in StatsD, a value in DogStatsD.
type Dialect uint8

// The dialects.
const (
	StatsD Dialect = iota
	DogStatsD
)

// A Version is a version of ProxyStore: major, minor, patch.
type Version [3]int

// An Event is the content of one line. Parse reuses the Event for the next line and overwrites its slices.
type Event struct {
	Kind      Kind
	Series    []byte    // NAME, or NAME{k="v",…}
	Values    []float64 // at least one if the kind uses Values
	Rate      float64   // sampling rate, above 0 and at most 1
	At        float64   // time of the event, in Unix seconds; 0 = unknown
	Text      []byte
	Key       []byte  // nil if there is no key
	Bytes     float64 // size of the object, if HasBytes
	HasBytes  bool
	Failed    bool             // the operation failed; there are no Values
	Attribute any              // a string, a float64 or a bool
	Rank      int              // −1 = unknown
	Transfer  opstats.Transfer // without End
	Data      []byte           // a JSON object
	Version   Version

	reason  Reason // first reason for rejection
	builder seriesBuilder
	members []member
}

// reset empties the Event but keeps its memory.
func (e *Event) reset() {
	e.Kind, e.Series, e.Values, e.Rate, e.At = Nothing, nil, e.Values[:0], 1, 0
	e.Text, e.Key, e.Data, e.HasBytes, e.Failed, e.Rank = nil, nil, nil, false, false, -1
	e.reason = Accepted
	e.builder.n, e.members = 0, e.members[:0]
}

// refuse records a reason for rejection, unless r is Accepted or there already is a reason.
func (e *Event) refuse(r Reason) {
	if e.reason == Accepted {
		e.reason = r
	}
}

// tag adds a tag to the series.
func (e *Event) tag(key, value []byte) { e.refuse(e.builder.add(key, value)) }

// name sets the series from a name and the tags.
func (e *Event) name(name []byte) {
	var reason Reason
	e.Series, reason = e.builder.series(name)
	e.refuse(reason)
}

// Parse parses a line, without its line end, into e. A line that begins with "{" is a JSON record in either dialect. An
// empty line is of the kind Nothing. If the result is not Accepted, e is invalid.
func (e *Event) Parse(line []byte, d Dialect) Reason {
	e.reset()
	switch {
	case len(line) == 0:
		return Accepted
	case !utf8.Valid(line):
		return Malformed
	case line[0] == '{':
		e.parseRecord(line)
	case len(line) > MaxLine:
		return TooLong
	default:
		e.parseStatsD(line, d)
	}
	return e.reason
}
