package wire

import (
	"bytes"
	"slices"
	"strconv"
)

// telemetry is the prefix of the metrics that a Datadog client reports about itself.
var telemetry = []byte("datadog.dogstatsd.client.")

// parseStatsD parses NAME:VALUE[:VALUE…]|TYPE[|EXTENSION…], an event or a service check.
func (e *Event) parseStatsD(line []byte, d Dialect) {
	switch {
	case bytes.HasPrefix(line, []byte("_e{")):
		e.demand(e.parseMark(line[len("_e{"):]))
		return
	case bytes.HasPrefix(line, []byte("_sc|")), bytes.HasPrefix(line, telemetry):
		e.refuse(Ignored)
		return
	}

	name, rest, found := Cut(line, ':')
	e.demand(found && len(name) > 0)
	value, rest, _ := Cut(rest, '|')
	kind, rest, extended := Cut(rest, '|')
	if extended {
		d = e.extensions(rest, d)
	}
	e.readStatsDValue(kind, value, d)
	e.name(name)
}

// readStatsDValue parses the values according to the type.
func (e *Event) readStatsDValue(kind, value []byte, d Dialect) {
	switch string(kind) {
	case "c":
		e.Kind = Counter
	case "ms":
		e.Kind = Timing
	case "h", "d":
		e.Kind = Value
	case "g":
		e.Kind = Gauge
	case "s": // a member may contain colons
		e.Kind, e.Text = Set, value
		e.demand(len(value) > 0)
		if len(value) > MaxText {
			e.refuse(TooLong)
		}
		return
	default:
		e.refuse(Malformed)
		return
	}

	signs := e.values(value)
	switch {
	case e.Kind == Timing && slices.ContainsFunc(e.Values, func(v float64) bool { return v < 0 }):
		e.refuse(NotFinite)
	case e.Kind == Gauge && d == StatsD && signs > 0:
		e.Kind = GaugeDelta
		e.demand(signs == len(e.Values)) // either all values have a sign or none has
	}
}

// values parses VALUE[:VALUE…], and returns the number of values with a sign.
func (e *Event) values(list []byte) (signs int) {
	for more := true; more; {
		var part []byte
		part, list, more = Cut(list, ':')
		v, reason := parseDecimal(part)
		if reason != Accepted {
			e.refuse(reason)
			return 0
		}
		e.Values = append(e.Values, v)
		if part[0] == '+' || part[0] == '-' {
			signs++
		}
	}
	return signs
}

// extensions parses, in any order, @RATE, and the extensions that only DogStatsD has: #TAG,K:V,… and others. It returns
// the dialect of the line.
func (e *Event) extensions(list []byte, d Dialect) Dialect {
	for more := true; more; {
		var part []byte
		part, list, more = Cut(list, '|')
		switch {
		case bytes.HasPrefix(part, []byte("@")):
			e.rate(part[1:])
		case bytes.HasPrefix(part, []byte("#")):
			d = DogStatsD
			e.tagList(part[1:])
		default:
			d = DogStatsD
			e.demand(isDogStatsD(part))
		}
	}
	return d
}

// isDogStatsD reports whether part is an extension of DogStatsD that is ignored: T with a time in seconds, c:, e:, or a
// newer extension of the same form, such as card:.
func isDogStatsD(part []byte) bool {
	if at, isTime := bytes.CutPrefix(part, []byte("T")); isTime {
		return len(at) > 0 && digits(at) == len(at)
	}
	key, _, found := Cut(part, ':')
	return found && len(key) > 0 && !slices.ContainsFunc(key, func(c byte) bool { return c < 'a' || c > 'z' })
}

// rate parses the sampling rate.
func (e *Event) rate(text []byte) {
	rate, reason := parseDecimal(text)
	e.demand(reason == Accepted && rate > 0 && rate <= 1)
	e.refuse(checkFinite(1 / rate))
	e.Rate = rate
}

// tagList parses TAG,K:V,…
func (e *Event) tagList(list []byte) {
	for more := true; more; {
		var part []byte
		part, list, more = Cut(list, ',')
		if len(part) > 0 {
			key, value, _ := Cut(part, ':')
			e.tag(key, value)
		}
	}
}

// parseMark parses an event after "_e{": the lengths of the title and the text, the title, the text, and fields. It
// uses only the title and the time, and reports whether the event is valid.
func (e *Event) parseMark(rest []byte) bool {
	lengths, rest, found := bytes.Cut(rest, []byte("}:"))
	first, second, both := Cut(lengths, ',')
	title, err1 := strconv.ParseUint(string(first), 10, 31)
	text, err2 := strconv.ParseUint(string(second), 10, 31)
	end := title + 1 + text
	if !found || !both || err1 != nil || err2 != nil || title == 0 || uint64(len(rest)) < end || rest[title] != '|' {
		return false
	}

	after := rest[end:]
	for part := range bytes.SplitSeq(after, []byte("|")) {
		if at, ok := bytes.CutPrefix(part, []byte("d:")); ok {
			seconds, reason := parseDecimal(at)
			if reason != Accepted || !isMoment(seconds) {
				return false
			}
			e.At = seconds
		}
	}
	e.Kind, e.Text = Mark, rest[:title]

	return len(after) == 0 || after[0] == '|'
}

// isMoment reports whether a time in Unix seconds is in the years 1970 to 2199, as package opstats requires.
func isMoment(seconds float64) bool { return seconds >= 0 && seconds < 7258118400 }
