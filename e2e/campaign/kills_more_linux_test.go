//go:build e2e

package campaign

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// ranksOfALaunch is the number of perfagents in a launch.
const ranksOfALaunch = 3

// killRanks kills one of the perfagents of a launch.
func killRanks(tr trial) outcome {
	id := fmt.Sprintf("campaign-%d-%d", os.Getpid(), time.Now().UnixNano())
	began := time.Now()
	dir, hit := tr.TempDir(), tr.random.IntN(ranksOfALaunch)
	var all []*process
	var jobs []job
	for rank := range ranksOfALaunch {
		j := tr.shortJob(rank)
		cmd := clitest.Perfagent(tr, append([]string{"run", "--out", dir, "--interval", "10ms", "--no-page",
			"--summary", "never", "--"}, j.words(tr)...)...)
		cmd.Env = append(cmd.Env, "SLURM_JOB_ID="+id, "SLURM_STEP_ID=0", "SLURM_NODEID=0", "SLURM_STEP_NUM_NODES=1",
			fmt.Sprint("SLURM_PROCID=", rank), fmt.Sprint("SLURM_LOCALID=", rank),
			fmt.Sprint("SLURM_STEP_NUM_TASKS=", ranksOfALaunch), fmt.Sprint("SLURM_STEP_TASKS_PER_NODE=", ranksOfALaunch))
		all, jobs = append(all, launch(tr, cmd)), append(jobs, j)
	}
	defer removeRoster(tr, began, all)

	codes, stories := make([]int, ranksOfALaunch), make([]story, ranksOfALaunch)
	codes[hit] = tr.strike(all[hit], jobs[hit])
	for rank, p := range all {
		if rank != hit {
			codes[rank] = p.wait(tr)
		}
		stories[rank] = jobs[rank].story(tr)
		tr.auditJob(p, jobs[rank], stories[rank], codes[rank])
		if codes[rank] == -1 && rank != hit {
			tr.Errorf("rank %d was harmed", rank)
		}
	}

	o := tr.auditFiles(dir)
	o.killed = codes[hit] == -1
	tr.auditRanks(dir, id, stories, o)
	tr.wantClean(dir, ".")
	return o
}

// auditRanks checks that each rank is in the run once, with its CPU time. A rank may be missing if its job did not
// begin.
func (tr trial) auditRanks(dir, id string, stories []story, o outcome) {
	tr.Helper()
	seen := make([]int, len(stories))
	found, err := catalog.Find(dir, id)
	if err != nil {
		tr.Errorf("%v: %+v", err, o)
		return
	}
	for _, path := range found.Paths() {
		r, err := reportfile.Read(path, 0)
		if err != nil {
			if st, errStat := os.Stat(path); errStat == nil && filepath.Ext(path) == ".jsonl" && st.Size() == 0 {
				continue
			}
			tr.Errorf("%s: %v", path, err)
			continue
		}
		for name, rank := range r.Nodes["0"].Ranks {
			n, _ := strconv.Atoi(name)
			seen[n]++
			if rank.Job != nil && rank.Job.ExitCode != nil {
				wantJob(tr, rank.Job, stories[n], path)
			}
		}
	}
	for rank, n := range seen {
		if n > 1 || n == 0 && stories[rank].begun > 0 && o.torn == 0 {
			tr.Errorf("rank %d is there %d times", rank, n)
		}
	}
}

// removeRoster removes the files of killed perfagents in /dev/shm. Otherwise perfagent would remove them after a day.
func removeRoster(tr trial, began time.Time, all []*process) {
	paths, _ := filepath.Glob("/dev/shm/perfagent-*")
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil || st.ModTime().Before(began) {
			continue
		}
		text, _ := os.ReadFile(path)
		for _, p := range all {
			if strings.Contains(string(text), fmt.Sprintf(`"pid":%d,`, p.Process.Pid)) {
				_ = os.Remove(path)
			}
		}
	}
}

// sidecarLength is the time after which a sidecar receives a signal to end.
const sidecarLength = 50 * time.Millisecond

// killSidecar kills a sidecar.
func killSidecar(tr trial) outcome {
	p := tr.perfagent("sidecar", "--interval", "10ms", "--out", "out", "--summary", "line")
	pid := p.Process.Pid
	ending := time.AfterFunc(sidecarLength, func() { _ = unix.Kill(-pid, syscall.SIGTERM) })
	code := tr.strike(p, job{})
	ending.Stop()

	dir := filepath.Join(p.Dir, "out")
	o := tr.auditFiles(dir)
	o.killed = code == -1
	if code != -1 && (code != 0 || o.reports != 1 || o.journals > 0) {
		tr.Errorf("exit code %d: %+v: %s", code, o, p.stderr.String())
	}
	for _, path := range reportsSaid(p.Dir, p.stderr.String()) {
		if !clitest.Exists(path) {
			tr.Errorf("%s was said to be there: %s", path, p.stderr.String())
		}
	}
	tr.wantClean(p.Dir, "out")
	return o
}

