package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// CPUs writes a number of CPUs: 2, 1.5, 0.25.
func CPUs(v float64) string {
	if !(math.Abs(v) < 1e7) {
		return Fixed(v, 0)
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// UsedCPUs writes how many CPUs were busy or idle on average: 0.36, 12.4.
func UsedCPUs(v float64) string {
	if v >= 9.995 {
		return Fixed(v, 1)
	}
	return Fixed(v, 2)
}

// TrimmedSizeText writes a [TrimmedSize].
func TrimmedSizeText(mib float64) string { return TrimmedSize(mib).String() }

// Plural returns the word for n things.
func Plural[N int | float64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Count writes how many there are of a thing: "1 process", "3 processes".
func Count[N int | float64](n N, one, many string) string {
	number := Fixed(float64(n), 0)
	if whole, ok := any(n).(int); ok {
		number = strconv.Itoa(whole)
	}

	return number + " " + Plural(n, one, many)
}

// Choice joins alternatives: "a, b or c".
func Choice(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// List joins at most n words and counts the others.
func List(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}

// Parts collects the parts of a sentence that are known.
type Parts []string

// Add adds a part if it is known, formatted by [fmt.Sprintf].
func (p *Parts) Add(known bool, format string, args ...any) {
	if known {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// String joins the parts with commas.
func (p Parts) String() string { return strings.Join(p, ", ") }
