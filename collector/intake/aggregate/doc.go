// Package aggregate collects the operations that a job reports: the times of its operations, its counters, gauges,
// other values and transfers. An [Aggregator] does so within limits that no job can exceed: excess data is rejected and
// counted.
//
// Lines come in as events of package wire ([Aggregator.Add]), and scrapes of a Prometheus endpoint come through an
// [Endpoint]. The results are [Operations] and [Transfer], with the names that they have in a report.
//
// The package has no clock, no files, no goroutines and no locks. An Aggregator belongs to one goroutine at a time;
// give another goroutine a Clone.
package aggregate

// The limits of an Aggregator.
const (
	MaxSeries           = 512  // series of all kinds
	MaxKeys             = 1000 // pairs of an operation and a key
	MaxProxyStoreValues = 1000 // pairs of a series and an id of ProxyStore
	MaxTransfers        = 64   // names of transfers
	MaxMembers          = 1000 // different members of a set
	MaxExamples         = 5    // examples of rejected lines
	MaxCharts           = 32   // series and transfers with a timeline, with patterns
	DefaultCharts       = 12   // series and transfers with a timeline, without patterns
)

// These limits bound the memory of an Aggregator and the size of its state if names, values and sets are larger than in
// any known job.
const (
	maxNameBytes   = 256 << 10  // of the names of all series
	maxSketchBytes = 1536 << 10 // of the sketches of all series
	maxAllMembers  = 32768      // of all sets
	maxBuckets     = 16384      // of all histograms
	maxRanks       = 16384      // of all transfers
	maxSum         = 1e150      // largest absolute value of a counter
)

// Options configures an Aggregator.
type Options struct {
	Charts []string // patterns, as in path.Match, of series and transfers with a timeline
}
