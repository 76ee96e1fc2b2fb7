package wire

import (
	"bytes"
	"strconv"
)

// A field is a known key of a record.
type field uint8

// The known keys. The first ones say what the record is; exactly one of them must be there.
const (
	opField field = iota
	counterField
	gaugeField
	observeField
	attributeField
	transferField
	transfersField
	proxystoreField

	heads // how many there are of these

	msField field = iota - 1
	usField
	nsField
	sField
	keyField
	bytesField
	okField
	tsField
	tagsField
	addField
	valueField
	unitField
	xferField
	postField
	descriptorsField
	rankField
	failedField
	dataField
	metricsField
	idField

	fieldCount
)

// fields has the known keys by their names.
var fields = map[string]field{
	"op": opField, "counter": counterField, "gauge": gaugeField, "observe": observeField, "attribute": attributeField,
	"transfer": transferField, "transfers": transfersField, "proxystore": proxystoreField,
	"ms": msField, "us": usField, "ns": nsField, "s": sField, "key": keyField, "bytes": bytesField, "ok": okField,
	"ts": tsField, "tags": tagsField, "add": addField, "value": valueField, "unit": unitField, "xfer_us": xferField,
	"post_us": postField, "descriptors": descriptorsField, "rank": rankField, "failed": failedField, "data": dataField,
	"metrics": metricsField, "id": idField,
}

// parseRecord reads a JSON record.
func (e *Event) parseRecord(line []byte) Reason {
	head, reason := e.readFields(line)
	switch {
	case reason != Accepted:
		return reason
	case len(line) > MaxLine && head != transfersField && head != proxystoreField:
		return TooLong
	}

	switch head {
	case opField:
		reason = e.operation()
	case counterField:
		e.Kind, reason = Counter, e.one(addField)
	case gaugeField:
		e.Kind, reason = Gauge, e.one(valueField)
	case observeField:
		e.Kind, reason = Value, e.observation()
	case attributeField:
		e.Kind, reason = Attribute, e.attribute()
	case transferField:
		reason = e.transfer()
	case transfersField:
		e.Kind, reason = TransferData, e.object(dataField)
	default:
		return e.proxyStore()
	}
	if reason != Accepted {
		return reason
	}

	return e.named(head)
}

// readFields reads the object into e.fields, and returns which head it has. A null is as good as nothing.
func (e *Event) readFields(line []byte) (head field, reason Reason) {
	clear(e.fields[:])
	s := scanner{data: line, at: 1}
	for n := 0; ; n++ {
		name, v, more, ok := s.member(n, 1)
		if !ok {
			return 0, Malformed
		}
		if !more {
			break
		}

		f, known := fields[string(name)]
		if !known || v.kind == 'n' {
			continue
		}
		if e.fields[f].kind != 0 {
			return 0, Malformed // twice
		}
		e.fields[f] = v
	}
	if s.space() != 0 || s.at < len(line) {
		return 0, Malformed
	}

	found := 0
	for f, v := range e.fields[:heads] {
		if v.kind != 0 {
			head = field(f)
			found++
		}
	}
	if found != 1 {
		return 0, Malformed
	}

	return head, Accepted
}

// named reads what most records have: the series' name and tags, the time, the rank.
func (e *Event) named(head field) Reason {
	name, reason := e.text(head)
	if reason != Accepted {
		return reason
	}
	if len(name) == 0 {
		return Malformed
	}
	if reason = e.tags(); reason != Accepted {
		return reason
	}
	if e.Series, reason = e.builder.series(name); reason != Accepted {
		return reason
	}

	if reason = e.moment(); reason != Accepted {
		return reason
	}
	return e.rank()
}

// text reads a text within its bound. It is empty without the field.
func (e *Event) text(f field) ([]byte, Reason) {
	switch v := e.fields[f]; v.kind {
	case 0:
		return nil, Accepted
	case '"':
		text := v.decoded()
		if len(text) > MaxText {
			return nil, TooLong
		}
		return text, Accepted
	}
	return nil, Malformed
}

// number reads a number, which must be there.
func (e *Event) number(f field) (float64, Reason) {
	switch v := e.fields[f]; v.kind {
	case '0':
		return finite(v.raw)
	case 'N':
		return 0, NotFinite
	}
	return 0, Malformed
}

// size reads a number that must not be negative. Without the field it is absent.
func (e *Event) size(f field, absent float64) (float64, Reason) {
	if e.fields[f].kind == 0 {
		return absent, Accepted
	}
	v, reason := e.number(f)
	if reason == Accepted && v < 0 {
		return 0, NotFinite
	}
	return v, reason
}

// one reads the only number of a record.
func (e *Event) one(f field) Reason {
	v, reason := e.number(f)
	e.Values = append(e.Values, v)
	return reason
}

// object reads an object, which must be there.
func (e *Event) object(f field) Reason {
	if e.fields[f].kind != '{' {
		return Malformed
	}
	e.Data = e.fields[f].raw
	return Accepted
}

// moment reads the time of an event.
func (e *Event) moment() Reason {
	if e.fields[tsField].kind == 0 {
		return Accepted
	}
	at, reason := e.number(tsField)
	if reason == Accepted && !isMoment(at) {
		return Malformed
	}
	e.At = at
	return reason
}

