// Package wire reads what a job says about its own work: StatsD and DogStatsD lines and JSON records into an [Event],
// a body in Prometheus' text format 0.0.4 into a [Sample] each.
//
// The parsers are functions of bytes. They keep nothing of a line, and reading a line allocates nothing, apart from
// strings with escapes and numbers of more than 32 characters. What they return shares memory with the line and with
// the Event or [PrometheusReader], so it is valid until the next line.
//
// Input is not trusted. Whatever the bytes are, the result is an Event or a [Reason], never a panic.
package wire

// Bounds of what is read, in bytes where nothing else is said.
const (
	MaxLine = 8 << 10 // of a line; the JSON records "transfers" and "proxystore" may be longer
	MaxText = 200     // of a name, a tag (key and value), a key, a set's member, an attribute, a unit
	MaxTags = 16      // tags of a series
)

// maxNumber is the largest size of a number that counts. It is that of package opstats; larger ones are not finite.
const maxNumber = 1e100
