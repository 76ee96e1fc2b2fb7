// Package intake receives what a job says about its own work while it runs: StatsD and DogStatsD lines and JSON records
// on two UDP ports or a Unix socket, and the metrics of Prometheus endpoints, which it scrapes.
//
// An [Intake] is opened before the job starts, so that the job finds the addresses in its environment. It keeps a
// [book.Book] of everything, of which readers get copies:
//
//	in, err := intake.Open(intake.Options{Address: address}) // before the job starts; err: without sockets
//	environment, notes := in.Environ(os.Environ())
//	in.Start(jobStart)                    // the job runs
//	figures, keys = in.Collect(now, figures, keys) // with each sample
//	copy := in.Book()                     // for the journal, from time to time
//	final := in.Close()                   // the job has ended
//
// The job never waits. A datagram on loopback is sent whether somebody reads it or not, and perfagent reads when it has
// the time: what the kernel had no room for is counted.
//
// The sockets have a goroutine of their own. The sampling goroutine comes by once per interval, and a default buffer
// holds 256 datagrams of a line, one of 4 MiB 10,000, and one of 8 MiB 20,000: at 20,000 a second the largest would be
// full after one. The goroutine sleeps in Go's network poller until something comes, reads all that is there, and then
// looks away, for 100 ms, or 10 ms if more than a few came or the buffer is small. A wake-up of a Go program that is
// idle takes 0.1 to 0.3 ms of CPU, as long as a hundred datagrams: with 50 datagrams a second, each of which wakes it,
// perfagent took 15 ms of CPU a second. The sockets are in an epoll(7) instance of their own, in which each wakes the
// goroutine once and then not again until it is armed anew; in Go's poller each datagram would wake a thread.
//
// It reads with read(2). recvmmsg(2) takes 0.85 µs of CPU for a datagram instead of 1.1 µs, of the 4 µs that one may
// take in all, and needs a buffer of 64 KiB for each datagram of a batch.
package intake
