package text

import (
	"fmt"
	"strings"
)

// DidYouMean returns the end of an error about a misspelled word: a question that suggests the word meant, in a format
// such as "--%s". If meant is "", it returns the string otherwise.
func DidYouMean(meant, format, otherwise string) string {
	if meant == "" {
		return otherwise
	}
	return "did you mean " + fmt.Sprintf(format, meant) + "?"
}

// Nearest returns the word that misspelt most likely means, or "" if no word is similar. A word is similar if it begins
// with misspelt, which must then have at least two letters. It is also similar if it differs from misspelt in at most
// two letters, and in fewer than half of its letters. Nearest returns the word that differs in the fewest letters. A
// transposition counts as one difference. Case does not matter.
func Nearest(misspelt string, words []string) string {
	const farthest = 2
	if len(misspelt) > 64 {
		return ""
	}

	typed := strings.ToLower(misspelt)
	best, distance := "", farthest+1
	for _, word := range words {
		lower := strings.ToLower(word)
		d := editDistance(typed, lower)
		if len(typed) > 1 && strings.HasPrefix(lower, typed) {
			d = min(d, farthest)
		} else if 2*d >= len(typed) {
			continue
		}
		if d < distance {
			best, distance = word, d
		}
	}

	return best
}

// editDistance returns the number of letters in which a and b differ: the Damerau-Levenshtein distance without repeated
// changes of a letter (https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance, "optimal string alignment").
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			changed := last[j]
			if a[i] != b[j] {
				changed++
			}
			row[j+1] = min(changed, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}

	return row[len(b)]
}
