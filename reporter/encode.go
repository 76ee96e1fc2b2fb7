package reporter

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode gives the report file's bytes: JSON with one line per field, per sample
// and per envelope, so that it can be read, searched and compared by line, and
// still is small.
func Encode(r *Report) ([]byte, error) {
	compact, err := marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return indent(compact, 4), nil
}

// marshal is json.Marshal without the escapes for HTML: the file is no page.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// indent breaks compact JSON into lines down to a depth; what lies deeper stays
// on its line.
func indent(in []byte, depth int) []byte {
	out := make([]byte, 0, len(in)+len(in)/16)
	level, inString := 0, false
	newline := func() {
		out = append(out, '\n')
		for range level {
			out = append(out, ' ', ' ')
		}
	}
	for i := 0; i < len(in); i++ {
		c := in[i]
		if inString {
			out = append(out, c)
			switch c {
			case '\\':
				i++
				out = append(out, in[i])
			case '"':
				inString = false
			}
			continue
		}
		switch c {
		case '"':
			inString = true
			out = append(out, c)
		case '{', '[':
			level++
			out = append(out, c)
			if level <= depth && in[i+1] != c+2 {
				newline()
			}
		case '}', ']':
			level--
			if level < depth && in[i-1] != c-2 {
				newline()
			}
			out = append(out, c)
		case ',':
			out = append(out, c)
			if level <= depth {
				newline()
			}
		case ':':
			out = append(out, c)
			if level <= depth {
				out = append(out, ' ')
			}
		default:
			out = append(out, c)
		}
	}
	return append(out, '\n')
}
