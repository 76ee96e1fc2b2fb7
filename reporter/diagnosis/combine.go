package diagnosis

import "github.com/perfagent/perfagent/reporter"

// Combine puts the pieces of a node together, as reporter.Combine does, and says which of its ranks failed first and
// what to change. The exit code is that of this rank.
func Combine(pieces []reporter.Source) (*reporter.Report, error) {
	r, err := reporter.Combine(pieces)
	if err != nil {
		return nil, err
	}
	conclude(r)
	return r, nil
}
