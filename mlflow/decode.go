package mlflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxValue   = 4 << 20  // bytes of JSON that are decoded in one go: the info of a run, a point, a tag
	maxSkipped = 24 << 20 // bytes of a string that is passed over; a run's datasets may have profiles of 16 MiB
)

// An excessError reports an answer that is valid JSON, but more of it than any MLflow server would
// send.
type excessError string

func (e excessError) Error() string { return string(e) }

// A memory is a budget for what is kept of an answer, or of all pages of a list. It is an estimate.
type memory struct{ used, limit int64 }

// take takes n bytes and the bytes of the texts from the budget.
func (m *memory) take(n int, texts ...string) error {
	for _, s := range texts {
		n += len(s)
	}
	m.used += int64(n)
	if m.used > m.limit {
		return excessError(fmt.Sprintf("the answer is too large: it takes more than %d MiB of memory", m.limit>>20))
	}
	return nil
}

// A decoder reads an answer while it arrives, so that no more of a long one is in memory than what
// is kept of it: encoding/json would hold all of it. Objects and arrays are walked with jsontext,
// and what is small in them is decoded by encoding/json.
type decoder struct {
	json   *jsontext.Decoder
	input  *input
	memory memory
}

// newDecoder returns a decoder of what body sends. It is as lenient as encoding/json.
func newDecoder(body io.Reader, m memory) *decoder {
	in := &input{body: body}
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	return &decoder{json: jsontext.NewDecoder(in, lenient...), input: in, memory: m}
}

// An input limits how much is read for one token or value, because jsontext holds each as a whole.
type input struct {
	body  io.Reader
	limit int
	left  int
	err   error // of reading from body, unless it is io.EOF
}

// allow lets at most n bytes be read until the next call.
func (in *input) allow(n int) { in.limit, in.left = n, n }

func (in *input) Read(p []byte) (int, error) {
	if in.left == 0 {
		const format = "the answer is too large: there is a single value of more than %d MiB in it"
		return 0, excessError(fmt.Sprintf(format, in.limit>>20))
	}

	n, err := in.body.Read(p[:min(len(p), in.left)])
	in.left -= n
	if err != nil && err != io.EOF {
		in.err = err
	}
	return n, err
}

// kind returns the first byte of the next token, or 0 if there is none.
func (d *decoder) kind() jsontext.Kind {
	d.input.allow(maxValue)
	return d.json.PeekKind()
}

// object calls member with the name of each member of the next value. member must read the member's
// value. A null is taken for an object without members.
func (d *decoder) object(member func(name string) error) error {
	return d.each('{', func() error {
		name, err := d.json.ReadToken()
		if err != nil {
			return err
		}
		return member(name.String())
	})
}

// array calls element for each element of the next value. element must read it. A null is taken for
// an empty array.
func (d *decoder) array(element func() error) error { return d.each('[', element) }

func (d *decoder) each(open jsontext.Kind, read func() error) error {
	kind := d.kind()
	token, err := d.json.ReadToken()
	switch {
	case err != nil || kind == 'n':
		return err
	case kind != open:
		return fmt.Errorf("%v where %v should be", token, open)
	}

	for {
		switch d.kind() {
		case '}', ']':
			_, err := d.json.ReadToken()
			return err
		}
		if err := read(); err != nil {
			return err
		}
	}
}

// value decodes the next value into v.
func (d *decoder) value(v any) error {
	d.input.allow(maxValue)
	raw, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// skip passes over the next value.
func (d *decoder) skip() error {
	for depth := d.json.StackDepth(); ; {
		d.input.allow(maxSkipped)
		if _, err := d.json.ReadToken(); err != nil || d.json.StackDepth() <= depth {
			return err
		}
	}
}

// end checks that nothing follows the answer.
func (d *decoder) end() error {
	d.input.allow(maxValue)
	switch _, err := d.json.ReadToken(); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("there is more after its end")
	default:
		return err
	}
}

// into returns a function that decodes a small answer into v.
func into(v any) func(*decoder) error {
	return func(d *decoder) error { return d.value(v) }
}
