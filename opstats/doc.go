// Package opstats is the arithmetic of operations and transfers: what a job says about its own work, in memory that
// does not grow with the job.
//
//   - A [TimeStats] has count, mean, minimum, maximum and the last of the times that one operation took. It is
//     ProxyStore's class of that name.
//   - A [Metrics] has attributes, counters and times, and a [KeyedMetrics] keeps one for each key, up to a limit.
//   - A [Sketch] answers quantiles within 1 %. Sketches can be merged.
//   - A [Transfers] is the statistics of KV cache transfers that vLLM keeps in its class NixlKVConnectorStats.
//
// Times of operations are in milliseconds and durations of transfers are in seconds, as in the originals.
//
// What is refused changes nothing. The error is [ErrNotFinite], [ErrMalformed] or [ErrFull] itself, so a refusal costs
// no allocation and a caller can count each kind. A number beyond ±1e100 is refused like an infinite one, so no sum
// can overflow.
//
// The package is pure: no clock, no files, no locks, no goroutines. A value of its types belongs to one goroutine at a
// time; hand a Clone to another one. Every type can be written as JSON and read back without loss. What is read is
// checked, so damaged or hostile input gives an error and never a panic, and the receiver keeps what it had.
package opstats
