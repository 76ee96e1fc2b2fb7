// Package series is the arithmetic of a stream of samples: what is kept of it and what is known of all of it,
// in memory that does not grow with the stream.
//
// A sample is a row of columns, one number each. Two things are fed with every sample:
//
//   - a [Ring], the picture: at most Capacity buckets over the whole stream, however long it gets. A bucket has one
//     sample as it was and a [Stat] (min, max, weighted mean) per column over all the samples it stands for. When the
//     ring is full, neighbouring buckets are merged and each stands for twice as many samples, so a one-second peak
//     is still in the picture after a week.
//   - one [Summary] per column, the truth: count, mean, min, max, time at or above thresholds and quantiles over every
//     sample. A Summary never looks at the ring, so its numbers do not depend on the ring's capacity; Summaries of
//     different nodes can be merged.
//
// Every value comes with a weight, the seconds it stands for, so that means and shares are true when ticks are late.
// The rules for values and weights are the same everywhere in the package:
//
//   - A value that is NaN, infinite or beyond ±1e100 was not measured. It is never counted as 0.
//   - A weight that is NaN, negative or beyond 1e100 says that the value must not count: a ring shows it in
//     [Bucket].Values and leaves it out of the statistics.
//   - A value of weight 0 counts for count, min and max. It counts for the mean, the shares and the quantiles only
//     while no value has a positive weight: then all values count the same.
//
// [Decimator] is perf.py's own way of thinning, for those who need the numbers perf.py would have given.
//
// The package is pure: no clock, no files, no locks, no goroutines. A value of its types belongs to one goroutine at a
// time; hand a Clone to another one. A [Summary] can be written as JSON and a [Ring] be rebuilt from its buckets
// ([RestoreRing]), both bit for bit; what comes from outside is checked, so a damaged or hostile file gives an error
// and never a panic.
package series
