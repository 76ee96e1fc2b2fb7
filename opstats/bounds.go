package opstats

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The errors for rejected values. They are returned unwrapped.
var (
	// ErrNotFinite is the error for a number that is NaN, infinite, beyond ±1e100, or negative where it is a size.
	ErrNotFinite = errors.New("opstats: a number is not finite, negative or too large")
	// ErrMalformed is the error for a value without meaning: text that is not UTF-8, an attribute that is a list.
	ErrMalformed = errors.New("opstats: a value is not allowed here")
	// ErrFull is the error for a new entry beyond the limit.
	ErrFull = errors.New("opstats: no room for another entry")
)

// These bounds make overflow impossible without checks at each sum: a product of a value and a count stays below 1e250.
// No job comes near.
const (
	limit    = 1e100   // the largest size of one value
	sumLimit = 1e150   // the largest size of a sum, which only hostile input can reach
	maxCount = 1 << 53 // the largest whole count, which is exact as a float64, too
)

// inRange reports whether v is within ±limit. It is false for NaN.
func inRange(v float64) bool { return v >= -limit && v <= limit }

// bounded returns a sum that can be written and read back.
func bounded(sum float64) float64 { return max(-sumLimit, min(sum, sumLimit)) }

// isSize reports whether v is in 0..limit.
func isSize(v float64) bool { return v >= 0 && v <= limit }

// readJSON reads *into from JSON of the form W. check converts a W, or returns an error if it is impossible; an error
// leaves *into unchanged. null changes nothing, as encoding/json expects.
func readJSON[W, V any](what string, data []byte, into *V, check func(W) (V, error)) error {
	if string(data) == "null" {
		return nil
	}

	var w W
	err := json.Unmarshal(data, &w)
	if err == nil {
		var v V
		if v, err = check(w); err == nil {
			*into = v
			return nil
		}
	}
	return fmt.Errorf("read %s: %w", what, err)
}
