package mlflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Limits, in bytes, of a response after decompression, and of the memory that the decoded response takes.
const (
	maxResponse     = 64 << 20
	maxTextResponse = 64 << 10  // of a response that is not MLflow's JSON; 300 characters of it are shown
	maxMemory       = 32 << 20  // of one response, or of a list with a limit
	maxListMemory   = 256 << 20 // of a list of all runs or experiments, or of a page of points
	itemMemory      = 128       // of an object or a null in an array, about, without its texts
)

// readResponse reads a response and decodes it into q.out. If that is nil, any response is accepted except an HTML
// page, which may be a login.
func (c *Client) readResponse(q *call, resp *http.Response) *Error {
	limit := int64(maxResponse)
	if c.config.MaxResponse > 0 {
		limit = min(limit, c.config.MaxResponse)
	}
	body := http.MaxBytesReader(nil, resp.Body, limit)
	data, err := io.ReadAll(io.LimitReader(body, maxTextResponse))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.statusError(q, resp, data) // even if reading failed: a part of the text is better than nothing
	}

	wanted := q.out != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
	if err == nil && wanted {
		var rest []byte
		rest, err = io.ReadAll(body)
		data = append(data, rest...)
	}
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err != nil && !tooLong:
		e := c.transportError(q, err)
		e.Status, e.Message = resp.StatusCode, "the response broke off: "+e.Message
		return e
	case wanted && tooLong:
		return q.failed(resp.StatusCode, fmt.Sprintf("the response is longer than %d bytes", limit))
	case wanted:
		return c.decode(q, resp, data)
	case q.out == nil && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		return nil
	}
	return c.notMLflow(q, resp, data)
}

// decode decodes data, the JSON of a response, unless that would exceed the memory limit. The limit counts objects and
// nulls, because encoding/json allocates a large item for each, even if it is short as text.
func (c *Client) decode(q *call, resp *http.Response, data []byte) *Error {
	most := cmp.Or(q.maxMemory, maxMemory)
	q.memory = q.before + len(data) + itemMemory*(bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("null")))
	if q.memory > most {
		return q.failed(resp.StatusCode, tooMany(fmt.Sprintf("%d MiB", most>>20)))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	err := d.Decode(q.out)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("there is more text after its end")
		}
	}
	e := &Error{Op: q.op, URL: q.url, Status: resp.StatusCode}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Message, e.Err, e.retryable = "the response is cut off", io.ErrUnexpectedEOF, true
	default:
		e.Message = c.clean("the response is malformed: " + err.Error())
	}
	return e
}

// tooMany returns the message for a response with more items than any MLflow server would send.
func tooMany(what string) string {
	return "the response is not from MLflow: it has more than " + what + " in it"
}

// An array is an array of objects or nulls in a response. Decoding ends at the first item of another kind:
// encoding/json would continue to the last one.
type array[T any] []T

func (a *array[T]) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	open, err := d.Token()
	switch {
	case err != nil || open == nil: // null
		return err
	case open != json.Delim('['):
		return errors.New("want an array")
	}
	*a = nil
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return err
		}
		*a = append(*a, item)
	}
	return nil
}
