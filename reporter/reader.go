package reporter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/perfagent/perfagent/internal/text"
)

// reader reads the series of a node from JSON, value by value. It accepts the same input as encoding/json.
type reader struct {
	*jsontext.Decoder
	// at is the offset of the last value read.
	at    int64
	err   error          // from a custom method of decode
	input *boundedReader // nil for a text in memory
}

func newReader(in io.Reader) *reader {
	return &reader{Decoder: jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))}
}

// value reads the next value as a whole. The result is valid until the next read.
func (r *reader) value() (jsontext.Value, error) {
	v, err := r.ReadValue()
	r.at = r.InputOffset() - int64(len(v))
	return v, err
}

// skip skips the next value. It is faster than SkipValue.
func (r *reader) skip() error {
	_, err := r.ReadValue()
	return err
}

// decode reads the next value into v, as encoding/json does. Values of a type with a custom method are read by that
// method.
func (r *reader) decode(v any, custom ...*json.Unmarshalers) error {
	err := json.UnmarshalDecode(r.Decoder, v, jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false),
		json.WithUnmarshalers(json.JoinUnmarshalers(custom...)))
	var wrong *json.SemanticError
	switch {
	case r.err != nil:
		return r.err
	case errors.As(err, &wrong):
		r.at = wrong.ByteOffset
		return cmp.Or(wrong.Err, mismatch(wrong))
	}
	return err
}

// mismatch returns the error for a value of the wrong kind. The library's own message differs from process to process.
func mismatch(wrong *json.SemanticError) error {
	kind := map[jsontext.Kind]string{
		'{': "object", '[': "array", '"': "string", '0': "number", 't': "boolean", 'f': "boolean", 'n': "null",
	}[wrong.JSONKind]
	return fmt.Errorf("json: cannot unmarshal JSON %s within %q", cmp.Or(kind, "value"), wrong.JSONPointer)
}

// custom returns a method for decode that reads values of type T with read.
func custom[T any](r *reader, read func(v *T) error) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(_ *jsontext.Decoder, v *T) error {
		r.err = read(v)
		return r.err
	})
}

// array reads an array, and calls element to read each element. Any other value is an error with the text otherwise.
func (r *reader) array(otherwise string, element func() error) error {
	return r.each('[', ']', otherwise, element)
}

// object reads an object, and calls member to read the value of each member. The key is quoted and valid until the next
// read. Any other value is an error with the text otherwise.
func (r *reader) object(otherwise string, member func(quoted []byte) error) error {
	return r.each('{', '}', otherwise, func() error {
		r.mark()
		quoted, err := r.value()
		if err != nil {
			return err
		}
		r.mark()
		return member(quoted)
	})
}

// mark marks the beginning of a key or value of the report or of its nodes. The size limit of the input applies to each
// of these.
func (r *reader) mark() {
	if r.input != nil && r.StackDepth() <= 2 {
		r.input.mark = r.InputOffset()
	}
}

// each reads an array or object, from its opening bracket to its closing one, and calls part for each element or
// member.
func (r *reader) each(opens, closes jsontext.Kind, otherwise string, part func() error) error {
	if r.PeekKind() != opens {
		_, err := r.value()
		return cmp.Or(err, errors.New(otherwise))
	}
	_, err := r.ReadToken()
	r.at = r.InputOffset() - 1
	for err == nil && r.PeekKind() != closes {
		err = part()
	}
	if err == nil {
		_, err = r.ReadToken()
	}
	return err
}

// unquote decodes a JSON string as encoding/json does.
func unquote(quoted []byte) string {
	out, _ := jsontext.AppendUnquote(nil, quoted) // it is a valid string; invalid UTF-8 is replaced
	return string(out)
}

// parseNumber parses a JSON number.
func parseNumber(number []byte) (float64, error) {
	if v, ok := text.ParseDecimal(number); ok {
		return v, nil
	}
	v, err := strconv.ParseFloat(string(number), 64)
	if err != nil { // the number is too large
		return 0, fmt.Errorf("%q is out of range for a number", text.Clip(string(number), 40))
	}
	return v, nil
}

// errMostlyEmpty is the error for a file that would take many times its size in memory, unlike a real file, in which
// every value takes at least a byte.
var errMostlyEmpty = errors.New("most of the samples are empty")

// cells returns the number of values in the columns, including absent ones.
func (s *Samples) cells() int { return s.Len() * len(s.Keys) }

