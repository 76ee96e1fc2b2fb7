package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/storetest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// storedReport returns a report in a store.
func storedReport(t *testing.T, address, name string) []byte {
	t.Helper()
	s, err := store.Open(address, store.Options{})
	check.Must(t, err)
	defer s.Close()
	data, err := s.Get(t.Context(), name)
	check.Must(t, err)
	return data
}

// readReport reads a report file.
func readReport(t *testing.T, path string) *reporter.Report {
	t.Helper()
	r, err := reporter.Decode([]byte(clitest.Read(t, path)))
	check.Must(t, err)
	return r
}

// storeState returns the store state in a report file.
func storeState(t *testing.T, path, node string) *reporter.StoreState {
	t.Helper()
	push := readReport(t, path).Nodes[node].Push
	if push == nil || push.Store == nil {
		t.Fatalf("%s records no put into a store", path)
	}
	return push.Store
}

// A speaker runs perfagent in a directory, and keeps everything that it prints.
type speaker struct {
	t    *testing.T
	dir  string
	env  []string
	said strings.Builder
}

// run runs perfagent and checks its exit code.
func (s *speaker) run(code int, args ...string) clitest.Outcome {
	s.t.Helper()
	cmd := clitest.Perfagent(s.t, args...)
	cmd.Dir, cmd.Env = s.dir, append(cmd.Env, s.env...)
	o := mustExit(s.t, code, cmd)
	s.said.WriteString(o.Out + o.Err)
	return o
}

// runRefused runs a job but cannot store its report, because the store refuses the connection within a time that a
// busy machine may exceed.
func (s *speaker) runRefused(flags ...string) clitest.Outcome {
	s.t.Helper()
	for _, limit := range []string{"1s", "10s", "1m"} {
		o := s.run(4, slices.Concat([]string{"run", "--push-timeout", limit}, flags, []string{"--", "sh", "-c", "exit 4"})...)
		if strings.Contains(o.Err, "connection refused") {
			return o
		}
	}
	s.t.Fatalf("the output lacks \"connection refused\": %s", s.said.String())
	return clitest.Outcome{}
}

// wantNoSecret checks that no secret was printed or is in a file of the directory.
func (s *speaker) wantNoSecret(secrets ...string) {
	s.t.Helper()
	for _, secret := range secrets {
		for line := range strings.Lines(s.said.String()) {
			if strings.Contains(line, secret) {
				s.t.Errorf("output has the secret %s: %.300s", secret, line)
			}
		}
		wantNoFile(s.t, s.dir, secret)
	}
}

