package reporter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/internal/text"
)

// reader reads the series of a node from JSON, value by value. It takes what encoding/json takes.
type reader struct {
	*jsontext.Decoder
	// at is where the value that was read last begins.
	at int64
}

func newReader(in io.Reader) *reader {
	return &reader{Decoder: jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))}
}

// value reads a value whole. It belongs to the reader, until something more is read.
func (r *reader) value() (jsontext.Value, error) {
	v, err := r.ReadValue()
	r.at = r.InputOffset() - int64(len(v))
	return v, err
}

// skip reads a value that is not wanted. It is faster than SkipValue.
func (r *reader) skip() error {
	_, err := r.ReadValue()
	return err
}

// array reads an array; element reads each element. Any other value is the error otherwise.
func (r *reader) array(otherwise string, element func() error) error {
	return r.each('[', ']', otherwise, element)
}

// object reads an object; member reads the value of each member. The key is in its quotes,
// and belongs to the reader. Any other value is the error otherwise.
func (r *reader) object(otherwise string, member func(quoted []byte) error) error {
	return r.each('{', '}', otherwise, func() error {
		quoted, err := r.value()
		if err != nil {
			return err
		}
		return member(quoted)
	})
}

// each reads from the bracket that opens an array or object to the one that closes it.
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

// unquote reads a JSON string as encoding/json does.
func unquote(quoted []byte) string {
	for _, b := range quoted {
		if b == '\\' || b >= 0x80 {
			var s string
			_ = json.Unmarshal(quoted, &s) // it is known to be a string
			return s
		}
	}
	return string(bytes.Trim(quoted, `"`))
}

// number reads a number. If there is something else, otherwise describes it.
func (r *reader) number(otherwise func() string) (float64, error) {
	v, err := r.value()
	switch {
	case err != nil:
		return 0, err
	case v.Kind() != '0':
		return 0, errors.New(otherwise())
	}
	return parseNumber(v)
}

// parseNumber reads a JSON number.
func parseNumber(number []byte) (float64, error) {
	if v, ok := text.ParseDecimal(number); ok {
		return v, nil
	}
	v, err := strconv.ParseFloat(string(number), 64)
	if err != nil { // only of a number that is too large
		return 0, fmt.Errorf("%q is beyond what a number can be", text.Clip(string(number), 40))
	}
	return v, nil
}
