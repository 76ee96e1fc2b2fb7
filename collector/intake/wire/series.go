package wire

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"
)

// A tag is a key with a value, which may be empty.
type tag struct{ key, value []byte }

// A seriesBuilder builds the name of a series from a name and tags. It reuses its memory.
type seriesBuilder struct {
	out  []byte
	tags [MaxTags]tag
	n    int
}

// add adds a tag. A tag equal to an earlier one is ignored.
func (b *seriesBuilder) add(key, value []byte) Reason {
	for _, t := range b.tags[:b.n] {
		if bytes.Equal(t.key, key) && bytes.Equal(t.value, value) {
			return Accepted
		}
	}
	if b.n == MaxTags || len(key)+len(value) > MaxText {
		return TooLong
	}
	b.tags[b.n] = tag{key, value}
	b.n++

	return Accepted
}

// series returns NAME, or NAME{k="v",…} with the tags sorted by key and then by value. Invalid characters in names and
// keys are replaced by "_", and values are escaped as in Prometheus' text format. The name must not be empty.
func (b *seriesBuilder) series(name []byte) ([]byte, Reason) {
	if len(name) > MaxText {
		return nil, TooLong
	}
	b.out = AppendName(b.out[:0], name)
	if b.n == 0 {
		return b.out, Accepted
	}

	tags := b.tags[:b.n]
	slices.SortFunc(tags, compareTags)
	for i, t := range tags {
		b.out = append(b.out, "{,"[min(i, 1)])
		b.out = AppendName(b.out, t.key)
		b.out = append(b.out, '=', '"')
		b.out = appendEscaped(b.out, t.value)
		b.out = append(b.out, '"')
	}
	b.out = append(b.out, '}')

	return b.out, Accepted
}

// compareTags orders tags by key and then by value.
func compareTags(x, y tag) int {
	return cmp.Or(bytes.Compare(x.key, y.key), bytes.Compare(x.value, y.value))
}

// inName reports whether a character is valid in a name: A-Z, a-z, 0-9 and _ - . / :
func inName(c byte) bool { return c >= '-' && c <= ':' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

// AppendName appends the name of a series to out, with "_" in place of each invalid character.
func AppendName(out, name []byte) []byte {
	for len(name) > 0 {
		clean := 0
		for clean < len(name) && inName(name[clean]) {
			clean++
		}
		out = append(out, name[:clean]...)
		if name = name[clean:]; len(name) > 0 {
			_, size := utf8.DecodeRune(name)
			out, name = append(out, '_'), name[size:]
		}
	}
	return out
}

// appendEscaped appends a value to out, escaped as between the quotation marks of Prometheus' text format.
func appendEscaped(out, value []byte) []byte {
	for _, c := range value {
		switch c {
		case '\\', '"':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		default:
			out = append(out, c)
		}
	}
	return out
}
