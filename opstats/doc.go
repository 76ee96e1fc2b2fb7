// Package opstats computes statistics of operations and transfers reported by a job, in memory that does not grow with
// the job.
//
//   - [TimeStats] has count, mean, minimum, maximum and last of the times of one operation, like ProxyStore's class of
//     that name.
//   - [Metrics] has attributes, counters and times. [KeyedMetrics] keeps Metrics for each key, up to a limit.
//   - [Sketch] estimates quantiles within 1 %. Sketches can be merged.
//   - [Transfers] has the statistics of KV cache transfers of vLLM's class NixlKVConnectorStats.
//
// Times of operations are in milliseconds and durations of transfers are in seconds, as in the originals.
//
// A method that returns an error changes nothing, unless noted. Errors are [ErrNotFinite], [ErrMalformed] or [ErrFull]
// themselves, so a rejected value costs no allocation and a caller can count each kind. Numbers beyond ±1e100 are
// rejected like infinite ones, so no sum can overflow.
//
// The package is pure: no clock, no files, no locks, no goroutines. A value of its types belongs to one goroutine at a
// time; pass a Clone to another goroutine. Every type but KeyedMetrics can be written as JSON and read back
// without loss. Input is checked: damaged or hostile input gives an error and never a panic, and leaves the receiver
// unchanged.
package opstats