// At the end of a run the store has the local report, without the state of the store. The other commands read the
// report by reference, and leave no temporary files.
func TestStore_RunPutsReportThatOtherCommandsReadByReference(t *testing.T) {
	t.Parallel()
	for kind, scheme := range map[string]string{"directory": "file://", "ProxyStore": "proxystore+file://"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir, tmp := t.TempDir(), t.TempDir()
			address := scheme + filepath.Join(dir, "store")
			p := &speaker{t: t, dir: dir, env: []string{"TMPDIR=" + tmp}}
			for _, id := range []string{"before", "after"} {
				o := p.run(3, "run", "--run-id", id, "--store", address, "--summary", "always", "--", "sh", "-c", "echo out; exit 3")
				if o.Out != "out\n" || !strings.Contains(o.Err, "perfagent: store: "+address+"#"+id+"/node-0, ") {
					t.Errorf("stdout %q, want \"out\\n\"; stderr %q, want the reference %s#%s/node-0", o.Out, o.Err, address, id)
				}
			}

			local := filepath.Join(dir, "perfagent-out", "before", "node-0.json")
			state := storeState(t, local, "0")
			if state.State != reporter.PushDone || state.URI != address || state.Reference != address+"#before/node-0" ||
				state.Metrics.Times["store.put"].Count != 1 {
				t.Errorf("state %+v, want done with the reference %s#before/node-0 after 1 put", state, address)
			}
			reportertest.ReadFile(t, local) // checks the schema
			inStore := storedReport(t, address, "before/node-0")
			if !reporter.SameRecording(inStore, []byte(clitest.Read(t, local))) || strings.Contains(string(inStore), `"store"`) {
				t.Error("the report in the store differs from the file, or has the state of the store")
			}

			shown := p.run(0, "show", "--json", address+"#before")
			if own := p.run(0, "show", "--json", "before"); own.Out != shown.Out {
				t.Errorf("show by reference prints\n%s\nwant the output of show by name\n%s", shown.Out, own.Out)
			}
			for _, format := range []string{"text", "jsonl"} {
				o := p.run(0, "show", "--format", format, address+"#before/node-0")
				if !strings.Contains(o.Out, "before/node-0") || strings.Contains(o.Out, tmp) {
					t.Errorf("show --format %s lacks before/node-0, or names a temporary file: %s", format, o.Out)
				}
			}
			p.run(0, "diff", address+"#before", "--", address+"#after")
			p.run(0, "plot", address+"#before", "--to", "p.html")
			p.run(0, "merge", address+"#before", "--to", "m.json", "--no-page")
			if got := readReport(t, filepath.Join(dir, "m.json")).Run.ID; got != "before" {
				t.Errorf("merged run %q, want before", got)
			}

			runs := decoded[[]struct{ Nodes int }](t, p.run(0, "ls", "--json", address).Out)
			if len(runs) != 2 || runs[0].Nodes != 1 {
				t.Errorf("ls --json lists %+v, want 2 runs with 1 node each", runs)
			}
			wantContains(t, p.run(0, "ls", address, "before").Out, " "+address+"#before/node-0\n")
			expectFiles(t, tmp)
		})
	}
}

// A wrong reference is reported in one line that contains the reference.
func TestStore_WrongReferenceIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := "proxystore+file://" + dir
	for name, data := range map[string]string{
		"perfagent.cut.node-0.json": "US\n{\"schema\":", "perfagent.dict.node-0.json": "PK\n\x80\x05}", "key": "XX\nwhat",
		"plain": "US\n{\"a\":1}", "perfagent.other.node-0.json": "US\n{\"a\":1}",
	} {
		clitest.Write(t, filepath.Join(dir, name), data, 0o600)
		clitest.Write(t, filepath.Join(dir, name+".ready"), "", 0o600)
	}
	put(t, address, "whole/node-0", 0, 1)
	for argument, words := range map[string]string{
		address + "#nothing":                "no object nothing in " + address,
		address + "#nothing/node-0":         "no object perfagent.nothing.node-0.json in " + address,
		address + "#cut":                    address + "#cut/node-0: it is not JSON, or is cut off",
		address + "#whole@0":                `no run "whole@0"; the runs in ` + address + " are whole",
		address + "#cut/node-0":             address + "#cut/node-0: it is not JSON, or is cut off",
		address + "#dict/node-0":            address + "#dict/node-0: it is a pickle (tag PK), which perfagent never reads; store the report as text: store.put(json.dumps(report))",
		address + "#key":                    address + "#key: it has the unknown tag XX",
		address + "#plain":                  address + "#plain is not a report: it has no \"schema\"",
		address + "#other/node-0":           address + "#other/node-0 is not a report: it has no \"schema\"",
		address + "?clear=1#a":              "unknown option",
		"gopher://u:s3cr3t@h/#a":            "unknown scheme",
		"file://" + dir + "#nothing":        "nothing",
		"file://" + dir + "#nothing/node-0": "no object file://" + dir + "#nothing/node-0",
		address + "#../x":                   "the name is not valid for an object",
	} {
		for _, args := range [][]string{{"show", argument}, {"push", "--store", t.TempDir(), argument}} {
			o := wantCall(t, 1, args...)
			if !strings.Contains(o.Err, words) || strings.Contains(o.Err, "s3cr3t") || strings.Contains(o.Err, "perfagent-store-") {
				t.Errorf("%s %s: stderr %q, want %q", args[0], argument, o.Err, words)
			}
		}
	}
}

