package clitest

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/testenv"
)

// Python returns the command line of a job that consists of a few lines of Python.
func Python(t testing.TB, lines ...string) []string {
	t.Helper()
	return []string{testenv.Python(t), "-c", strings.Join(lines, "\n")}
}

// Burn defines the Python function burn(seconds), which uses CPU time.
const Burn = `
import os, sys, time, threading
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
`

// ManyChildren runs 200 children in sequence. Each child uses 10 ms of CPU time.
const ManyChildren = Burn + `
for i in range(200):
    if os.fork() == 0:
        burn(0.01)
        os._exit(0)
    os.wait()
`

// DaemonBurns leaves a double-forked daemon that uses a second of CPU time and then waits for input or EOF on
// descriptor 9. The job prints the daemon's CPU time.
const DaemonBurns = Burn + `
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(r)
        burn(1)
        os.write(w, str(time.process_time()).encode())
        os.close(w)
        for fd in range(3): os.close(fd)
        os.read(9, 1)
        os._exit(0)
    os._exit(0)
os.wait()
os.close(w)
print(os.read(r, 64).decode())
`

// ThreadForks does all its work in children of a thread that is not the main thread.
const ThreadForks = Burn + `
def fork():
    pids = []
    for i in range(2):
        pid = os.fork()
        if pid == 0:
            burn(0.5)
            os._exit(0)
        pids.append(pid)
    for pid in pids: os.waitpid(pid, 0)
t = threading.Thread(target=fork)
t.start()
t.join()
`

// Sampled defines the Python function sampled(n), which waits for n more samples in the journal of the run.
const Sampled = `
import glob, os, time
def samples():
    return sum(open(path).read().count('{"sample"') for path in glob.glob("perfagent-out/*/*.jsonl"))
def sampled(n):
    n += samples()
    while samples() < n: time.sleep(0.05)
`

// Sharing runs four processes that share 300 MiB, until perfagent has taken several samples of them, or for 2 s.
const Sharing = Sampled + `
memory = bytearray(300 << 20)
r, w = os.pipe()
for i in range(3):
    if os.fork() == 0:
        os.close(w)
        os.read(r, 1)
        os._exit(0)
if "PERFAGENT_MARKS" in os.environ: sampled(8)
else: time.sleep(2)
os.close(w)
for i in range(3): os.wait()
`
