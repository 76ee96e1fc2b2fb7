package wire

import (
	"slices"
	"strconv"
	"strings"
)

// A field is a known key of a record.
type field uint8

// The known keys. The first group determines the kind of the record; a record has exactly one of them.
const (
	opField field = iota
	counterField
	gaugeField
	observeField
	attributeField
	transferField
	transfersField
	proxystoreField

	heads // number of keys in the group

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

// fields maps names to known keys.
var fields = map[string]field{
	"op": opField, "counter": counterField, "gauge": gaugeField, "observe": observeField, "attribute": attributeField,
	"transfer": transferField, "transfers": transfersField, "proxystore": proxystoreField,
	"ms": msField, "us": usField, "ns": nsField, "s": sField, "key": keyField, "bytes": bytesField, "ok": okField,
	"ts": tsField, "tags": tagsField, "add": addField, "value": valueField, "unit": unitField, "xfer_us": xferField,
	"post_us": postField, "descriptors": descriptorsField, "rank": rankField, "failed": failedField, "data": dataField,
	"metrics": metricsField, "id": idField,
}

// parseRecord parses a JSON record.
func (e *Event) parseRecord(line []byte) {
	head, ok := e.readFields(line)
	switch {
	case !ok:
		e.refuse(Malformed)
		return
	case len(line) > MaxLine && head != transfersField && head != proxystoreField:
		e.refuse(TooLong)
		return
	}

	switch head {
	case opField:
		e.operation()
	case counterField:
		e.Kind, e.Values = Counter, append(e.Values, e.number(addField))
	case gaugeField:
		e.Kind, e.Values = Gauge, append(e.Values, e.number(valueField))
	case observeField:
		e.Kind, e.Text, e.Values = Value, e.text(unitField), append(e.Values, e.number(valueField))
	case attributeField:
		e.Kind = Attribute
		e.attribute()
	case transferField:
		e.transfer()
	case transfersField:
		e.Kind, e.Data = TransferData, e.object(dataField)
	default:
		e.Kind, e.Version, e.Text, e.Data = ProxyStore, e.version(), e.text(idField), e.object(metricsField)
		return
	}
	e.readCommonFields(head)
}

// readFields reads the object into e.fields, and returns its head, the key that determines its kind. A null counts as
// missing. It reports false if the line is not a record.
func (e *Event) readFields(line []byte) (head field, ok bool) {
	clear(e.fields[:])
	s := scanner{data: line, at: 1}
	for n := 0; ; n++ {
		name, v, more, ok := s.member(n, 1)
		if !ok {
			return 0, false
		}
		if !more {
			break
		}

		f, known := fields[string(name)]
		if !known || v.kind == 'n' {
			continue
		}
		if e.has(f) {
			return 0, false // twice
		}
		e.fields[f] = v
	}

	found := 0
	for f := range heads {
		if e.has(f) {
			head = f
			found++
		}
	}
	return head, found == 1 && s.space() == 0 && s.at == len(line)
}

// has reports whether the record has the field.
func (e *Event) has(f field) bool { return e.fields[f].kind != 0 }

// readCommonFields reads the fields that most records have: the series' name and tags, the time, the rank.
func (e *Event) readCommonFields(head field) {
	name := e.text(head)
	if len(name) == 0 {
		e.refuse(Malformed)
	}
	e.tags()
	e.name(name)

	if e.has(tsField) {
		e.At = e.number(tsField)
		e.demand(isMoment(e.At))
	}
	if e.has(rankField) {
		rank := e.number(rankField)
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

// text returns the text in an optional field, or nil without the field. It refuses a text beyond the limit.
func (e *Event) text(f field) []byte {
	switch v := e.fields[f]; v.kind {
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

// number returns a required number.
func (e *Event) number(f field) float64 {
	switch v := e.fields[f]; v.kind {
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

// size returns the number in field f, which must not be negative, or absent if there is no such field.
func (e *Event) size(f field, absent float64) float64 {
	if !e.has(f) {
		return absent
	}
	v := e.number(f)
	if v < 0 {
		e.refuse(NotFinite)
	}
	return v
}

// object returns a required object.
func (e *Event) object(f field) []byte {
	e.demand(e.fields[f].kind == '{')
	return e.fields[f].raw
}

// tags reads the tags, an object of texts. A number, true and false count as their text.
func (e *Event) tags() {
	v := e.fields[tagsField]
	if v.kind == 0 {
		return
	}
	if v.kind != '{' {
		e.refuse(Malformed)
		return
	}

	s := scanner{data: v.raw, at: 1}
	for n := 0; ; n++ {
		name, value, more, _ := s.member(n, 1) // the grammar was checked
		if !more {
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

// operation reads a time of an operation, or a failure.
func (e *Event) operation() {
	e.Kind = Timing
	if e.has(keyField) {
		e.Key = e.text(keyField)
	}
	switch ok := e.fields[okField]; {
	case ok.kind != 0 && ok.kind != 't':
		e.refuse(Malformed)
	case ok.kind == 't' && ok.raw[0] == 'f':
		e.Failed = true
		return
	}

	e.HasBytes, e.Bytes = e.has(bytesField), e.size(bytesField, 0)
	e.Values = append(e.Values, e.duration())
}

// duration returns the time in milliseconds, from exactly one of the four units.
func (e *Event) duration() (ms float64) {
	found := 0
	for f := msField; f <= sField; f++ {
		if !e.has(f) {
			continue
		}
		found++
		ms = e.size(f, 0)
		switch f {
		case usField:
			ms /= 1e3
		case nsField:
			ms /= 1e6
		case sField:
			ms *= 1e3
		}
	}
	e.demand(found == 1)
	e.refuse(checkFinite(ms))

	return ms
}

// attribute reads the value of an attribute.
func (e *Event) attribute() {
	switch v := e.fields[valueField]; v.kind {
	case '"':
		e.Attribute = string(e.text(valueField))
	case 't':
		e.Attribute = v.raw[0] == 't'
	default:
		e.Attribute = e.number(valueField)
	}
}

// failures has the names of the failures, by FailureKind.
var failures = []string{"transfer", "notification", "kv_expired"}

// transfer reads a transfer, or the failure of one.
func (e *Event) transfer() {
	if what := e.fields[failedField]; what.kind != 0 {
		i := slices.Index(failures, string(what.raw))
		e.demand(what.kind == '"' && i >= 0)
		e.Kind, e.Failure = TransferFailure, FailureKind(max(i, 0))
		return
	}

	e.Kind = Transfer
	e.demand(e.has(xferField))
	e.Transfer = TransferRecord{
		e.size(xferField, 0), e.size(postField, 0), e.size(bytesField, 0), e.size(descriptorsField, 1),
	}
}

// version parses N.N.N.
func (e *Event) version() (v Version) {
	parts := strings.Split(string(e.text(proxystoreField)), ".")
	e.demand(len(parts) == len(v))
	for i, part := range parts[:min(len(parts), len(v))] {
		n, err := strconv.ParseUint(part, 10, 31)
		e.demand(err == nil)
		v[i] = int(n)
	}
	return v
}
