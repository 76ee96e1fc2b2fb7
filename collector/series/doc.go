// Package series summarizes a stream of samples in memory that does not grow with the stream.
//
// A sample is a row of columns, one number each. Two structures take every sample:
//
//   - A [Ring] is the picture: at most Capacity buckets over the whole stream. A bucket has its first sample unchanged
//     and a [Stat] (min, max, weighted mean) per column over all its samples. When the ring is full, neighbouring
//     buckets are merged and each stands for twice as many samples, so a one-second peak is still visible after a week.
//   - A [Summary] per column has exact numbers: count, mean, min, max, time at or above thresholds and quantiles over
//     every sample. They do not depend on the ring's capacity. Summaries of different nodes can be merged.
//
// Every value has a weight, the seconds it stands for, so that means and shares are right when ticks are late. The
// rules for values and weights are the same in the whole package:
//
//   - A value that is NaN, infinite or beyond ±1e100 was not measured. It never counts as 0.
//   - A value with a weight that is NaN, negative or beyond 1e100 does not count: a ring shows it in [Bucket].Values
//     and leaves it out of the statistics.
//   - A value of weight 0 counts for count, min and max. It counts for the mean, the shares and the quantiles only
//     while no value has a positive weight: then all values count the same.
//
// [Decimator] thins a stream like perf.py, for those who need perf.py's numbers.
//
// The package is pure: no clock, no files, no locks, no goroutines. A value of its types belongs to one goroutine at a
// time; pass a Clone to another goroutine. [Summary.MarshalJSON] and [RestoreRing] preserve every bit. Input from
// outside is checked: a damaged or hostile file gives an error and never a panic.
package series
