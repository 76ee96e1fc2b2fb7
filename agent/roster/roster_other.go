//go:build !linux

package roster

import "errors"

// A Roster represents an agent's membership in a roster. There are no rosters on this system.
type Roster struct{}

// Join returns errors.ErrUnsupported, because a roster needs Linux's locks.
func Join([]string, Key, *int) (*Roster, error) { return nil, errors.ErrUnsupported }

// ID returns "".
func (*Roster) ID() string { return "" }

// JoinIndex returns 0.
func (*Roster) JoinIndex() int { return 0 }

// HasOthers returns false.
func (*Roster) HasOthers() bool { return false }

// TakeHost returns true.
func (*Roster) TakeHost() bool { return true }

// ReleaseHost does nothing.
func (*Roster) ReleaseHost() {}

// Leave returns nil.
func (*Roster) Leave(string, int) []string { return nil }
