package opstats

import (
	"encoding/json"
	"errors"
	"fmt"
)

// These errors say why a number was refused. They are returned as they are, not wrapped.
var (
	// ErrNotFinite refuses a number that is NaN, infinite, beyond ±1e100, or negative where only sizes make sense.
	ErrNotFinite = errors.New("opstats: a number is not finite, negative or too large")
	// ErrMalformed refuses what has no meaning: text that is not UTF-8, an attribute that is a list.
	ErrMalformed = errors.New("opstats: a value has no meaning here")
	// ErrFull refuses a new entry where there is no room for another.
	ErrFull = errors.New("opstats: no room for another entry")
)

// These bounds make overflow impossible instead of checked at each sum: a product of a value and a count stays below
// 1e250. No job comes near.
const (
	limit    = 1e100   // the largest size of one value
	sumLimit = 1e150   // the largest size of a sum, which only hostile input can reach
	maxCount = 1 << 53 // the largest whole count, which is exact as a float64, too
)

// inRange reports whether v is a number that counts. It is false for NaN.
func inRange(v float64) bool { return v >= -limit && v <= limit }

// bounded returns a sum that can be written and read back.
func bounded(sum float64) float64 { return max(-sumLimit, min(sum, sumLimit)) }

// isSize reports whether v is a number that counts and is not negative.
func isSize(v float64) bool { return v >= 0 && v <= limit }

// readJSON reads a value from its JSON, which has the form of a W. check returns the value, or an error for what no
// such value can be; then into keeps what it had. null changes nothing, as encoding/json expects.
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
