package wire

// A Reason says why something was not taken. The zero value says that it was.
type Reason uint8

// The reasons, with the names that a report's "dropped" has for them.
const (
	Accepted  Reason = iota
	Malformed        // malformed: no grammar fits
	TooLong          // too_long: beyond one of the bounds
	NotFinite        // not_finite: NaN, infinite, beyond 1e100, or negative where only sizes make sense
	Ignored          // ignored: a client's own telemetry, a service check
)

// String returns the name of the reason in a report.
func (r Reason) String() string {
	return [...]string{"accepted", "malformed", "too_long", "not_finite", "ignored"}[r]
}
