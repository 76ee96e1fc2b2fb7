// Package intake receives operations that a job reports while it runs. It receives StatsD and DogStatsD lines and JSON
// records on two UDP ports or a Unix socket, and scrapes the metrics of Prometheus endpoints.
//
// An [Intake] is opened before the job starts, so that the addresses can be put into the job's environment. It collects
// everything in an [aggregate.Aggregator], and gives copies of it to readers:
//
//	in, err := intake.Open(intake.Options{Address: address}) // before the job starts; on error, in has no sockets
//	environment, notes := in.Environ(os.Environ())
//	in.Start(jobStart)                  // when the job has started
//	stats, keys = in.Collect(now, stats) // with each sample
//	copy := in.CopyAggregator()         // for the journal, from time to time
//	final := in.Close()                 // after the job has ended
//
// The job never waits for perfagent. A datagram on loopback is sent whether or not it is read; datagrams that do not
// fit in the kernel's buffer are dropped and counted.
//
// A separate goroutine reads the sockets, because the sampling goroutine runs only once per interval. A default buffer
// holds 256 datagrams of one line, a buffer of 4 MiB holds 10,000, and a buffer of 8 MiB holds 20,000: at 20,000
// datagrams per second, the largest buffer would be full after one second. The goroutine sleeps in Go's network poller
// until data arrives, reads all of it, and then pauses for 100 ms, or for 10 ms if many datagrams arrived or the buffer
// is small. Waking an idle Go program takes 0.1 to 0.3 ms of CPU time, as much as reading a hundred datagrams: when
// each of 50 datagrams per second woke it, perfagent used 15 ms of CPU time per second. The sockets are in a separate
// epoll(7) instance, in which a socket wakes the goroutine only once until it is armed again. In Go's poller, each
// datagram would wake a thread.
//
// The goroutine reads with read(2). recvmmsg(2) would take 0.85 µs of CPU time per datagram instead of 1.1 µs, of a
// total budget of 4 µs, and would need a buffer of 64 KiB for each datagram of a batch.
package intake
