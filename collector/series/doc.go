// Package series summarizes a stream of samples in memory that does not grow with the stream.
//
// A sample is a row with one number per column. Two structures take every sample:
//
//   - A [Ring] is a picture of the whole stream in at most Capacity buckets. A bucket holds its first sample unchanged
//     and, per column, a [Stat] (min, max, weighted mean) over all its samples. When the ring is full, neighbouring
//     buckets are merged, and each then covers twice as many samples, so a one-second peak is still visible after a
//     week.
//   - A [Summary] holds exact numbers for one column: count, mean, min, max, time at or above thresholds, and quantiles
//     over every sample. They do not depend on the ring's capacity. Summaries of different nodes can be merged.
//
// Every value has a weight, the number of seconds that it covers, so that means and shares are correct when ticks are
// late. The rules for values and weights are the same in the whole package:
//
//   - A value that is NaN, infinite or beyond ±1e100 was not measured. It never counts as 0.
//   - A value with a weight that is NaN, negative or beyond 1e100 does not count: a ring keeps it in [Bucket].Values
//     but leaves it out of the statistics.
//   - A value of weight 0 counts for count, min and max. It counts for the mean, the shares and the quantiles only
//     while no value has a positive weight; then all values count equally.
//
// [Decimator] thins a stream like perf.py, for users who need perf.py's numbers.
//
// The package is pure: no clock, no files, no locks, no goroutines. A value of its types may be used by only one
// goroutine at a time; pass a Clone to another goroutine. [Summary.MarshalJSON] and [RestoreRing] preserve every bit.
// Input from files is checked: a damaged or hostile file causes an error and never a panic.
package series