// read reads the wanted columns of a list of samples. It returns the number of samples; 0 if no
// column, wanted or not, has a value in any of them.
func (s *Samples) read(r *reader, wanted ColumnFilter) (rows int, err error) {
	*s = Samples{}
	begin := r.InputOffset()
	in := rowReader{reader: r, samples: s, wanted: wanted, columns: make(map[string]int)}
	err = r.array("samples are not a list", func() error {
		if err := in.row(); err != nil {
			return err
		}
		if int64(s.cells()) > r.InputOffset()-begin+1<<12 {
			return errMostlyEmpty
		}
		return nil
	})
	if !in.measured {
		return 0, err
	}
	return in.rows, err
}

// rowReader reads samples one by one.
type rowReader struct {
	*reader
	samples *Samples
	wanted  ColumnFilter
	// columns are indexes by quoted key; -1 for a key that is not kept.
	columns  map[string]int
	key      []byte // current key, quoted
	rows     int    // read so far
	measured bool   // any value was read
}

// row reads the next sample.
func (r *rowReader) row() error {
	for i, column := range r.samples.Columns {
		r.samples.Columns[i] = append(column, math.NaN())
	}
	r.rows++
	err := r.object("not an object", func(quoted []byte) error {
		r.key = append(r.key[:0], quoted...)
		return r.cell()
	})
	if err != nil {
		return fmt.Errorf("sample %d: %w", r.rows, err)
	}
	return nil
}

// cell reads the value of the current key.
func (r *rowReader) cell() error {
	column := -1
	switch r.PeekKind() {
	case 'n': // not measured
		return r.skip()
	case '0':
		r.measured = true
		if column = r.column(); column < 0 {
			return r.skip()
		}
	}
	v, err := r.value()
	if err == nil && v.Kind() != '0' {
		err = fmt.Errorf("%q is not a number", text.Printable(text.Clip(unquote(r.key), 40)))
	}
	if err == nil {
		r.samples.Columns[column][r.rows-1], err = parseNumber(v)
	}
	return err
}

// maxSampleKeys limits the columns of a hostile file.
const maxSampleKeys = 256

// column returns the index of the column of the current key, and adds the column if necessary; -1 if it is not kept.
func (r *rowReader) column() int {
	if column, ok := r.columns[string(r.key)]; ok {
		return column
	}
	column := r.samples.column(unquote(r.key), r.rows, r.wanted)
	if len(r.columns) < 2*maxSampleKeys {
		r.columns[string(r.key)] = column
	}
	return column
}

// column returns the index of the column of key. If there is none, it adds one with n values, or returns -1 if the key
// is not wanted or there are too many.
func (s *Samples) column(key string, n int, wanted ColumnFilter) int {
	if i := slices.Index(s.Keys, key); i >= 0 || !wanted.hasSample(key) || len(s.Keys) >= maxSampleKeys {
		return i
	}
	s.Keys = append(s.Keys, key)
	s.Columns = append(s.Columns, absentNumbers(n))
	return len(s.Keys) - 1
}

// read adds the wanted bands of an envelope.
func (e *Envelope) read(r *reader, wanted ColumnFilter) error {
	if r.PeekKind() == 'n' {
		*e = nil
		return r.skip()
	}

	if *e == nil {
		*e = Envelope{}
	}

	return r.object("the envelope is not an object", func(quoted []byte) error {
		key := unquote(quoted)
		if !wanted.hasBand(key) {
			return r.skip()
		}
		var band Band
		err := r.decode(&band)
		if err != nil {
			return fmt.Errorf("envelope of %q: %w", text.Printable(text.Clip(key, 40)), err)
		}
		(*e)[key] = band
		return nil
	})
}

// readNumbers reads a list of numbers, with NaN for null; null instead of a list is an empty list.
func readNumbers(v jsontext.Value) (_ Numbers, err error) {
	switch v.Kind() {
	case 'n':
		return Numbers{}, nil
	case '[':
	default:
		return nil, errors.New("not a list of numbers")
	}

	list := make(Numbers, 0, bytes.Count(v, []byte{','})+1)
	for element := range bytes.SplitSeq(bytes.TrimSpace(v[1:len(v)-1]), []byte{','}) {
		number := math.NaN()
		switch element = bytes.TrimSpace(element); jsontext.Value(element).Kind() {
		case 'n':
		case '0':
			if number, err = parseNumber(element); err != nil {
				return nil, err
			}
		case 0: // an empty list
			return list, nil
		default:
			return nil, fmt.Errorf("value %d is not a number", len(list)+1)
		}
		list = append(list, number)
	}

	return list, nil
}
