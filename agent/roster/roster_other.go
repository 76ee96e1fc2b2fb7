//go:build !linux

package roster

import "errors"

// A Roster is an agent's part in a roster. There is none on this system.
type Roster struct{}

// Join returns errors.ErrUnsupported: the locks that it needs are those of Linux.
func Join([]string, Key, *int) (*Roster, error) { return nil, errors.ErrUnsupported }

// Founder returns "".
func (*Roster) Founder() string { return "" }

// Arrival returns 0.
func (*Roster) Arrival() int { return 0 }

// Others reports false.
func (*Roster) Others() bool { return false }

// TakeHost reports true.
func (*Roster) TakeHost() bool { return true }

// ReleaseHost does nothing.
func (*Roster) ReleaseHost() {}

// Leave returns nil.
func (*Roster) Leave(string, int) []string { return nil }
