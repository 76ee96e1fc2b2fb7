package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// CPUs formats v, a number of CPUs: 2, 1.5, 0.25.
func CPUs(v float64) string {
	if !(math.Abs(v) < 1e7) {
		return Fixed(v, 0)
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// UsedCPUs formats v, a mean number of busy or idle CPUs: 0.36, 12.4.
func UsedCPUs(v float64) string {
	if v >= 9.995 {
		return Fixed(v, 1)
	}
	return Fixed(v, 2)
}

// TrimmedSizeText returns a [TrimmedSize] as a string.
func TrimmedSizeText(mib float64) string { return TrimmedSize(mib).String() }

// Plural returns the string one if n is 1, and the string many otherwise.
func Plural[N int | float64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Count formats n with the name of the counted items: "1 process", "3 processes".
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

// List joins the first n words with commas, and counts the rest.
func List(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}

// Parts collects the known parts of a sentence.
type Parts []string

// Add adds a part, formatted by [fmt.Sprintf], if known is set.
func (p *Parts) Add(known bool, format string, args ...any) {
	if known {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// String joins the parts with commas.
func (p Parts) String() string { return strings.Join(p, ", ") }
