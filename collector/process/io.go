package process

import "math"

// IO is what processes have read and written, of /proc/PID/io: bytes from storage and to it (read_bytes and
// write_bytes), and calls of read(2), write(2) and their like (syscr and syscw). NaN is unknown.
type IO struct{ ReadBytes, WriteBytes, ReadCalls, WriteCalls float64 }

// UnknownIO returns an IO with nothing known.
func UnknownIO() IO {
	return IO{ReadBytes: math.NaN(), WriteBytes: math.NaN(), ReadCalls: math.NaN(), WriteCalls: math.NaN()}
}

// With returns what f makes of each number of two IOs.
func (io IO) With(o IO, f func(a, b float64) float64) IO {
	return IO{
		f(io.ReadBytes, o.ReadBytes), f(io.WriteBytes, o.WriteBytes),
		f(io.ReadCalls, o.ReadCalls), f(io.WriteCalls, o.WriteCalls),
	}
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
func (io *IO) lines() [4]ioLine {
	return [...]ioLine{
		{"read_bytes", &io.ReadBytes}, {"write_bytes", &io.WriteBytes},
		{"syscr", &io.ReadCalls}, {"syscw", &io.WriteCalls},
	}
}
