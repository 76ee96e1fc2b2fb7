package mlflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits, in bytes, of what is read of an answer after decompression.
const (
	maxSmallAnswer = maxValue // of an answer about one thing
	maxLargeAnswer = 64 << 20 // of an answer with a list; it is never in memory at once
	maxAnswerText  = 64 << 10 // of anything that is not MLflow's JSON; 300 characters of it are shown
)

// limit returns how many bytes of an answer are read if it may have n.
func (c *Client) limit(n int64) int64 {
	if c.config.MaxAnswer > 0 {
		return min(n, c.config.MaxAnswer)
	}
	return n
}

// read reads an answer and decodes it.
func (c *Client) read(q *call, resp *http.Response) *Error {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, c.limit(maxAnswerText))) // a part is better than nothing
		return c.refusal(q, resp, body)
	}

	body := http.MaxBytesReader(nil, resp.Body, c.limit(max(q.maxAnswer, maxAnswerText)))
	d := newDecoder(body, q.memory)
	if q.decode == nil || d.kind() != '{' {
		return c.readText(q, resp, io.MultiReader(bytes.NewReader(d.json.UnreadBuffer()), body))
	}
	err := q.decode(d)
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return c.undecodable(q, resp, d, err)
	}
	q.memory = d.memory
	return nil
}

// readText reads the beginning of an answer that is not a JSON object. Only where there is nothing to
// decode is it none of our business, unless it is a page: that of a login, say.
func (c *Client) readText(q *call, resp *http.Response, body io.Reader) *Error {
	text, err := io.ReadAll(io.LimitReader(body, maxAnswerText))
	var tooLong *http.MaxBytesError
	switch {
	case err != nil && !errors.As(err, &tooLong):
		return c.brokeOff(q, resp, err)
	case q.decode == nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")):
		return nil
	}
	return c.notMLflow(q, resp, text)
}

// undecodable returns the error for an answer that d could not decode because of err, although its
// status is 2xx.
func (c *Client) undecodable(q *call, resp *http.Response, d *decoder, err error) *Error {
	e := &Error{Op: q.op, URL: q.url, Status: resp.StatusCode}
	var tooMuch excessError
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooMuch):
		e.Message, e.final = tooMuch.Error(), true
	case errors.As(err, &tooLong):
		e.Message, e.final = fmt.Sprintf("the answer is longer than %d bytes", tooLong.Limit), true
	case d.err != nil && errors.Is(err, d.err):
		return c.brokeOff(q, resp, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Message, e.Err, e.retryable = "the answer ends in its middle", io.ErrUnexpectedEOF, true
	default:
		e.Message = c.clean("the answer is not understood: " + strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return e
}

// brokeOff returns the error for an answer that was cut off.
func (c *Client) brokeOff(q *call, resp *http.Response, err error) *Error {
	e := c.noAnswer(q, err)
	e.Status, e.Message = resp.StatusCode, "the answer broke off: "+e.Message
	return e
}

const (
	maxValue   = 4 << 20  // bytes of JSON that are decoded in one go: the info of a run, a point, a tag
	maxSkipped = 24 << 20 // bytes of a string that is passed over; a run's datasets may have profiles of 16 MiB
)

// An excessError reports an answer that is valid JSON, but more of it than any MLflow server would
// send.
type excessError string

func (e excessError) Error() string { return string(e) }

func excess(format string, args ...any) error { return excessError(fmt.Sprintf(format, args...)) }

// A memory is a budget for what is kept of an answer, or of all pages of a list. It is an estimate.
type memory struct{ used, limit int64 }

// take takes n bytes and the bytes of the texts from the budget.
func (m *memory) take(n int, texts ...string) error {
	for _, s := range texts {
		n += len(s)
	}
	if m.used += int64(n); m.used > m.limit {
		return excess("the answer is too large: it takes more than %d MiB of memory", m.limit>>20)
	}
	return nil
}

// A decoder reads an answer while it arrives, so that no more of a long one is in memory than what
// is kept of it: encoding/json would hold all of it. Objects and arrays are walked with jsontext,
// and what is small in them is decoded by encoding/json.
type decoder struct {
	json   *jsontext.Decoder
	memory memory

	body        io.Reader
	err         error // of reading from body, unless it is io.EOF
	limit, left int   // bytes of one token or value, because jsontext holds each as a whole
}

// newDecoder returns a decoder of what body sends. It is as lenient as encoding/json.
func newDecoder(body io.Reader, m memory) *decoder {
	d := &decoder{body: body, memory: m}
	d.json = jsontext.NewDecoder(d, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return d
}

// allow lets at most n bytes be read until the next call.
func (d *decoder) allow(n int) { d.limit, d.left = n, n }

// Read is for jsontext.
func (d *decoder) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, excess("the answer is too large: there is a single value of more than %d MiB in it", d.limit>>20)
	}
	n, err := d.body.Read(p[:min(len(p), d.left)])
	d.left -= n
	if err != io.EOF {
		d.err = err
	}
	return n, err
}

// kind returns the first byte of the next token, or 0 if there is none.
func (d *decoder) kind() jsontext.Kind {
	d.allow(maxValue)
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
	d.allow(maxValue)
	raw, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// skip passes over the next value.
func (d *decoder) skip() error {
	for depth := d.json.StackDepth(); ; {
		d.allow(maxSkipped)
		if _, err := d.json.ReadToken(); err != nil || d.json.StackDepth() <= depth {
			return err
		}
	}
}

// end checks that nothing follows the answer.
func (d *decoder) end() error {
	d.allow(maxValue)
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
