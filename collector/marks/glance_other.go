//go:build !linux

package marks

// A glance tells nothing here.
type glance struct{}

func newGlance(string) *glance { return &glance{} }

// same reports false: it is not known.
func (*glance) same() bool { return false }