// With a directory as a store, no name and no link gives access to files outside.
func TestStore_GivesNoAccessToFilesOutside(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	dir, tmp := filepath.Join(outside, "store"), t.TempDir()
	put(t, outside, "secret/node-0", 0, 1)
	put(t, dir, "job/node-0", 0, 1)
	for at, to := range map[string]string{"job/node-1.json": "secret/node-0.json", "link": "secret"} {
		check.Must(t, os.Symlink(filepath.Join(outside, to), filepath.Join(dir, at)))
	}

	page, merged, ours := filepath.Join(tmp, "p.html"), filepath.Join(tmp, "m.json"), dir+"#job/node-0"
	push := []string{"push", "--store", filepath.Join(tmp, "other")}
	for _, args := range [][]string{{"show"}, {"plot", "--to", page}, {"merge", "--to", merged}, {"diff", ours}, push, {"watch"}} {
		for _, name := range []string{
			"../secret/node-0", "job/../../secret/node-0", filepath.Join(outside, "secret/node-0"), "job/node-1", "link", "link/node-0",
			"..", "../secret",
		} {
			o := call(append(args, dir+"#"+name)...)
			if o.Code == 0 || o.Out != "" {
				t.Errorf("%s %s: exit code %d, stdout %s; want a failure without output", args[0], name, o.Code, o.Out)
			}
		}
	}
	expectFiles(t, tmp)

	o := wantCall(t, 0, "merge", "--to", merged, dir+"#job")
	if r := readReport(t, merged); len(r.Nodes) != 1 || !strings.Contains(o.Err, "left out: file://"+dir+"#job/node-1: a link leads out") {
		t.Errorf("%d nodes merged, want 1; stderr %q, want a line on the link that leads out", len(r.Nodes), o.Err)
	}
}

// If a part of a run is damaged, the rest is merged, and the exit code is 1.
func TestStore_MergesRestOfDamagedRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := "proxystore+file://" + dir
	for node := range 3 {
		put(t, address, fmt.Sprintf("job/node-%d", node), node, 3)
	}
	damaged := filepath.Join(dir, "perfagent.job.node-1.json")
	clitest.Write(t, damaged, clitest.Read(t, damaged)[:99], 0o600)

	out := filepath.Join(t.TempDir(), "m.json")
	wantError(t, call("merge", address+"#job", "--to", out, "--no-page"), 1, address+"#job/node-1: it is not JSON")
	if diff := cmp.Diff([]string{"0", "2"}, readReport(t, out).NodeNames()); diff != "" {
		t.Errorf("nodes of the merged report (-want +got):\n%s", diff)
	}
}

// A failing store does not affect the job, and the printed command puts the report into the store later.
func TestStore_FailureDoesNotAffectJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clitest.Write(t, filepath.Join(dir, "store"), "a file", 0o600)
	cmd := clitest.Perfagent(t, "run", "--run-id", "a", "--store", "./store", "--", "sh", "-c", "exit 4")
	cmd.Dir = dir
	o := mustExit(t, 4, cmd)
	local := filepath.Join(dir, "perfagent-out", "a", "node-0.json")
	if state := storeState(t, local, "0"); state.State != reporter.PushPending || state.Error == "" || state.Reference != "" {
		t.Errorf("state %+v, want pending with an error and no reference", state)
	}
	_, command, found := strings.Cut(o.Err, "store it with: ")
	command, _, _ = strings.Cut(command, "\n")
	if !found || !strings.Contains(o.Err, "perfagent: store: put a/node-0.json in file://") {
		t.Fatalf("stderr %q, want the failed put of a/node-0.json and a command", o.Err)
	}

	mustExit(t, 1, clitest.Script(t, "sh", command))
	check.Must(t, os.Remove(filepath.Join(dir, "store")))
	for range 2 {
		mustExit(t, 0, clitest.Script(t, "sh", command))
	}
	if state := storeState(t, local, "0"); state.State != reporter.PushDone || state.Error != "" {
		t.Errorf("state %+v, want done without an error", state)
	}
	expectFiles(t, filepath.Join(dir, "store", "a"), "node-0.json")
}

