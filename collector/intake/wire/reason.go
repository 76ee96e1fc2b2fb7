package wire

// A Reason is the reason for a rejection; the zero value is acceptance.
type Reason uint8

// The reasons, with their names in a report's "dropped".
const (
	Accepted  Reason = iota
	Malformed        // malformed: does not match any grammar
	TooLong          // too_long: exceeds a limit
	NotFinite        // not_finite: NaN, infinite, beyond 1e100, or a negative size
	Ignored          // ignored: a client's own telemetry, a service check
)

// String returns the name of the reason in a report.
func (r Reason) String() string {
	return [...]string{"accepted", "malformed", "too_long", "not_finite", "ignored"}[r]
}
