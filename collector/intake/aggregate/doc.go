// Package aggregate collects the operations that a job reports: the times of its operations, its counters, gauges,
// other values and transfers. An [Aggregator] keeps them within limits that no job can exceed; excess data is rejected
// and counted.
//
// Lines are added as events of package wire ([Aggregator.Add]), and scrapes of a Prometheus endpoint are added by an
// [Endpoint]. The results are [Operations] and [Transfer], in the form that they have in a report.
//
// The package has no clock, no files, no goroutines and no locks. An Aggregator may be used by only one goroutine at a
// time; pass a Clone to another goroutine.
package aggregate

// The limits of an Aggregator.
const (
	MaxSeries           = 512  // series of all kinds
	MaxKeys             = 1000 // pairs of an operation and a key
	MaxProxyStoreValues = 1000 // pairs of a series and an id of ProxyStore
	MaxTransfers        = 64   // names of transfers
	MaxMembers          = 1000 // different members of a set
	MaxExamples         = 5    // examples of rejected lines
	MaxCharts           = 32   // series and transfers with a timeline, if there are patterns
	DefaultCharts       = 12   // series and transfers with a timeline, if there are no patterns
)

// These limits bound the memory of an Aggregator and the size of its state, for jobs with larger names, values and sets
// than any known job has.
const (
	maxNameBytes   = 256 << 10  // size of the names of all series
	maxSketchBytes = 1536 << 10 // size of the sketches of all series
	maxAllMembers  = 32768      // members of all sets
	maxBuckets     = 16384      // buckets of all histograms
	maxRanks       = 16384      // ranks of all transfers
	maxSum         = 1e150      // maximum absolute value of a counter
)

// Options configures an Aggregator.
type Options struct {
	Charts []string // patterns, as in path.Match, of series and transfers with a timeline
}