// A store on a hanging disk delays the end of perfagent by at most the push timeout.
func TestStore_HangingDiskDelaysEndByPushTimeout(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), hangingDir(t)
	begun := time.Now()
	o := mustRun(t, 5, "run", "--out", dir, "--run-id", "a", "--store", store, "--push-timeout", "1s", "--", "sh", "-c", "exit 5")
	says(t, o, "not finished within the --push-timeout of 1s; the report is safe")
	if took := time.Since(begun); took > noise {
		t.Errorf("perfagent ended after %v, want at most %v", took, noise)
	}
	if state := storeState(t, filepath.Join(dir, "a", "node-0.json"), "0"); state.State != reporter.PushPending {
		t.Errorf("state %+v, want pending", state)
	}
}

// Operations of a store are logged in the format of ProxyStore, but only with --log-level debug.
func TestStore_LogsOperationsOnlyAtDebug(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"run", "--out", dir, "--run-id", "job-7", "--store", "proxystore+file://" + dir + "/ps", "--summary", "never"}
	wantSilence(t, mustRun(t, 0, append(args, "--", "true")...))
	o := mustRun(t, 0, append(args, "--log-level", "debug", "--", "true")...)
	line := regexp.MustCompile(`Store\(name="job-7"\): PUT perfagent\.job-7\.node-0\.2\.json in \d+\.\d{3} ms`)
	if !line.MatchString(o.Err) {
		t.Errorf("stderr %q with --log-level debug, want a line that matches %v", o.Err, line)
	}
}

// The ranks of a node put only the report of the node into the store.
func TestStore_RanksPutOneReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `export PERFAGENT_RUN_ID=job PERFAGENT_STORE=` + dir + `/store
for i in 0 1 2; do "$P" run --out ` + dir + `/out -- sh -c ">$i; until [ -e 0 ] && [ -e 1 ] && [ -e 2 ]; do sleep 0.05; done" & done
wait`
	clitest.RunCommand(t, clitest.Script(t, "sh", script)).Want(t, 0)
	expectFiles(t, filepath.Join(dir, "store", "job"), "node-0.json")
	if ranks := readReport(t, filepath.Join(dir, "store/job/node-0.json")).Nodes["0"].Ranks; len(ranks) != 3 {
		t.Errorf("%d ranks in the stored report, want 3", len(ranks))
	}
	if state := storeState(t, filepath.Join(dir, "out", "job", "node-0.json"), "0"); state.State != reporter.PushDone {
		t.Errorf("state %+v, want done", state)
	}
}

// If the store is the directory of the reports, nothing is written twice.
func TestStore_ReportsDirectoryAsStoreWritesNothingTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		clitest.Run(t, "run", "--out", dir, "--run-id", "a", "--store", dir, "--no-page", "--", "true").Want(t, 0)
	}
	expectFiles(t, filepath.Join(dir, "a"), "node-0.2.json", "node-0.json")
	for _, name := range []string{"node-0.2", "node-0"} {
		if state := storeState(t, filepath.Join(dir, "a", name+".json"), "0"); !strings.HasSuffix(state.Reference, "#a/"+name) {
			t.Errorf("%s: state %+v, want the reference #a/%[1]s", name, state)
		}
	}
}

// The Python program of docs/stores.md finds the objects that its commands have stored.
func TestDocs_StorePythonFindsObjects(t *testing.T) {
	t.Parallel()
	python := filepath.Join(os.Getenv("PERFAGENT_TEST_OPS"), "bin", "python")
	if !clitest.Exists(python) {
		testenv.SkipOrFail(t, "needs ProxyStore: make test installs it; or name a venv that has it in PERFAGENT_TEST_OPS")
	}
	dir := t.TempDir()
	mustRun(t, 0, "run", "--run-id", "job-9", "--store", "proxystore+file://"+dir+"/ps", "--", "true")

	cmd := clitest.Command(t, python, "-c", fenced(t, "../../docs/stores.md", "python")[0].text)
	cmd.Dir = dir
	if o := mustExit(t, 0, cmd); o.Out != "job-9 0\n" {
		t.Errorf("the program printed %q, want \"job-9 0\\n\"", o.Out)
	}
}

