package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
)

// parts are the jobs that this test binary plays.
var parts = map[string]func(){"burner": burner, "counter": counter, "diffburn": diffBurn, "hog": hog}

// counter says every signal that it gets, until a TERM, which makes it exit with 9.
// With E2E_TO3 it writes to descriptor 3 instead of standard output.
func counter() {
	clitest.Ends()
	ch := make(chan os.Signal, 100)
	signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGXCPU)
	out := os.Stdout
	if os.Getenv("E2E_TO3") != "" {
		out = os.NewFile(3, "signals")
	}
	clitest.Say(out, "ready", os.Getpid())
	for sig := range ch {
		name := unix.SignalName(sig.(syscall.Signal))
		if size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); sig == syscall.SIGWINCH && err == nil {
			clitest.Say(out, name, int(size.Row), int(size.Col))
		} else {
			clitest.Say(out, name)
		}
		if sig == syscall.SIGTERM {
			os.Exit(9)
		}
	}
}

// hog touches 300 MiB for 0.3 s.
func hog() {
	begin := time.Now()
	mem, err := unix.Mmap(-1, 0, 300<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
	time.Sleep(300*time.Millisecond - time.Since(begin))
}

// untilSampledSo is a job's text that goes on until the journal of the run has so many
// samples.
func untilSampledSo(often int) string {
	return fmt.Sprintf(`until [ "$(cat perfagent-out/*/*.jsonl 2>/dev/null | grep -c '{"sample"')" -ge %d ]; do sleep 0.05; done`, often)
}
