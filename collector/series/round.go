package series

import "strconv"

// Round1 rounds x to one decimal exactly as Python's round(x, 1) does: it rounds the exact value, not a rounded
// product.
func Round1(x float64) float64 {
	var buf [32]byte
	v, err := strconv.ParseFloat(string(strconv.AppendFloat(buf[:0], x, 'f', 1, 64)), 64)
	if err != nil {
		return x
	}
	return v
}
