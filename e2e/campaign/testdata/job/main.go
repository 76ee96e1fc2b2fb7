// Job is the short job that the campaign wraps. It records its own usage, with which reports are compared.
//
// Usage: job DIR CPU-MS KIB SLEEP-MS CODE. It prints "said" to stdout, uses CPU time, writes a file, sleeps, and exits
// with the code. It writes a line to DIR/log at the beginning, for each received signal, and at the end.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

func main() {
	began := time.Now()
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGALRM, syscall.SIGIO)
	dir, number := os.Args[1], func(i int) int {
		n, err := strconv.Atoi(os.Args[i])
		must(err)
		return n
	}

	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	must(err)
	say := func(format string, values ...any) {
		_, err := fmt.Fprintf(log, format+"\n", values...)
		must(err)
	}
	say("begin %d %d", began.UnixNano(), os.Getpid())
	go func() {
		for s := range signals {
			say("signal %d", s)
		}
	}()
	fmt.Println("said")

	for burn := time.Duration(number(2)) * time.Millisecond; cpu(usage()) < burn; {
		time.Sleep(0)
	}
	if kib := number(3); kib > 0 {
		must(os.WriteFile(filepath.Join(dir, "data"), make([]byte, kib<<10), 0o666))
	}
	time.Sleep(time.Duration(number(4)) * time.Millisecond)

	u := usage()
	code := number(5)
	say("end %d %d %d %d", time.Now().UnixNano(), cpu(u), u.Oublock, code)
	os.Exit(code)
}

func usage() (u syscall.Rusage) {
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u
}

func cpu(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "job:", err)
		os.Exit(90)
	}
}
