package mlflow

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxValue is how many bytes of JSON one thing may have that is decoded in one go: a run's info, a point, a tag.
const maxValue = 4 << 20

var (
	errLonger = errors.New("longer than its limit") // of reading an answer
	errMiddle = errors.New("it ends in its middle") // of decoding one
)

// excess is the error for an answer that is JSON as it should be, but more of it than any server of MLflow would send.
type excess string

func (e excess) Error() string { return string(e) }

// bounded reads at most left bytes of an answer; err is what ended it, other than its end.
type bounded struct {
	from io.Reader
	left int64
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left+1)])
	if int64(n) > b.left {
		n, err = int(b.left), errLonger
	}
	b.left -= int64(n)
	if err != io.EOF {
		b.err = err
	}
	return n, err
}

// more allows more to be read, unless it had to end before.
func (b *bounded) more(n int64) { b.left += n }

// stream decodes an answer while it comes in, so that of a long one no more is in memory than what is kept of it:
// encoding/json would have all of it, and a slice of whatever length it says. Objects and lists are walked; what is in
// them is decoded by encoding/json or passed over, of any length and depth and without looking closely.
type stream struct {
	in   *bufio.Reader
	raw  []byte // of the value that is being decoded
	keep int64  // how many bytes of memory what is decoded may take
	kept int64  // of them taken
}

// streamed is what decodes itself, each time from the beginning.
type streamed interface{ read(s *stream) error }

// answer decodes all that there is.
func (s *stream) answer(out any) error {
	var err error
	if list, ok := out.(streamed); ok {
		err = list.read(s)
	} else {
		err = s.value(out)
	}
	if err != nil {
		return err
	}
	switch c, err := s.peek(); {
	case err == nil:
		return fmt.Errorf("%q after its end", c)
	case !errors.Is(err, errMiddle):
		return err
	}
	return nil
}

// take counts memory that will not be free before the answer is read.
func (s *stream) take(n int) error {
	if s.kept += int64(n); s.kept > s.keep {
		return excess(fmt.Sprintf("the answer is too large: it takes more than %d MiB of memory", s.keep>>20))
	}
	return nil
}

// object calls field with the key of each field, which has to read the value; a null is an object without any.
func (s *stream) object(field func(key string) error) error {
	return s.items('{', '}', func() error {
		var key string
		if c, err := s.peek(); err == nil && c != '"' {
			return fmt.Errorf("%q where a key should be", c)
		}
		if err := s.value(&key); err != nil {
			return err
		}
		if c, err := s.next(); err != nil || c != ':' {
			return unexpected(c, err)
		}
		return field(key)
	})
}

// list calls item for each, which has to read it; a null is a list without any.
func (s *stream) list(item func() error) error { return s.items('[', ']', item) }

func (s *stream) items(first, last byte, item func() error) error {
	c, err := s.peek()
	if err == nil && c == 'n' {
		return s.value(new(*struct{}))
	}
	if err != nil || c != first {
		return unexpected(c, err)
	}
	s.in.Discard(1) // what peek saw
	if c, err = s.peek(); err == nil && c == last {
		s.in.Discard(1)
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		switch c, err := s.next(); {
		case err == nil && c == last:
			return nil
		case err != nil || c != ',':
			return unexpected(c, err)
		}
	}
}

// value decodes the next value.
func (s *stream) value(v any) error {
	s.raw = s.raw[:0]
	if err := s.pass(true); err != nil {
		return err
	}
	return json.Unmarshal(s.raw, v)
}

// skip passes over the next value.
func (s *stream) skip() error { return s.pass(false) }

// pass reads the next value up to its end, and notes its text if it is wanted.
func (s *stream) pass(note bool) error {
	c, err := s.peek()
	if err != nil || bytes.IndexByte([]byte(",:]}"), c) >= 0 {
		return unexpected(c, err)
	}
	if c != '"' && c != '{' && c != '[' {
		return s.scalar(note)
	}
	for depth := 0; ; {
		if c, err = s.byte(note); err != nil {
			return err
		}
		switch c {
		case '"':
			err = s.quoted(note)
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if err != nil || depth == 0 {
			return err
		}
	}
}

// quoted reads the rest of a string, of which there may be much: not byte by byte.
func (s *stream) quoted(note bool) error {
	for odd := false; ; { // odd is the number of backslashes before what comes
		part, err := s.in.ReadSlice('"')
		if note {
			if err := s.note(part...); err != nil {
				return err
			}
		}
		text := bytes.TrimSuffix(part, []byte{'"'})
		slashes := len(text) - len(bytes.TrimRight(text, `\`))
		odd = (odd && slashes == len(text)) != (slashes%2 == 1)
		switch {
		case err == nil && !odd:
			return nil
		case err == nil:
			odd = false // a quote, not the end
		case err == io.EOF:
			return errMiddle
		case err != bufio.ErrBufferFull:
			return err
		}
	}
}

// scalar reads a number, or a word. What ends it is left.
func (s *stream) scalar(note bool) error {
	for {
		c, err := s.byte(false)
		if err != nil {
			return err
		}
		if isSpace(c) || bytes.IndexByte([]byte(",:]}\"[{"), c) >= 0 {
			return s.in.UnreadByte()
		}
		if note {
			if err := s.note(c); err != nil {
				return err
			}
		}
	}
}

// byte reads one byte. The whole of an answer is an object: there is always another one.
func (s *stream) byte(note bool) (byte, error) {
	c, err := s.in.ReadByte()
	if err == io.EOF {
		err = errMiddle
	}
	if err == nil && note {
		err = s.note(c)
	}
	return c, err
}

func (s *stream) note(text ...byte) error {
	if len(s.raw)+len(text) > maxValue {
		return excess("the answer is too large: there is a single value of more than 4 MiB in it")
	}
	s.raw = append(s.raw, text...)
	return nil
}

// next reads the next byte that is no white space.
func (s *stream) next() (byte, error) {
	for {
		if c, err := s.byte(false); err != nil || !isSpace(c) {
			return c, err
		}
	}
}

// peek is next, but leaves the byte.
func (s *stream) peek() (byte, error) {
	c, err := s.next()
	if err == nil {
		err = s.in.UnreadByte()
	}
	return c, err
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// unexpected is the error for a byte that is not what is due; err, if any, is why there is none.
func unexpected(c byte, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%q where something else should be", c)
}
