//go:build e2e

package browser

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// In all views, the page of a run in progress requests only itself.
func TestBrowser_LivePage(t *testing.T) {
	server := serving(t, func() *reporter.Report { return plottertest.JobSoFar(100) })
	var sheet [][]byte
	for _, v := range views(720, 980) {
		b := newTab(t)
		b.look(v)
		b.visit(server.URL + "/")
		b.is(shown(`document.querySelector("[data-live]")`) + ` && document.querySelector("[data-advice] code").textContent.startsWith("#SBATCH ")`)
		b.contrast()
		b.narrow()
		for _, address := range b.asked() {
			if address != server.URL+"/" {
				t.Errorf("%s: page requested %s, want only %s/", v.name, address, server.URL)
			}
		}
		if *pictures != "" {
			sheet = append(sheet, b.picture())
		}
		b.visit("about:blank") // stops the page's requests
	}
	if *pictures != "" {
		saveSheet(t, "live.png", sheet)
	}
}

// indexed writes runs for an index below a directory: a successful job, one killed for its memory, one with a failed
// node, and one that runs until the test ends.
func indexed(t *testing.T, out string) {
	write := func(id, node string, change func(r *reporter.Report)) {
		r := plottertest.Job()
		r.Run.ID = id
		n := r.Nodes["0"]
		delete(r.Nodes, "0")
		r.Nodes[node] = n
		change(r)
		data, err := reporter.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(out, id), 0o755); err != nil {
			t.Fatal(err)
		}
		clitest.Write(t, filepath.Join(out, id, "node-"+node+".json"), string(data), 0o644)
		clitest.Write(t, filepath.Join(out, id, "node-"+node+".html"), string(pageOf(t, r)), 0o644)
	}
	later := func(r *reporter.Report, d time.Duration) {
		r.Run.Start.Time, r.Run.End.Time = r.Run.Start.Add(d), r.Run.End.Add(d)
	}
	exit := func(r *reporter.Report, code int) { r.Run.ExitCode = &code }

	write("trial-7", "0", func(*reporter.Report) {})
	write("trial-8", "0", func(r *reporter.Report) {
		later(r, time.Hour)
		exit(r, 137)
		r.Run.Signal = "SIGKILL"
		r.Run.Command = []string{"python", "train.py", "--data", "/scratch/images", "--epochs", "5", "--batch-size", "512"}
		verdict := &reporter.Verdict{Cause: diagnosis.CauseOOMCgroup, Text: "killed by the kernel: python (process 14448) hit the memory limit of 24.0 GiB of its control group"}
		r.Run.Verdict = verdict
		for _, n := range r.Nodes {
			n.Verdict = verdict
		}
	})
	for _, node := range []string{"0", "1"} {
		write("ranks", node, func(r *reporter.Report) {
			later(r, 26*time.Hour)
			r.Run.Command = append([]string{"./solve"}, strings.Fields(strings.Repeat("--grid=128 ", 200))...)
			if node == "1" {
				exit(r, 5)
				r.Nodes["1"].Job.ExitCode = r.Run.ExitCode
			}
		})
	}

	cmd := clitest.Perfagent(t, "run", "-q", "--out", out, "--run-id", "now", "--", "sh", "-c", "echo ready $$; read x", "report.sh")
	in, hold := clitest.Pipe(t)
	cmd.Stdin = in
	p := clitest.StartProcess(t, cmd)
	in.Close()
	p.PID("ready")
	t.Cleanup(func() {
		hold.Close()
		p.End()
	})
}

// The index that ls writes has no script, requests nothing, fits the window in all views, and links to the pages of the
// runs.
func TestBrowser_IndexPage(t *testing.T) {
	dir := t.TempDir()
	indexed(t, filepath.Join(dir, "perfagent-out"))
	ls := clitest.Perfagent(t, "ls", "--to", "index.html")
	ls.Dir = dir
	ls.Env = append(ls.Env, "TZ=UTC")
	clitest.RunCommand(t, ls).Want(t, 0)
	html, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	wantSelfContained(t, html)
	address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(dir, "index.html"))}).String()

	var sheet [][]byte
	for _, v := range views(900, 420) {
		b := newTab(t)
		b.scripts(false)
		b.look(v)
		b.visit(address)
		b.is(`document.querySelectorAll("[data-runs] tbody tr").length === 4`)
		b.is(`document.querySelectorAll("tr.failed").length === 2 && document.querySelectorAll("tr.live").length === 1`)
		b.is(`[...document.querySelectorAll("[data-runs] td:last-child")].every(e => e.title === e.textContent && e.firstChild.offsetHeight <= 66)`)
		b.is(`document.querySelector("[data-runs]").scrollWidth <= document.querySelector(".scroll").clientWidth`)
		b.contrast()
		b.narrow()
		if got := b.asked(); len(got) != 1 {
			t.Errorf("%s: page requested %q, want only itself", v.name, got)
		}
		if *pictures != "" {
			sheet = append(sheet, b.picture())
		}
	}
	if *pictures != "" {
		saveSheet(t, "index.png", sheet)
	}

	b := newTab(t)
	b.visit(address)
	b.click(b.box(`a[href$="trial-8/node-0.html"]`), 0.5, 0.5)
	b.until(`(document.querySelector("[data-verdict]") || {textContent: ""}).textContent.includes("killed")`)
	if got := b.asked(); len(got) != 2 || !strings.HasSuffix(got[1], "/perfagent-out/trial-8/node-0.html") {
		t.Errorf("requests after a click on the link: %q, want the page of trial-8", got)
	}
}
