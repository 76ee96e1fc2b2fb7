package process

import "math"

// IO is the I/O of processes from /proc/PID/io: bytes read from and written to storage (read_bytes and write_bytes),
// and calls to read(2), write(2) and the like (syscr and syscw). NaN means unknown.
type IO struct{ ReadBytes, WriteBytes, ReadCalls, WriteCalls float64 }

// UnknownIO returns an IO with all numbers unknown.
func UnknownIO() IO {
	return IO{ReadBytes: math.NaN(), WriteBytes: math.NaN(), ReadCalls: math.NaN(), WriteCalls: math.NaN()}
}

// With returns an IO with the results of f for each pair of numbers of io and o.
func (io IO) With(o IO, f func(a, b float64) float64) IO {
	return IO{
		f(io.ReadBytes, o.ReadBytes), f(io.WriteBytes, o.WriteBytes),
		f(io.ReadCalls, o.ReadCalls), f(io.WriteCalls, o.WriteCalls),
	}
}

// Plus returns io + o.
func (io IO) Plus(o IO) IO { return io.With(o, func(a, b float64) float64 { return a + b }) }

// Minus returns io − o.
func (io IO) Minus(o IO) IO { return io.With(o, func(a, b float64) float64 { return a - b }) }
