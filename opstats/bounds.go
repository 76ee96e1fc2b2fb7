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
	// ErrMalformed is the error for a value that is not valid, such as text that is not UTF-8 or an attribute that is a
	// list.
	ErrMalformed = errors.New("opstats: a value is not allowed here")
	// ErrFull is the error for a new entry when the limit is reached.
	ErrFull = errors.New("opstats: no room for another entry")
)

// These bounds make overflow impossible without a check at each sum: a product of a value and a count stays below
// 1e250. No job reports values near the bounds.
const (
	limit    = 1e100   // the largest absolute value of a number
	sumLimit = 1e150   // the largest absolute value of a sum, which only hostile input can reach
	maxCount = 1 << 53 // the largest whole count, which a float64 can represent exactly
)

// inRange reports whether v is within ±limit. It returns false for NaN.
func inRange(v float64) bool { return v >= -limit && v <= limit }

// bounded returns sum limited to ±sumLimit, so that it can be written and read back.
func bounded(sum float64) float64 { return max(-sumLimit, min(sum, sumLimit)) }

// isSize reports whether v is in 0..limit. It returns false for NaN.
func isSize(v float64) bool { return v >= 0 && v <= limit }

// readJSON reads *into from JSON of the form W. check converts a W to a V, or returns an error if the value is
// impossible. After an error, *into is unchanged. null changes nothing, as encoding/json expects.
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
