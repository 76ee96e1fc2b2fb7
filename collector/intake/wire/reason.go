package wire

// A Reason is the reason for the rejection of a line. The zero value means that the line was accepted.
type Reason uint8

// The reasons. Each comment begins with the name in the object "dropped" of a report.
const (
	Accepted  Reason = iota
	Malformed        // malformed: does not match any grammar
	TooLong          // too_long: exceeds a limit
	NotFinite        // not_finite: NaN, infinite, beyond 1e100, or a negative size
	Ignored          // ignored: telemetry of a client about itself, or a service check
)

// String returns the name of the reason in a report.
func (r Reason) String() string {
	return [...]string{"accepted", "malformed", "too_long", "not_finite", "ignored"}[r]
}
