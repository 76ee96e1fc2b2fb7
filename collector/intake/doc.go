// Package intake receives operations that a job reports while it runs: StatsD and DogStatsD lines and JSON records on
// two UDP ports or a Unix socket, and the metrics of Prometheus endpoints, which it scrapes.
//
// An [Intake] is opened before the job starts, so that the addresses are in the job's environment. It collects
// everything in an [aggregate.Aggregator]. Readers get copies of it:
//
//	in, err := intake.Open(intake.Options{Address: address}) // before the job starts; err: without sockets
//	environment, notes := in.Environ(os.Environ())
//	in.Start(jobStart)                  // the job runs
//	stats, keys = in.Collect(now, stats) // with each sample
//	copy := in.CopyAggregator()         // for the journal, from time to time
//	final := in.Close()                 // the job has ended
//
// The job never waits for perfagent. A datagram on loopback is sent whether or not it is read; datagrams that do not
// fit in the kernel's buffer are dropped and counted.
//
// The sockets have a separate goroutine, because the sampling goroutine runs only once per interval. A default buffer
// holds 256 datagrams of one line, a buffer of 4 MiB holds 10,000, and a buffer of 8 MiB holds 20,000: at 20,000 a
// second the largest would be full after one second. The goroutine sleeps in Go's network poller until data comes,
// reads it all, and then pauses for 100 ms, or for 10 ms if more than a few datagrams came or the buffer is small.
// Waking an idle Go program takes 0.1 to 0.3 ms of CPU, as much as reading a hundred datagrams: when each of 50
// datagrams a second woke it, perfagent took 15 ms of CPU a second. The sockets are in a separate epoll(7) instance, in
// which a socket wakes the goroutine one time until it is armed again; in Go's poller each datagram would wake a
// thread.
//
// The goroutine reads with read(2). recvmmsg(2) takes 0.85 µs of CPU for a datagram instead of 1.1 µs, of a budget of 4
// µs in total, and needs a buffer of 64 KiB for each datagram of a batch.
package intake
