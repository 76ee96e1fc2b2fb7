package clitest

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Counter is a helper that prints every signal that it receives. On SIGTERM, it exits with code 9. If E2E_TO3 is set,
// it writes to descriptor 3 instead of stdout.
func Counter() {
	LimitLifetime()
	ch := make(chan os.Signal, 100)
	signal.Notify(
		ch,
		syscall.SIGTERM,
		syscall.SIGINT,
		syscall.SIGHUP,
		syscall.SIGQUIT,
		syscall.SIGUSR1,
		syscall.SIGUSR2,
		syscall.SIGCONT,
		syscall.SIGWINCH,
		syscall.SIGALRM,
		syscall.SIGABRT,
		syscall.SIGXCPU,
	)

	out := os.Stdout
	if os.Getenv("E2E_TO3") != "" {
		out = os.NewFile(3, "signals")
	}

	Println(out, "ready", os.Getpid())
	for sig := range ch {
		name := unix.SignalName(sig.(syscall.Signal))
		if size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); sig == syscall.SIGWINCH && err == nil {
			Println(out, name, int(size.Row), int(size.Col))
		} else {
			Println(out, name)
		}
		if sig == syscall.SIGTERM {
			os.Exit(9)
		}
	}
}