// In a directory, a final report takes precedence over a partial one.
func TestStore_PrefersFinalToPartialReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, node := range map[string]int{"node-0": 0, "node-0.partial": 0, "node-1.2.partial": 1} {
		put(t, dir, "job/"+name, node, 2)
	}
	out := filepath.Join(t.TempDir(), "m.json")
	o := call("merge", "file://"+dir+"#job", "--to", out, "--no-page")
	wantError(t, o, 0, "file://"+dir+"#job/node-1.2.partial is from before the node's end")
	if strings.Contains(o.Err, "node-0") {
		t.Errorf("stderr names node-0, which has a final report: %s", o.Err)
	}
	if diff := cmp.Diff([]string{"0", "1"}, readReport(t, out).NodeNames()); diff != "" {
		t.Errorf("nodes of the merged report (-want +got):\n%s", diff)
	}
	wantCall(t, 0, "show", "file://"+dir+"#job/node-1.2.partial")
}

// For an empty store, ls prints a message, so that a wrong address is noticed.
func TestStore_LsReportsEmptyStore(t *testing.T) {
	t.Parallel()
	address := "file://" + filepath.Join(t.TempDir(), "none")
	o := wantCall(t, 0, "ls", "--json", address)
	o.WantLine(t, "no report is in "+address)
	if o.Out != "[]\n" {
		t.Errorf("ls --json of an empty store prints %q, want \"[]\\n\"", o.Out)
	}
}

// The password of Redis in the environment is in no output or file. A report that was not stored because the server was
// down can be stored later.
func TestStore_RedisPasswordIsInNoOutput(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-of-redis"
	server := storetest.Redis(t, "--requirepass", secret)
	dir := t.TempDir()
	at := func(server string) []string { return []string{"PERFAGENT_STORE=redis://:" + secret + "@" + server} }
	p := &speaker{t: t, dir: dir, env: at(server)}

	p.run(3, "run", "--run-id", "a", "--summary", "always", "--", "sh", "-c", "exit 3")
	reference := "redis://" + server + "#a"
	state := storeState(t, filepath.Join(dir, "perfagent-out", "a", "node-0.json"), "0")
	if state.State != reporter.PushDone || state.Reference != reference+"/node-0" {
		t.Errorf("state %+v, want done with the reference %s/node-0", state, reference)
	}
	for _, args := range [][]string{
		{"ls", "redis://" + server}, {"ls", "--json", "redis://" + server, "a"}, {"show", reference}, {"show", "--json", reference + "/node-0"},
		{"plot", reference, "--to", "a.html"}, {"merge", reference, "--to", "m.json"}, {"diff", reference, "--", "a"},
	} {
		p.run(0, args...)
	}
	p.env = at("127.0.0.2:1")
	p.run(1, "show", reference) // the password is for another server

	p.env = at(storetest.FreeAddress(t))
	p.runRefused("--run-id", "b")
	p.env = at(server)
	p.run(0, "push", "--store", "redis://"+server, "b")
	p.run(0, "show", "redis://"+server+"#b")
	p.wantNoSecret(secret)
}

