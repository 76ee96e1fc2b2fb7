package scheduler

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Each file of testdata/env contains the environment of a process as recorded on a real system, and the expected
// identity.
func TestDetect_IdentifiesRecordedProcesses(t *testing.T) {
	files, err := filepath.Glob("testdata/env/*.txt")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files in testdata/env, error %v; want at least 50", len(files), err)
	}

	launches := make(namedLaunches)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, after, found := strings.Cut(string(data), "## expect\n")
			if !found {
				t.Fatalf("%s has no line \"## expect\"", file)
			}
			want := variables(after)

			id := Detect(Environment{
				Lookup: environment(variables(before)...), Hostname: valueIn(want, "host"),
				Parent: func() (process, day string) { return "4711 100", "2026-11-23" },
			})

			for key, got := range members(id) {
				if want := valueIn(want, key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			launches.add(t, valueIn(want, "launch"), id.Launch)
			checkRunID(t, id, valueIn(want, "run_id"))
		})
	}
}

// namedLaunches maps launches to their names.
type namedLaunches map[string]string

// add checks that each launch has exactly one name, and that no two launches have the same name.
func (l namedLaunches) add(t *testing.T, launch, name string) {
	t.Helper()

	if (launch == "") != (name == "") {
		t.Errorf("launch %q has the name %q, want a name if and only if there is a launch", launch, name)
	}
	for other, its := range l {
		if (other == launch) != (its == name) {
			t.Errorf("launch %q is named %q, launch %q is named %q; want exactly one name for each launch",
				launch, name, other, its)
		}
	}
	l[launch] = name
}

// checkRunID compares a run ID; "mpi-*" is the ID of a launch without a scheduler.
func checkRunID(t *testing.T, id Identity, want string) {
	t.Helper()

	if want == "mpi-*" {
		_, digits, ok := strings.Cut(id.Launch, "-")
		if want = "mpi-" + digits; !ok {
			want = "" // for Hydra, only processes identify the launch
		}
	}
	if id.RunID != want {
		t.Errorf("run id is %q, want %q", id.RunID, want)
	}
}

// variables returns the lines of a text that are neither empty nor a comment.
func variables(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// valueIn returns the value of NAME=VALUE in a list, "" if it has none.
func valueIn(list []string, name string) string {
	value, _ := environment(list...)(name)
	return value
}

// members returns the fields of an identity as texts; "" is unknown.
func members(id Identity) map[string]string {
	index := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}

	return map[string]string{
		"scheduler": id.Scheduler, "job_id": id.JobID, "node": cmp.Or(index(id.Node), NodeFromNone), "node_from": id.NodeFrom,
		"node_name": id.NodeName, "rank": index(id.Rank), "local_rank": index(id.LocalRank), "restart": count(id.Restart),
		"ranks_on_node": count(id.RanksOnNode), "world_size": count(id.WorldSize), "nodes": count(id.Nodes),
	}
}
