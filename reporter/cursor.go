package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// cursor walks over JSON of which a library has checked the grammar, and which is
// therefore taken as it comes: several times faster than token by token. Over text
// that is no JSON it walks somehow; it does not panic and comes to an end.
type cursor struct {
	data []byte
	at   int
}

// peek gives the first byte of what comes next, white space apart; 0 at the end.
func (c *cursor) peek() byte {
	for c.at < len(c.data) {
		switch b := c.data[c.at]; b {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return b
		}
	}
	return 0
}

// enter goes behind a bracket, if that is what comes next.
func (c *cursor) enter(bracket byte) bool {
	if c.peek() != bracket {
		return false
	}
	c.at++
	return true
}

// more goes to the next element of the array or the next member of the object that
// was entered, or else behind the bracket that ends it.
func (c *cursor) more(end byte) bool {
	b := c.peek()
	if b == ',' {
		c.at++
		b = c.peek()
	}
	if b == end {
		c.at++
		return false
	}
	return b != 0
}

// quoted gives the string that comes next as it stands there, quotes included.
func (c *cursor) quoted() []byte {
	from := c.at
	for c.at++; c.at < len(c.data); c.at++ {
		switch c.data[c.at] {
		case '\\':
			c.at++
		case '"':
			c.at++
			return c.data[from:c.at]
		}
	}
	c.at = len(c.data)
	return c.data[from:]
}

// key gives the key that comes next, in its quotes, and goes to its value.
func (c *cursor) key() []byte {
	c.peek()
	quoted := c.quoted()
	if c.peek() == ':' {
		c.at++
	}
	return quoted
}

// unquote reads a JSON string as encoding/json does.
func unquote(quoted []byte) string {
	if len(quoted) < 2 { // no JSON
		return ""
	}
	for _, b := range quoted {
		if b == '\\' || b >= 0x80 {
			var s string
			if json.Unmarshal(quoted, &s) != nil {
				return string(quoted)
			}
			return s
		}
	}
	return string(quoted[1 : len(quoted)-1])
}

// skip goes behind the value that comes next.
func (c *cursor) skip() {
	depth := 0
	for c.peek(); c.at < len(c.data); {
		switch c.data[c.at] {
		case '"':
			c.quoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				c.at += depth + 1 // not behind the bracket that the value stands in
				return
			}
		case ',':
			if depth == 0 {
				return
			}
		}
		c.at++
	}
}

// number reads the number that comes next.
func (c *cursor) number() (float64, error) {
	from := c.at
	if v, ok := c.decimal(); ok {
		return v, nil
	}
	for c.at < len(c.data) && numeric(c.data[c.at]) {
		c.at++
	}
	v, err := strconv.ParseFloat(string(c.data[from:c.at]), 64)
	if err != nil { // only of a number that is too large
		return 0, fmt.Errorf("%q is beyond what a number can be", text.Clip(string(c.data[from:c.at]), 40))
	}
	return v, nil
}

// decimal reads a number of few digits without an exponent, as nearly all are. Its
// digits and the power of ten below them are then exact, and so their quotient is
// rounded once, as it must be.
func (c *cursor) decimal() (v float64, ok bool) {
	const exact = 15 // digits that any float64 holds
	i := c.at
	negative := i < len(c.data) && c.data[i] == '-'
	if negative {
		i++
	}
	digits, point, sum := 0, 0, uint64(0)
	for ; i < len(c.data); i++ {
		if d := c.data[i] - '0'; d <= 9 {
			sum = sum*10 + uint64(d)
			digits++
			continue
		}
		if c.data[i] != '.' {
			break
		}
		point = digits
	}
	if i < len(c.data) && numeric(c.data[i]) || digits == 0 || digits > exact {
		return 0, false
	}
	v = float64(sum)
	if point > 0 {
		v /= math.Pow10(digits - point)
	}
	if negative {
		v = -v
	}
	c.at = i
	return v, true
}

// numeric tells whether a byte can be part of a number.
func numeric(b byte) bool {
	return b >= '0' && b <= '9' || b == '.' || b == '-' || b == '+' || b == 'e' || b == 'E'
}

// numbers reads a list of numbers; null is NaN, and no list at all an empty one.
func (c *cursor) numbers() (Numbers, error) {
	switch c.peek() {
	case 'n':
		c.skip()
		return Numbers{}, nil
	case '[':
	default:
		return nil, errors.New("not a list of numbers")
	}
	rest := c.data[c.at:]
	if end := bytes.IndexByte(rest, ']'); end >= 0 {
		rest = rest[:end]
	}
	list := make(Numbers, 0, bytes.Count(rest, []byte{','})+1)
	for c.at++; c.more(']'); {
		switch b := c.peek(); {
		case b == 'n':
			c.skip()
			list = append(list, math.NaN())
		case numeric(b):
			v, err := c.number()
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		default:
			return nil, fmt.Errorf("value %d is not a number", len(list)+1)
		}
	}
	return list, nil
}

// band reads one key's envelope; null is an empty one. Keys are matched in either
// case, as encoding/json does.
func (c *cursor) band() (Band, error) {
	var b Band
	switch c.peek() {
	case 'n':
		c.skip()
		return b, nil
	case '{':
	default:
		return b, errors.New("not an object")
	}
	for c.at++; c.more('}'); {
		var list *Numbers
		switch key := unquote(c.key()); {
		case strings.EqualFold(key, "min"):
			list = &b.Min
		case strings.EqualFold(key, "mean"):
			list = &b.Mean
		case strings.EqualFold(key, "max"):
			list = &b.Max
		default:
			c.skip()
			continue
		}
		numbers, err := c.numbers()
		if err != nil {
			return b, err
		}
		*list = numbers
	}
	return b, nil
}