// killStored kills perfagent, or perfagent and its job, in a run with a store. One command then puts the recording into
// the store, and a second command does not put it there again.
func killStored(tr trial) outcome {
	j := tr.shortJob(7)
	p := tr.perfagent(append([]string{"run", "--interval", "10ms", "--out", "out", "--store", "./store", "--summary", "line",
		"--no-page", "--"}, j.words(tr)...)...)
	code := tr.strike(p, j)
	out, store := filepath.Join(p.Dir, "out"), filepath.Join(p.Dir, "store")
	tr.auditFiles(store)

	runs, _ := os.ReadDir(out)
	for range 2 {
		if len(runs) == 0 || len(glob(tr, out, "node-0.json")) == 0 {
			continue
		}
		push := launch(tr, clitest.Perfagent(tr, "push", "--out", out, "--store", store, runs[0].Name()))
		if code := push.wait(tr); code != 0 {
			tr.Errorf("push: exit code %d: %s", code, push.stderr.String())
		}
		if stored := glob(tr, store, "node-*.json"); len(stored) != 1 {
			tr.Errorf("the store has %v", stored)
		}
	}
	for _, path := range glob(tr, store, "node-0.json") {
		wantReport(tr, path, j.story(tr), j.end, tr.victim == ofBoth && j.story(tr).ended == 0)
	}
	tr.wantClean(p.Dir, "store")
	return tr.auditRun(p, j, code)
}

// finished holds a finished report that all pushes send.
var finished struct {
	once sync.Once
	data string
}

// finishedReport returns the bytes of the finished report.
func finishedReport(tr trial) string {
	finished.once.Do(func() {
		j := job{tr.TempDir(), 5, 16, 150, 0}
		p := tr.perfagent(append([]string{"run", "--interval", "10ms", "--run-id", "pushed",
			"--out", "out", "--"}, j.words(tr)...)...)
		if code := p.wait(tr); code == 0 {
			finished.data = clitest.Read(tr, filepath.Join(p.Dir, "out/pushed/node-0.json"))
		}
	})
	return finished.data
}

// killPush kills a push. A second push sends the rest, and sends nothing twice.
func killPush(tr trial) outcome {
	fake := mlflowtest.NewFake()
	fake.FileStore = true // this store keeps repeated points
	var busy sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		busy.Add(1)
		defer busy.Done()
		fake.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := tr.TempDir()
	path := filepath.Join(dir, "out/pushed/node-0.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		tr.Fatal(err)
	}
	clitest.Write(tr, path, finishedReport(tr), 0o666)

	code := tr.strike(tr.perfagent("push", "--mlflow", server.URL, path), job{})
	busy.Wait()
	o := tr.auditFiles(filepath.Join(dir, "out"))
	o.killed = code == -1
	if code > 0 {
		tr.Errorf("push: exit code %d", code)
	}

	for turn := range 2 {
		again := tr.perfagent("push", "--mlflow", server.URL, path)
		code := again.wait(tr)
		if said := again.stdout.String(); code != 0 || turn == 1 && !strings.Contains(said, "0 metrics and 0 points sent") {
			tr.Errorf("push %d: exit code %d: %s%s", turn+2, code, said, again.stderr.String())
		}
	}
	tr.auditServer(fake, path)
	tr.wantClean(dir, "out")
	return o
}

// auditServer checks that the server has one run with each point of the report once.
func (tr trial) auditServer(fake *mlflowtest.Fake, path string) {
	tr.Helper()
	runs := fake.Runs()
	if len(runs) != 1 {
		tr.Errorf("%d runs", len(runs))
		return
	}
	series := regexp.MustCompile(`^node_0/`)
	for name, points := range runs[0].Metrics {
		seen := make(map[int64]bool)
		for _, point := range points {
			if seen[point.Timestamp] && series.MatchString(name) {
				tr.Errorf("%s has two points at %d", name, point.Timestamp)
			}
			seen[point.Timestamp] = true
		}
	}
	if runs[0].Info.Status != "FINISHED" || len(runs[0].Metrics) < 20 {
		tr.Errorf("the run is %s with %d metrics", runs[0].Info.Status, len(runs[0].Metrics))
	}
	if r, err := reportfile.Read(path, 0); err != nil || r.Nodes["0"].Push == nil || r.Nodes["0"].Push.Pending() {
		tr.Errorf("the report does not say that it was pushed: %v", err)
	}
}
