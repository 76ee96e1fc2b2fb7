package mlflow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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
	case d.input.err != nil && errors.Is(err, d.input.err):
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
