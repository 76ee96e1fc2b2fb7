package wire

import (
	"bytes"
	"encoding/json"
)

// maxDepth limits the nesting depth of arrays and objects, which must be smaller.
const maxDepth = 32

// A jsonValue is a value in a JSON text. Its kind is '"', '0' (a number), 't' (true or false), 'n' (null), '{', '[',
// 'N' (NaN or an infinity, which Python writes although they are not valid JSON), or 0 if there is no value.
type jsonValue struct {
	kind byte
	raw  []byte // for a string, without the quotation marks
}

// A scanner parses the members of a JSON object. Of nested objects and arrays it only finds the end, because their
// content is either ignored or parsed by encoding/json.
//
// The package jsontext, which is also linked into the binary, does not accept NaN and takes twice as long for a record
// (docs/dev/dependencies.md).
type scanner struct {
	data []byte
	at   int
}

// space skips white space and returns the next byte, or 0 at the end.
func (s *scanner) space() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take skips white space and then the byte c. It reports whether it found c.
func (s *scanner) take(c byte) bool {
	if s.space() != c {
		return false
	}
	s.at++
	return true
}

// member reads the next member of an object, after "{" and n members. It returns more = false at the end of the object,
// and ok = false if the text is not valid JSON.
func (s *scanner) member(n int) (name []byte, v jsonValue, more, ok bool) {
	if s.take('}') {
		return nil, v, false, true
	}
	if n > 0 && !s.take(',') {
		return nil, v, false, false
	}
	if s.space() != '"' {
		return nil, v, false, false
	}
	if name, ok = s.text(); !ok || !s.take(':') {
		return nil, v, false, false
	}
	v, ok = s.value()

	return name, v, ok, ok
}

// value reads a value.
func (s *scanner) value() (v jsonValue, ok bool) {
	c := s.space()
	start := s.at
	switch {
	case c == '"':
		v.raw, ok = s.text()
		v.kind = '"'
		return v, ok
	case c == '{' || c == '[':
		v.kind, ok = c, s.nested()
	case c == 't':
		v.kind, ok = 't', s.word("true")
	case c == 'f':
		v.kind, ok = 't', s.word("false")
	case c == 'n':
		v.kind, ok = 'n', s.word("null")
	case c == 'N' || c == 'I':
		v.kind, ok = 'N', s.word("NaN") || s.word("Infinity")
	default:
		v.kind, ok = s.number()
	}
	v.raw = s.data[start:s.at]

	return v, ok
}

// nested skips an object or an array. It checks only strings and brackets, and reports whether they are valid.
func (s *scanner) nested() bool {
	var open [maxDepth]byte // the opening brackets, by depth, which begins at 1
	for depth := 0; s.at < len(s.data); {
		switch c := s.data[s.at]; c {
		case '"':
			if _, ok := s.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			if depth++; depth >= maxDepth {
				return false
			}
			open[depth] = c
		case '}', ']':
			if open[depth] != c-2 { // in ASCII, a closing bracket is its opening bracket plus 2
				return false
			}
			if depth--; depth == 0 {
				s.at++
				return true
			}
		}
		s.at++
	}
	return false
}

// word skips the word w. It reports whether it found the word.
func (s *scanner) word(w string) bool {
	if len(s.data)-s.at < len(w) || string(s.data[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// number reads a number according to the grammar of JSON, which allows no plus sign, no leading zero, and no decimal
// point without digits around it.
func (s *scanner) number() (kind byte, ok bool) {
	s.word("-")
	if s.word("Infinity") {
		return 'N', true
	}
	start := s.at
	for s.at < len(s.data) && isNumeric(s.data[s.at]) {
		s.at++
	}
	text := s.data[start:s.at]
	n := digits(text)
	if n == 0 || n > 1 && text[0] == '0' || n < len(text) && text[n] == '.' && digits(text[n+1:]) == 0 {
		return 0, false
	}
	_, err := parseNumber(text)

	return '0', err == nil
}

// isNumeric reports whether a number may contain the byte c.
func isNumeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' || c|0x20 == 'e'
}

// text reads a string from its opening quotation mark, and returns the text between the quotation marks.
func (s *scanner) text() ([]byte, bool) {
	s.at++
	start, escaped := s.at, false
	for {
		s.at += plainText(s.data[s.at:])
		if s.at == len(s.data) {
			return nil, false
		}
		switch s.data[s.at] {
		case '"':
			s.at++
			return s.data[start : s.at-1], !escaped || json.Valid(s.data[start-1:s.at])
		case '\\':
			escaped = true
			s.at = min(s.at+2, len(s.data))
		default:
			return nil, false // a control character
		}
	}
}

// plainText returns the number of leading bytes of b that are ordinary characters of a string.
func plainText(b []byte) int {
	for i, c := range b {
		if c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return len(b)
}

// decoded returns the text of a string. It allocates if the string has escapes.
func (v jsonValue) decoded() []byte {
	if bytes.IndexByte(v.raw, '\\') < 0 {
		return v.raw
	}
	var text string
	quoted := append(append([]byte{'"'}, v.raw...), '"')
	_ = json.Unmarshal(quoted, &text) // the grammar has been checked
	return []byte(text)
}
