package wire

import (
	"bytes"
	"strconv"
)

// telemetry begins the names of what a client of Datadog says about itself.
var telemetry = []byte("datadog.dogstatsd.client.")

// parseStatsD reads NAME:VALUE[:VALUE…]|TYPE[|EXTENSION…], an event or a service check.
func (e *Event) parseStatsD(line []byte, d Dialect) Reason {
	switch {
	case bytes.HasPrefix(line, []byte("_e{")):
		return e.parseMark(line[len("_e{"):])
	case bytes.HasPrefix(line, []byte("_sc|")), bytes.HasPrefix(line, telemetry):
		return Ignored
	}

	name, rest, found := Cut(line, ':')
	if !found || len(name) == 0 {
		return Malformed
	}
	value, rest, _ := Cut(rest, '|')
	kind, rest, extended := Cut(rest, '|')
	if extended {
		var reason Reason
		if d, reason = e.extensions(rest, d); reason != Accepted {
			return reason
		}
	}

	if reason := e.typed(kind, value, d); reason != Accepted {
		return reason
	}
	var reason Reason
	e.Series, reason = e.builder.series(name)
	return reason
}

// typed reads the values as the type says.
func (e *Event) typed(kind, value []byte, d Dialect) Reason {
	switch string(kind) {
	case "c":
		e.Kind = Counter
	case "ms":
		e.Kind = Time
	case "h", "d":
		e.Kind = Value
	case "g":
		return e.gauge(value, d)
	case "s":
		return e.member(value)
	default:
		return Malformed
	}

	reason := e.values(value)
	if reason == Accepted && e.Kind == Time && !allSizes(e.Values) {
		return NotFinite
	}
	return reason
}

// member reads the member of a set, which may contain a colon.
func (e *Event) member(value []byte) Reason {
	if len(value) == 0 {
		return Malformed
	}
	if len(value) > MaxText {
		return TooLong
	}
	e.Kind, e.Text = Set, value
	return Accepted
}

// gauge reads the values of a gauge. Where signs mean a change, either all of them have one or none.
func (e *Event) gauge(value []byte, d Dialect) Reason {
	if reason := e.values(value); reason != Accepted {
		return reason
	}
	e.Kind = Gauge
	if d == DogStatsD {
		return Accepted
	}

	signs := 0
	for part := range bytes.SplitSeq(value, []byte(":")) {
		if part[0] == '+' || part[0] == '-' {
			signs++
		}
	}
	switch signs {
	case 0:
	case len(e.Values):
		e.Kind = Change
	default:
		return Malformed
	}

	return Accepted
}

// values reads VALUE[:VALUE…].
func (e *Event) values(list []byte) Reason {
	for more := true; more; {
		var part []byte
		part, list, more = Cut(list, ':')
		v, reason := decimal(part)
		if reason != Accepted {
			return reason
		}
		e.Values = append(e.Values, v)
	}
	return Accepted
}

// allSizes reports whether no value is negative.
func allSizes(values []float64) bool {
	for _, v := range values {
		if v < 0 {
			return false
		}
	}
	return true
}

// extensions reads @RATE, #TAG,… and the rest, which only DogStatsD has, in any order. It returns the dialect of the
// line.
func (e *Event) extensions(list []byte, d Dialect) (Dialect, Reason) {
	for more := true; more; {
		var part []byte
		part, list, more = Cut(list, '|')
		reason := Accepted
		switch {
		case len(part) == 0:
			reason = Malformed
		case part[0] == '@':
			reason = e.rate(part[1:])
		case part[0] == '#':
			d, reason = DogStatsD, e.tagList(part[1:])
		case isDogStatsD(part):
			d = DogStatsD
		default:
			reason = Malformed
		}
		if reason != Accepted {
			return d, reason
		}
	}

	return d, Accepted
}

// isDogStatsD reports whether an extension is one of those that are not used: T with a time in seconds, and c:, e: and
// what newer clients add in the same form, such as card:.
func isDogStatsD(part []byte) bool {
	if part[0] == 'T' {
		return len(part) > 1 && digits(part[1:]) == len(part)-1
	}
	letters := 0
	for letters < len(part) && part[letters] >= 'a' && part[letters] <= 'z' {
		letters++
	}
	return letters > 0 && letters < len(part) && part[letters] == ':'
}

// rate reads the share of events that were sent.
func (e *Event) rate(text []byte) Reason {
	rate, reason := decimal(text)
	if reason != Accepted || !(rate > 0 && rate <= 1) {
		return Malformed
	}
	if 1/rate > maxNumber {
		return NotFinite
	}
	e.Rate = rate

	return Accepted
}

// tagList reads TAG,K:V,…
func (e *Event) tagList(list []byte) Reason {
	for more := true; more; {
		var part []byte
		part, list, more = Cut(list, ',')
		if len(part) == 0 {
			continue
		}
		key, value, _ := Cut(part, ':')
		if reason := e.builder.add(key, value); reason != Accepted {
			return reason
		}
	}
	return Accepted
}

// parseMark reads what comes after "_e{": the lengths of title and text, the two, and more that is not used, apart from
// the time.
func (e *Event) parseMark(rest []byte) Reason {
	lengths, rest, found := bytes.Cut(rest, []byte("}:"))
	if !found {
		return Malformed
	}
	first, second, found := Cut(lengths, ',')
	title, ok1 := length(first)
	text, ok2 := length(second)
	if !found || !ok1 || !ok2 || title == 0 || len(rest) < title+1+text || rest[title] != '|' {
		return Malformed
	}

	after := rest[title+1+text:]
	if len(after) > 0 && after[0] != '|' {
		return Malformed
	}
	for part := range bytes.SplitSeq(after, []byte("|")) {
		if at, ok := bytes.CutPrefix(part, []byte("d:")); ok {
			seconds, reason := decimal(at)
			if reason != Accepted || !isMoment(seconds) {
				return Malformed
			}
			e.At = seconds
		}
	}
	e.Kind, e.Text = Mark, rest[:title]

	return Accepted
}

// length reads a length in bytes.
func length(b []byte) (int, bool) {
	if len(b) == 0 || digits(b) != len(b) {
		return 0, false
	}
	n, err := strconv.Atoi(string(b))
	return n, err == nil && n <= MaxLine
}

// isMoment reports whether Unix seconds are in the years 1970 to 2199, as package opstats wants it.
func isMoment(seconds float64) bool { return seconds >= 0 && seconds < 7258118400 }