// No output or file of any command has the password of an address or a reference, even if the command rejects the
// address. An address without a password uses the password in PERFAGENT_STORE, from the environment or a defaults file.
func TestStore_PasswordsAreInNoOutput(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-of-redis"
	server := storetest.Redis(t, "--requirepass", secret)
	with, without, dir := "redis://hugo:"+secret+"@"+server, "redis://"+server, t.TempDir()
	storetest.RedisSays(t, server, "AUTH "+secret+"\r\nACL SETUSER hugo on >"+secret+" ~* +@all")
	p := &speaker{t: t, dir: dir, env: []string{"TMPDIR=" + dir, ""}}

	p.run(0, "run", "--run-id", "a", "--store", with, "--summary", "always", "--listen", "0", "--", "true")
	p.env[1] = "PERFAGENT_STORE=" + with
	p.run(0, "run", "--run-id", "b", "--store", without, "--", "true")
	config := t.TempDir()
	clitest.Write(t, filepath.Join(config, "perfagent.env"), "PERFAGENT_STORE="+with+"\n", 0o600)
	p.env[1] = "XDG_CONFIG_HOME=" + config
	p.run(0, "run", "--run-id", "c", "--store", without+"/0", "--", "true")
	p.run(0, "show", without+"#c")
	p.env[1] = ""

	for _, args := range [][]string{
		{"ls", with}, {"ls", with, "a"}, {"show", with + "#a"}, {"show", "--json", with + "#a/node-0"},
		{"plot", with + "#a", "--to", "a.html"}, {"merge", with + "#a", "--lazy", "--to", "m.json"}, {"push", "--store", with, "a"},
		{"diff", with + "#a", with + "#b"}, {"diff", "--format", "json", with + "#a", with + "#c", "--", with + "#b"},
		{"diff", "--to", "d.html", with + "#a", "--", with + "#b"},
	} {
		p.run(0, args...)
	}
	for _, args := range [][]string{
		{"show", with}, {"plot", with + "#"}, {"merge", with, "--to", "n.json"}, {"show", with + "#none"}, {"ls", "x", with}, {"ls", with + "?x=1"},
		{"push", with, "--store", with}, {"watch", with}, {"watch", with + "#a"},
	} {
		p.run(1, args...)
	}
	p.run(2, "diff", with, with)
	p.run(125, "run", "--store", with+"?x=1", "--", "true")
	p.wantNoSecret(secret, "hugo")
}

// No command prints the password of a misspelt address, whatever the command takes the address for.
func TestStore_PasswordOfMisspeltAddressIsNotPrinted(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{
		"redis:/:hunter2@host", "redis::hunter2@host", "redis:hunter2@host#job", "redis;//:hunter2@host", "redis//:hunter2@host#job@2",
		":hunter2@host:6379", "user:hunter2@host", "rdis://:hunter2@host#job", "redis:///:hunter2@host", `redis:\\:hunter2@host`,
		"redis://:hunter2/@host#job", "redis://:hunter2@host:99x#job", "http:/user:hunter2@host/metrics",
	} {
		for _, args := range [][]string{
			{"show", address}, {"show", "--out=" + address}, {"show", "--format", address}, {"ls", address}, {"ls", "--out", address},
			{"plot", address}, {"plot", "--node", address}, {"merge", "--to", filepath.Join(dir, "m.json"), address}, {"merge", "--wait", address},
			{"diff", address, address}, {"push", address}, {"push", "--mlflow", address, "x"}, {"push", "--store", address, "x"},
			{"prune", "--out", address}, {"watch", address}, {"attach", address}, {"run", "--listen", address, "true"},
			{"run", "--scrape=" + address, "--", "true"}, {"run", "--run-id", address, "true"}, {"run", "--tag", address, "true"},
			{"run", "--stop-if", address, "true"}, {"run", "--" + address}, {"op", address}, {"help", address},
			{"completion", address}, {"metrics", address}, {address}, {"--" + address},
		} {
			o := call(args...)
			noRuns := o.Code == 0 && strings.Contains(o.Err, "there is no directory")
			if o.Code == 0 && o.Err != "" && !noRuns || strings.Contains(o.Out+o.Err, "hunter2") {
				t.Errorf("%q: exit code %d, want no password and no stderr after success: stdout %s, stderr %s",
					args, o.Code, o.Out, o.Err)
			}
		}
		t.Setenv("PERFAGENT_SCRAPE", address)
		if o := call("run", "--out", dir, "--", "true"); strings.Contains(o.Out+o.Err, "hunter2") {
			t.Errorf("with PERFAGENT_SCRAPE the output has the password: stdout %s, stderr %s", o.Out, o.Err)
		}
		t.Setenv("PERFAGENT_SCRAPE", "")
	}
}

