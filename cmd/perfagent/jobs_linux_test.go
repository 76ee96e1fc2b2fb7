package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
)

// parts maps the names of this test binary's helpers to their functions.
var parts = map[string]func(){
	"without pidfd": withoutPidfd,
	"burner":        burner, "counter": clitest.Counter, "diffburn": diffBurn, "hog": hog,
	"hydra proxy": hydraProxy,
}

// hog is a helper that touches 300 MiB of memory and ends after 0.3 s.
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

// untilSampledSo returns the script of a job that runs until the journal has at least the given number of samples.
func untilSampledSo(often int) string {
	return fmt.Sprintf(`until [ "$(cat perfagent-out/*/*.jsonl 2>/dev/null | grep -c '{"sample"')" -ge %d ]; do sleep 0.05; done`, often)
}
