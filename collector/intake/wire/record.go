package wire

import (
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/opstats"
)

// A member is a member of a record with a known key and a value other than null.
type member struct {
	name  []byte
	value jsonValue
}

// recordKeys maps each known key to the kind of record that it determines, or to Nothing. A record has exactly one key
// that determines its kind. Unknown keys are ignored.
var recordKeys = map[string]Kind{
	"op": Timing, "counter": Counter, "gauge": Gauge, "observe": Value, "attribute": Attribute, "transfer": Transfer,
	"transfers": TransferData, "proxystore": ProxyStore,
	"ms": Nothing, "us": Nothing, "ns": Nothing, "s": Nothing, "key": Nothing, "bytes": Nothing, "ok": Nothing,
	"ts": Nothing, "tags": Nothing, "add": Nothing, "value": Nothing, "unit": Nothing, "xfer_us": Nothing,
	"post_us": Nothing, "descriptors": Nothing, "rank": Nothing, "failed": Nothing, "data": Nothing,
	"metrics": Nothing, "id": Nothing,
}

// parseRecord parses a JSON record.
func (e *Event) parseRecord(line []byte) {
	head, ok := e.readMembers(line)
	switch {
	case !ok:
		e.refuse(Malformed)
		return
	case len(line) > MaxLine && e.Kind != TransferData && e.Kind != ProxyStore:
		e.refuse(TooLong)
		return
	}

	switch e.Kind {
	case Timing:
		e.operation()
	case Counter:
		e.Values = append(e.Values, e.number(e.get("add")))
	case Gauge:
		e.Values = append(e.Values, e.number(e.get("value")))
	case Value:
		e.Text, e.Values = e.text(e.get("unit")), append(e.Values, e.number(e.get("value")))
	case Attribute:
		e.attribute()
	case Transfer:
		e.transfer()
	case TransferData:
		e.Data = e.object("data")
	case ProxyStore:
		e.Version, e.Text, e.Data = e.version(e.text(head)), e.text(e.get("id")), e.object("metrics")
		return
	}
	e.readCommonFields(e.text(head))
}

// readMembers reads the members of the object, sets the kind of e, and returns head, the value of the key that
// determines the kind. A member that is null is treated as missing. It reports false if the line is not a record.
func (e *Event) readMembers(line []byte) (head jsonValue, ok bool) {
	s := scanner{data: line, at: 1}
	for n := 0; ; n++ {
		name, v, more, ok := s.member(n)
		if !ok {
			return head, false
		}
		if !more {
			break
		}
		kind, isKnown := recordKeys[string(name)]
		if !isKnown || v.kind == 'n' {
			continue
		}
		if e.get(string(name)).kind != 0 || kind != Nothing && e.Kind != Nothing {
			return head, false
		}
		e.members = append(e.members, member{name, v})
		if kind != Nothing {
			e.Kind, head = kind, v
		}
	}

	return head, e.Kind != Nothing && s.space() == 0 && s.at == len(line)
}

// get returns the value of the member with the given name. The value has the kind 0 if there is no such member.
func (e *Event) get(name string) (v jsonValue) {
	for i := range e.members {
		if string(e.members[i].name) == name {
			return e.members[i].value
		}
	}
	return v
}

// readCommonFields reads the fields that most records have: the tags, the time and the rank. It sets the series from
// name and the tags.
func (e *Event) readCommonFields(name []byte) {
	e.demand(len(name) > 0)
	e.tags()
	e.name(name)

	if at := e.get("ts"); at.kind != 0 {
		e.At = e.number(at)
		e.demand(isMoment(e.At))
	}
	if v := e.get("rank"); v.kind != 0 {
		rank := e.number(v)
		e.demand(rank >= 0 && rank < 1<<31 && rank == float64(int(rank)))
		e.Rank = int(rank)
	}
}

// demand rejects a line as malformed unless condition holds.
func (e *Event) demand(condition bool) {
	if !condition {
		e.refuse(Malformed)
	}
}

// text returns the text of an optional value, or nil if there is no value. It rejects a text beyond the limit.
func (e *Event) text(v jsonValue) []byte {
	switch v.kind {
	case 0:
		return nil
	case '"':
		text := v.decoded()
		if len(text) > MaxText {
			e.refuse(TooLong)
		}
		return text
	}
	e.refuse(Malformed)
	return nil
}

