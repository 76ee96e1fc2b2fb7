package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
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

// countSamples is a part of a script: the number of samples in the journal of the job.
const countSamples = `"$(cat perfagent-out/*/*.jsonl 2>/dev/null | grep -c '{"sample"')"`

// untilSampledSo returns the script of a job that runs until the journal has at least the given number of samples.
func untilSampledSo(often int) string {
	return fmt.Sprintf(`until [ %s -ge %d ]; do sleep 0.05; done`, countSamples, often)
}

// untilSampledAgain is like untilSampledSo, but only samples from now on count.
func untilSampledAgain(often int) string {
	return fmt.Sprintf(`before=%s; until [ %[1]s -ge $((before+%d)) ]; do sleep 0.05; done`, countSamples, often)
}

// untilJournal returns the script of a job that runs until the journal has the given string, and then one more sample.
func untilJournal(text string) string {
	return fmt.Sprintf(`until grep -qs '"%s"' perfagent-out/*/*.jsonl; do sleep 0.05; done; %s`, text, untilSampledAgain(1))
}

// sampledAgain waits until the only journal of a process in dir has n more samples.
func sampledAgain(t testing.TB, dir string, n int) {
	t.Helper()
	journal := untilLines(t, filepath.Join(dir, "perfagent-out/*/node-0.jsonl"), 0)
	untilHas(t, journal, `{"sample"`, n+strings.Count(clitest.Read(t, journal), `{"sample"`))
}
