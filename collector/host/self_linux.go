package host

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/internal/procfile"
)

// helper is what the program uses that asks for the GPUs. When one has ended its time is
// still to be left out.
type helper struct {
	pid         int
	ended, last float64 // seconds: of those that have ended, of the one that runs
	asked       *patience.Asker[family]
	family      family // of the one that runs, when it was told last
}

// helperPatience is how long it is waited for: the driver may keep it from answering.
const helperPatience = 200 * time.Millisecond

// own tells what of the group's numbers is ours: nothing where the group was made for
// the job.
func (j *jobReader) own() own {
	if j.Source == JobFromCreated {
		return own{}
	}
	out := own{processes: 1}
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
		out.cpu = time.Duration(ru.Utime.Nano() + ru.Stime.Nano()).Seconds()
	}
	self := statOf("self")
	out.memory, out.threads = self.private, self.threads
	if pid := j.helperPid(); pid > 0 {
		h := j.helper.look(pid)
		out.memory, out.threads, out.processes = out.memory+h.private, out.threads+h.threads, out.processes+h.processes
	} else {
		j.helper.run(0, 0)
	}
	out.cpu += j.helper.ended + j.helper.last
	return out
}

func newHelper() helper { return helper{asked: patience.New[family]()} }

// look asks what the helper that runs now uses, or has what it used before.
func (h *helper) look(pid int) family {
	f, ok := h.asked.Ask(helperPatience, func() family { return familyOf(pid) })
	switch {
	case ok:
		h.family = f
	case pid != h.pid:
		h.family = family{}
	}
	h.run(pid, h.family.cpu+h.family.waited)
	return h.family
}

// run notes what the helper that runs now has used.
func (h *helper) run(pid int, cpu float64) {
	if pid != h.pid {
		h.ended, h.last, h.pid = h.ended+h.last, 0, pid
	}
	h.last = max(h.last, cpu)
}

// maxFamily bounds how many processes of the helper are looked at.
const maxFamily = 32

// family is what a process and all below it use.
type family struct {
	processStat
	processes float64
}

// familyOf adds that up: nvidia-smi may be a script that starts the real one.
func familyOf(pid int) (sum family) {
	todo := []string{strconv.Itoa(pid)}
	for i := 0; i < len(todo) && i < maxFamily; i++ {
		p := statOf(todo[i])
		if p.threads == 0 {
			continue
		}
		sum.cpu, sum.waited = sum.cpu+p.cpu, sum.waited+p.waited
		sum.private, sum.threads = sum.private+p.private, sum.threads+p.threads
		sum.processes++
		data, _ := os.ReadFile("/proc/" + todo[i] + "/task/" + todo[i] + "/children") // CONFIG_PROC_CHILDREN
		todo = append(todo, strings.Fields(string(data))...)
	}
	return sum
}

// processStat is what a process uses: seconds, bytes that it shares with nobody, threads;
// and the seconds of the children that it waited for.
type processStat struct{ cpu, private, threads, waited float64 }

// statOf reads /proc/PID/stat and /proc/PID/statm (proc(5)); zero where it cannot.
func statOf(pid string) processStat {
	dir := "/proc/" + pid
	var out processStat
	data, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return out
	}
	var f [procfile.StatThreads + 1][]byte
	if _, _, n := procfile.SplitStat(data, f[:]); n < len(f) {
		return out
	}
	user, _ := procfile.ParseCount(f[procfile.StatUTime])
	system, _ := procfile.ParseCount(f[procfile.StatSTime])
	threads, _ := procfile.ParseCount(f[procfile.StatThreads])
	childUser, _ := procfile.ParseCount(f[procfile.StatCUTime])
	childSystem, _ := procfile.ParseCount(f[procfile.StatCSTime])
	out.waited = float64(childUser+childSystem) / procfile.UserHZ
	out.cpu, out.threads = float64(user+system)/procfile.UserHZ, float64(threads)
	if data, err = os.ReadFile(dir + "/statm"); err != nil {
		return out
	}
	var m [3][]byte // size, resident, shared; pages
	if procfile.SplitFields(data, m[:]) < len(m) {
		return out
	}
	resident, _ := procfile.ParseCount(m[1])
	shared, _ := procfile.ParseCount(m[2])
	out.private = max(0, float64(resident)-float64(shared)) * float64(unix.Getpagesize())
	return out
}
