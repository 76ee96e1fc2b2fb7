package process

import "math"

// IO is what processes have read from storage and written to it, in bytes: read_bytes and write_bytes of /proc/PID/io.
// NaN is unknown.
type IO struct{ ReadBytes, WriteBytes float64 }

// UnknownIO returns an IO with nothing known.
func UnknownIO() IO { return IO{ReadBytes: math.NaN(), WriteBytes: math.NaN()} }

// With returns what f makes of each number of two IOs.
func (io IO) With(o IO, f func(a, b float64) float64) IO {
	return IO{f(io.ReadBytes, o.ReadBytes), f(io.WriteBytes, o.WriteBytes)}
}

// Plus returns the sum of two IOs.
func (io IO) Plus(o IO) IO { return io.With(o, func(a, b float64) float64 { return a + b }) }

// Minus returns the difference of two IOs.
func (io IO) Minus(o IO) IO { return io.With(o, func(a, b float64) float64 { return a - b }) }

// An ioLine is a line of /proc/PID/io and the number that it has.
type ioLine struct {
	key  string
	into *float64
}

// lines returns the lines that the numbers are in.
func (io *IO) lines() [2]ioLine {
	return [...]ioLine{{"read_bytes", &io.ReadBytes}, {"write_bytes", &io.WriteBytes}}
}
