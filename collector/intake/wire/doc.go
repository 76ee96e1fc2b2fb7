// Package wire parses operations reported by a job: a StatsD or DogStatsD line or a JSON record into an [Event], a body
// in Prometheus' text format 0.0.4 into [Sample] values.
//
// The parsers are functions of bytes. They keep no part of a line. They allocate only for strings with escapes and
// numbers of more than 32 characters. Results share memory with the line and with the Event or [PrometheusReader]: they
// are valid until the next line.
//
// Input is not trusted. Any bytes give an Event or a [Reason], never a panic.
package wire

// The limits of input, in bytes unless noted.
const (
	MaxLine = 8 << 10 // of a line; the JSON records "transfers" and "proxystore" may be longer
	MaxText = 200     // of a name, a tag (key plus value), a key, a set's member, an attribute, a unit
	MaxTags = 16      // number of tags of a series
)

// maxNumber is the largest absolute value of a number, as in package opstats; larger numbers count as not finite.
const maxNumber = 1e100