// Incorrect usage is reported before the job starts.
func TestStore_IncorrectUsageIsReportedBeforeJob(t *testing.T) {
	t.Parallel()
	for words, args := range map[string][]string{
		"--store: open store: ":     {"run", "--store", "dir", "--", "echo"},
		"unknown scheme":            {"run", "--store", "http://u:s3cr3t@h", "--", "echo"},
		"--store-every: 5s":         {"run", "--store-every", "5s", "--", "echo"},
		"flags of MLflow":           {"push", "--store", "/s", "--mlflow", "http://h", "x"},
		"one RUN-ID at most":        {"ls", "file:///s", "a", "b"},
		"--store: open store: the ": {"push", "--store", "job", "x"},
	} {
		o := wantCall(t, map[string]int{"run": 125, "push": 1, "ls": 1}[args[0]], args...)
		if !strings.Contains(o.Err, words) || strings.Contains(o.Err, "s3cr3t") || o.Out != "" {
			t.Errorf("%v: stderr %q, want %q", args, o.Err, words)
		}
	}
}

// The keys of S3 are in no output or file. A report that was not stored because the server was down can be stored
// later.
func TestStore_S3KeysAreInNoOutput(t *testing.T) {
	t.Parallel()
	server := storetest.S3(t)
	dir, address := t.TempDir(), server.Address("p")
	p := &speaker{t: t, dir: dir}
	p.run(3, "run", "--run-id", "a", "--store", address, "--summary", "always", "--", "sh", "-c", "exit 3")
	state := storeState(t, filepath.Join(dir, "perfagent-out", "a", "node-0.json"), "0")
	if state.State != reporter.PushDone || state.Reference != address+"#a/node-0" || state.Unconditional {
		t.Errorf("state %+v, want done with the reference %s#a/node-0 and a conditional put", state, address)
	}
	if key := state.Metrics.Keys["p/a/node-0.json"]; key.Times["store.put"].Count != 1 {
		t.Errorf("keys %v, want 1 put of p/a/node-0.json", state.Metrics.Keys)
	}
	for _, args := range [][]string{
		{"ls", address}, {"ls", "--json", address, "a"}, {"show", address + "#a"}, {"show", "--json", address + "#a/node-0"},
		{"plot", address + "#a", "--to", "a.html"}, {"merge", address + "#a", "--to", "m.json"}, {"diff", address + "#a", "--", "a"},
	} {
		p.run(0, args...)
	}

	pasted := clitest.Script(t, "sh", `eval "$P show $("$P" ls "$1" a | awk 'NR == 2 { print $NF }')"`, address+"&style=path")
	mustExit(t, 0, pasted)

	down := "s3://runs/p?endpoint=http://" + storetest.FreeAddress(t)
	wantContains(t, p.runRefused("--run-id", "b", "--store", down).Err, "push --store '"+down+"' ")
	for range 2 {
		p.run(0, "push", "--store", address, "b")
	}
	p.run(0, "show", address+"#b")
	p.wantNoSecret(storetest.S3KeyID, storetest.S3Secret)
}

// The commands for S3 in docs/stores.md work with a test server.
func TestStore_S3CommandsOfTheDocsWork(t *testing.T) {
	t.Parallel()
	server := storetest.S3(t)
	dir := t.TempDir()
	for _, b := range fenced(t, "../../docs/stores.md", "sh s3") {
		runBlock(t, b.line, b.text, dir, "PATH="+filepath.Dir(clitest.Binary(t))+":"+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir,
			"AWS_ENDPOINT_URL="+server.Endpoint, "AWS_ACCESS_KEY_ID="+storetest.S3KeyID, "AWS_SECRET_ACCESS_KEY="+storetest.S3Secret)
	}
	if got := readReport(t, filepath.Join(dir, "ten.json")).Run.ID; got != "job-10" {
		t.Errorf("merged run %q, want job-10", got)
	}
}
