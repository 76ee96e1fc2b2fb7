// Package opstats computes statistics of operations and transfers that a job reports, in memory that does not grow with
// the job.
//
//   - [TimeStats] holds the count, mean, minimum, maximum and last value of the times of one operation, like the class
//     of the same name in ProxyStore.
//   - [Metrics] holds attributes, counters and times. [KeyedMetrics] keeps Metrics for each key, up to a limit.
//   - [Sketch] estimates quantiles within 1 %. Sketches can be merged.
//   - [Transfers] holds the statistics of KV cache transfers, like vLLM's class NixlKVConnectorStats.
//
// Times of operations are in milliseconds and durations of transfers are in seconds, as in the originals.
//
// Unless stated otherwise, a method that returns an error changes nothing. The errors [ErrNotFinite], [ErrMalformed]
// and [ErrFull] are returned unwrapped, so a rejected value causes no allocation and a caller can count each kind.
// Numbers beyond ±1e100 are rejected in the same way as infinite ones, so no sum can overflow.
//
// The package is pure: no clock, no files, no locks, no goroutines. A value of its types may be used by only one
// goroutine at a time; pass a Clone to another goroutine. Every type except KeyedMetrics can be written as JSON and
// read back without loss. Input is checked: damaged or hostile input causes an error and never a panic, and leaves the
// receiver unchanged.
package opstats