// number returns the number v, which is required.
func (e *Event) number(v jsonValue) float64 {
	switch v.kind {
	case '0':
		number, reason := parseDecimal(v.raw)
		e.refuse(reason)
		return number
	case 'N':
		e.refuse(NotFinite)
	default:
		e.refuse(Malformed)
	}
	return 0
}

// size returns the number v, which must not be negative, or absent if there is no value.
func (e *Event) size(v jsonValue, absent float64) float64 {
	if v.kind == 0 {
		return absent
	}
	n := e.number(v)
	if n < 0 {
		e.refuse(NotFinite)
	}
	return n
}

// object returns the object with the given name, which is required.
func (e *Event) object(name string) []byte {
	v := e.get(name)
	e.demand(v.kind == '{')
	return v.raw
}

// tags reads the tags, an object of texts. A number, true or false is treated as a text.
func (e *Event) tags() {
	v := e.get("tags")
	if v.kind != '{' {
		e.demand(v.kind == 0)
		return
	}

	s := scanner{data: v.raw, at: 1}
	for n := 0; ; n++ {
		name, value, more, ok := s.member(n)
		if !more {
			e.demand(ok)
			return
		}
		key, text := jsonValue{kind: '"', raw: name}.decoded(), value.raw
		switch value.kind {
		case '"':
			text = value.decoded()
		case '{', '[':
			e.refuse(Malformed)
		case 'n':
			continue
		}
		e.demand(len(key) > 0)
		e.tag(key, text)
	}
}

// operation reads the time of an operation, or its failure.
func (e *Event) operation() {
	e.Key = e.text(e.get("key"))
	ok := e.get("ok")
	e.demand(ok.kind == 0 || ok.kind == 't')
	if e.Failed = ok.kind == 't' && ok.raw[0] == 'f'; e.Failed {
		return
	}

	bytes := e.get("bytes")
	e.HasBytes, e.Bytes = bytes.kind != 0, e.size(bytes, 0)
	e.Values = append(e.Values, e.duration())
}

// duration returns the time of an operation in milliseconds. The record must have it in exactly one of the four units.
func (e *Event) duration() (ms float64) {
	found := 0
	for _, unit := range [...]struct {
		name      string
		mul, over float64
	}{{"ms", 1, 1}, {"us", 1, 1e3}, {"ns", 1, 1e6}, {"s", 1e3, 1}} {
		if v := e.get(unit.name); v.kind != 0 {
			found++
			ms = e.size(v, 0) * unit.mul / unit.over
		}
	}
	e.demand(found == 1)
	e.refuse(checkFinite(ms))

	return ms
}

// attribute reads the value of an attribute.
func (e *Event) attribute() {
	switch v := e.get("value"); v.kind {
	case '"':
		e.Attribute = string(e.text(v))
	case 't':
		e.Attribute = v.raw[0] == 't'
	default:
		e.Attribute = e.number(v)
	}
}

// failures lists the parts of a transfer that can fail.
var failures = []string{"transfer", "notification", "kv_expired"}

// transfer reads a transfer, or the failure of a transfer.
func (e *Event) transfer() {
	if failed := e.get("failed"); failed.kind != 0 {
		e.Kind, e.Text = TransferFailure, e.text(failed)
		e.demand(slices.Contains(failures, string(e.Text)))
		return
	}

	xfer := e.get("xfer_us")
	e.demand(xfer.kind != 0)
	e.Transfer = opstats.Transfer{XferMicros: e.size(xfer, 0), PostMicros: e.size(e.get("post_us"), 0),
		Bytes: e.size(e.get("bytes"), 0), Descriptors: e.size(e.get("descriptors"), 1)}
}

// version parses N.N.N.
func (e *Event) version(text []byte) (v Version) {
	parts := strings.Split(string(text), ".")
	e.demand(len(parts) == len(v))
	for i, part := range parts[:min(len(parts), len(v))] {
		n, err := strconv.ParseUint(part, 10, 31)
		e.demand(err == nil)
		v[i] = int(n)
	}
	return v
}
