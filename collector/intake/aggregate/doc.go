// Package book keeps account of what a job says about its own work: how long its operations took, what it counted, how
// its gauges stood, what was transferred. A [Aggregator] is that account, within bounds that no job can break: what is
// beyond is not taken, and is counted.
//
// Lines come in as events of package wire ([Aggregator.Add]), scrapes of a Prometheus endpoint through an [Endpoint].
// What was recorded comes out as [Operations] and as [Transfers], which have the names that they have in a report.
//
// The package has no clock, no files, no goroutines and no locks. A Book belongs to one goroutine at a time; another
// one gets a Clone.
package aggregate

// Bounds of a Book.
const (
	MaxSeries           = 512  // series of all kinds
	MaxKeys             = 1000 // pairs of an operation and a key
	MaxProxyStoreValues = 1000 // pairs of a series and an id of ProxyStore
	MaxTransfers        = 64   // names of transfers
	MaxMembers          = 1000 // members of a set that are told apart
	MaxExamples         = 5    // lines that are shown as examples of what was not taken
	MaxCharts           = 32   // series and transfers that have a time line, with patterns
	DefaultCharts       = 12   // and without
)

// These bounds keep the memory of a Book and the size of its state in bounds where names, values and sets are larger
// than those of any job that is known.
const (
	maxNameBytes   = 256 << 10 // of the names of all series
	maxSketchBytes = 768 << 10 // of the sketches of all series
	maxAllMembers  = 32768     // of all sets
	maxBuckets     = 16384     // of all histograms
	maxRanks       = 16384     // of all transfers
	maxSum         = 1e150     // the largest size of a counter
)

// Options say what a Book does with what it gets.
type Options struct {
	Charts []string // patterns, as of path.Match, of series and transfers that get a time line
}
