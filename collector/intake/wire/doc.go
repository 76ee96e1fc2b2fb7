// Package wire parses operations that a job reports. It parses a StatsD or DogStatsD line or a JSON record into an
// [Event], and a body in Prometheus' text format 0.0.4 into [Sample] values.
//
// The parsers are pure functions of bytes and keep no part of a line. They allocate only for strings with escapes and
// for numbers of more than 32 characters. Results share memory with the line and with the Event or [PrometheusReader],
// so they are valid only until the next line.
//
// Input is not trusted. Any bytes result in an Event or a [Reason], never in a panic.
package wire

// The limits on input, in bytes unless stated.
const (
	MaxLine = 8 << 10 // length of a line; the JSON records "transfers" and "proxystore" may be longer
	MaxText = 200     // length of a name, a tag (key plus value), a key, a member of a set, an attribute or a unit
	MaxTags = 16      // number of tags of a series
)

// maxNumber is the maximum absolute value of a number, as in package opstats. Larger numbers are treated as not finite.
const maxNumber = 1e100