// rank reads the number of the process that transferred.
func (e *Event) rank() Reason {
	if e.fields[rankField].kind == 0 {
		return Accepted
	}
	rank, reason := e.number(rankField)
	if reason == Accepted && !(rank >= 0 && rank < 1<<31 && rank == float64(int(rank))) {
		return Malformed
	}
	e.Rank = int(rank)
	return reason
}

// tags reads the tags, an object of texts. A number, true and false count as the text that they are.
func (e *Event) tags() Reason {
	v := e.fields[tagsField]
	if v.kind == 0 {
		return Accepted
	}
	if v.kind != '{' {
		return Malformed
	}

	s := scanner{data: v.raw, at: 1}
	for n := 0; ; n++ {
		name, value, more, _ := s.member(n, 1) // the grammar was checked
		if !more {
			return Accepted
		}
		key := jsonValue{'"', name}.decoded()
		switch value.kind {
		case '"', '0', 't', 'N':
		case 'n':
			continue
		default:
			return Malformed
		}
		text := value.raw
		if value.kind == '"' {
			text = value.decoded()
		}
		if len(key) == 0 {
			return Malformed
		}
		if reason := e.builder.add(key, text); reason != Accepted {
			return reason
		}
	}
}

// operation reads a time of an operation, or that it failed.
func (e *Event) operation() Reason {
	e.Kind = Time
	var reason Reason
	if e.fields[keyField].kind != 0 {
		if e.Key, reason = e.text(keyField); reason != Accepted {
			return reason
		}
	}
	switch ok := e.fields[okField]; {
	case ok.kind != 0 && ok.kind != 't':
		return Malformed
	case ok.kind == 't' && ok.raw[0] == 'f':
		e.Failed = true
		return Accepted
	}

	if e.Bytes, reason = e.size(bytesField, 0); reason != Accepted {
		return reason
	}
	e.Sized = e.fields[bytesField].kind != 0
	ms, reason := e.duration()
	e.Values = append(e.Values, ms)

	return reason
}

// duration reads the one of the four units that is there, in milliseconds.
func (e *Event) duration() (ms float64, reason Reason) {
	found := 0
	for f := msField; f <= sField; f++ {
		if e.fields[f].kind == 0 {
			continue
		}
		found++
		if ms, reason = e.size(f, 0); reason != Accepted {
			return 0, reason
		}
		switch f {
		case usField:
			ms /= 1e3
		case nsField:
			ms /= 1e6
		case sField:
			ms *= 1e3
		}
	}

	switch {
	case found != 1:
		return 0, Malformed
	case ms > maxNumber:
		return 0, NotFinite
	}
	return ms, Accepted
}

// observation reads a value with its unit.
func (e *Event) observation() (reason Reason) {
	if e.Text, reason = e.text(unitField); reason != Accepted {
		return reason
	}
	return e.one(valueField)
}

// attribute reads the value of an attribute.
func (e *Event) attribute() (reason Reason) {
	v := e.fields[valueField]
	e.Attribute = AttributeValue{Kind: v.kind}
	switch v.kind {
	case '"':
		e.Attribute.Text, reason = e.text(valueField)
	case 't':
		e.Attribute.Truth = v.raw[0] == 't'
	default:
		e.Attribute.Number, reason = e.number(valueField)
	}
	return reason
}

// transfer reads a transfer, or the failure of one.
func (e *Event) transfer() (reason Reason) {
	if e.fields[failedField].kind != 0 {
		e.Kind = Failure
		return e.failure()
	}

	e.Kind = Transfer
	t := &e.Transfer
	if e.fields[xferField].kind == 0 {
		return Malformed
	}
	for _, part := range [...]struct {
		to     *float64
		f      field
		absent float64
	}{{&t.XferMicros, xferField, 0}, {&t.PostMicros, postField, 0}, {&t.Bytes, bytesField, 0},
		{&t.Descriptors, descriptorsField, 1}} {
		if *part.to, reason = e.size(part.f, part.absent); reason != Accepted {
			return reason
		}
	}

	return Accepted
}

// failure reads what failed.
func (e *Event) failure() Reason {
	switch v := e.fields[failedField]; {
	case v.kind != '"':
		return Malformed
	case string(v.raw) == "transfer":
		e.Failure = FailedTransfer
	case string(v.raw) == "notification":
		e.Failure = FailedNotification
	case string(v.raw) == "kv_expired":
		e.Failure = KVExpired
	default:
		return Malformed
	}
	return Accepted
}

// proxyStore reads the metrics that ProxyStore hands over.
func (e *Event) proxyStore() (reason Reason) {
	e.Kind = ProxyStore
	version, reason := e.text(proxystoreField)
	if reason != Accepted {
		return reason
	}
	var ok bool
	if e.Version, ok = parseVersion(version); !ok {
		return Malformed
	}

	if e.Text, reason = e.text(idField); reason != Accepted {
		return reason
	}
	return e.object(metricsField)
}

// parseVersion reads N.N.N.
func parseVersion(text []byte) (v Version, ok bool) {
	for i := range v {
		part, rest, more := bytes.Cut(text, []byte("."))
		if more != (i < len(v)-1) || len(part) == 0 || digits(part) != len(part) {
			return v, false
		}
		n, err := strconv.Atoi(string(part))
		if err != nil {
			return v, false
		}
		v[i], text = n, rest
	}

	return v, true
}
