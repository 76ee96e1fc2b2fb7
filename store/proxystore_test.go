package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/store"
)

// python runs a script of testdata with the Python of an environment, and decodes the JSON that it prints.
func python(t *testing.T, environment string, out any, script string, arguments ...string) {
	t.Helper()
	variable := "PERFAGENT_TEST_" + environment
	path := filepath.Join(os.Getenv(variable), "bin", "python")
	if _, err := os.Stat(path); err != nil || os.Getenv(variable) == "" {
		testenv.SkipOrFail(t, "needs ProxyStore: run make test, which installs it, or name a venv with ProxyStore in "+variable)
	}

	cmd := exec.Command(path, append([]string{filepath.Join("testdata", script)}, arguments...)...)
	cmd.Stderr = os.Stderr
	data := check.Value(cmd.Output())(t)
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatalf("the output of %s is not JSON: %v: %s", script, err, data)
	}
}

// A call is an operation on a store.
type call struct {
	Op    string `json:"op"`
	Key   string `json:"key"`
	Value string `json:"value"`
}

// randomCalls returns calls on more objects than fit into a cache. No object is put twice, because in Python each put
// creates a new key.
func randomCalls(rng *rand.Rand, n int) []call {
	var calls []call
	put := make(map[string]bool)
	for range n {
		c := call{Key: fmt.Sprintf("run/node-%d", rng.IntN(24)), Value: strings.Repeat("é", rng.IntN(40))}
		switch k := rng.IntN(10); {
		case k < 3 && !put[c.Key]:
			c.Op, put[c.Key] = []string{"put", "proxy"}[rng.IntN(2)], true
		case k < 7:
			c.Op = "get"
		case k < 9:
			c.Op = "exists"
		default:
			c.Op = "evict"
		}
		calls = append(calls, c)
	}

	return calls
}

// counted holds the metrics that must agree in two Stores after the same calls.
type counted struct {
	Counters   map[string]float64 `json:"counters"`
	Attributes map[string]any     `json:"attributes"`
	Times      map[string]float64 `json:"times"` // the counts
}

// do executes a call on our Store, and returns the result in the form that Python prints.
func do(t *testing.T, s *store.Store, c call) any {
	t.Helper()
	var result any
	var err error
	switch c.Op {
	case "put":
		err = s.Put(t.Context(), c.Key, []byte(c.Value))
	case "proxy":
		var ref *store.Ref
		var data []byte
		if ref, err = s.Proxy(t.Context(), c.Key, []byte(c.Value), store.RefOptions{}); err == nil {
			data, err = ref.Resolve(t.Context())
			result = string(data)
		}
	case "get":
		var data []byte
		if data, err = s.Get(t.Context(), c.Key); err == nil {
			result = string(data)
		} else if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
	case "exists":
		result, err = s.Exists(t.Context(), c.Key)
	case "evict":
		err = s.Evict(t.Context(), c.Key)
	}
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}

	return result
}

// A random sequence of operations has the same results, counts, counters and sizes as in ProxyStore's Store.
func TestStore_CountsOperationsLikeProxyStore(t *testing.T) {
	for seed := range uint64(testenv.Rounds(5, 1)) {
		calls := randomCalls(rand.New(rand.NewPCG(seed, 5)), 400)
		path := filepath.Join(t.TempDir(), "calls.json")
		data, err := json.Marshal(calls)
		if err = errors.Join(err, os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
		var want struct {
			Results []any              `json:"results"`
			Keys    map[string]counted `json:"keys"`
		}
		python(t, "OPS", &want, "operations.py", path)

		s := open(t, "proxystore+file://"+t.TempDir())
		var results []any
		for _, c := range calls {
			results = append(results, do(t, s, c))
		}
		same(t, fmt.Sprintf("seed %d: results", seed), results, want.Results)

		got := make(map[string]counted)
		for key, m := range s.Metrics().Keys {
			name := strings.Replace(strings.TrimSuffix(strings.TrimPrefix(key, "perfagent."), ".json"), ".", "/", 1)
			got[name] = counted{Counters: m.Counters, Attributes: m.Attributes, Times: counts(m.Times)}
		}
		same(t, fmt.Sprintf("seed %d: metrics", seed), got, want.Keys)
	}
}

// Our objects have the same bytes as a str stored by ProxyStore's FileConnector, and Python reads them.
func TestStore_ProxyStoreReadsObjects(t *testing.T) {
	const text = `{"schema": "é"}`
	for _, c := range []struct{ environment, options, tag string }{{"OPS", "", "US"}, {"OPS_06", "?serializer=02", "02"}} {
		t.Run(c.environment, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, "proxystore+file://"+dir+c.options)
			put(t, s, "job-7/node-0", text)
			files := map[string]string{}
			for _, f := range glob(t, dir) {
				files[f] = string(check.Value(os.ReadFile(filepath.Join(dir, f)))(t))
			}
			same(t, "stored files", files, map[string]string{
				"perfagent.job-7.node-0.json": c.tag + "\n" + text, "perfagent.job-7.node-0.json.ready": "",
			})

			var got []any
			python(t, c.environment, &got, "connectors.py", dir, "get", "perfagent.job-7.node-0.json", "perfagent.job-7.node-1.json")
			same(t, "objects that Python reads", got, []any{text, nil})

			check.Must(t, s.Evict(t.Context(), "job-7/node-0"))
			python(t, c.environment, &got, "connectors.py", dir, "exists", "perfagent.job-7.node-0.json")
			same(t, "after Evict: Python's exists", got, []any{false})
			same(t, "files after Evict", glob(t, dir), []string(nil))
		})
	}
}

// Get returns str and bytes stored by Python, and refuses a pickle with advice.
func TestStore_ReadsObjectsOfProxyStore(t *testing.T) {
	for _, environment := range []string{"OPS", "OPS_06"} {
		t.Run(environment, func(t *testing.T) {
			dir := t.TempDir()
			var keys []string
			python(t, environment, &keys, "connectors.py", dir, "put")

			s := open(t, "proxystore+file://"+dir)
			wantOfPython(t, s, keys)
			if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
				t.Errorf("List = %v, %v, want none: Python's keys are not names like RUN-ID/node-N", list, err)
			}
		})
	}
}

// wantOfPython checks the str, the bytes and the dict that connectors.py has put under keys: Get returns the first two,
// and refuses the dict with advice.
func wantOfPython(t *testing.T, s *store.Store, keys []string) {
	t.Helper()
	want(t, s, keys[0], `{"a": "é"}`)
	want(t, s, keys[1], `{"b": 1}`)
	_, err := s.Get(t.Context(), keys[2])
	if err == nil || !strings.Contains(err.Error(), "is a pickle") || !strings.Contains(err.Error(), "store.put(json.dumps(report))") {
		t.Errorf("Get of a dict: %v, want an error about a pickle, with advice", err)
	}
}

// Python removes the directory of a store that it closes, unless clear=False. The next put creates it again.
func TestStore_RecreatesClearedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ps")
	s := open(t, "proxystore+file://"+dir)
	put(t, s, "job-7/node-0", "a")
	var nothing any
	python(t, "OPS", &nothing, "connectors.py", dir, "close")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the directory after Python's close: %v, want it removed", err)
	}

	put(t, s, "job-7/node-1", "b")
	want(t, s, "job-7/node-1", "b")
	var missing *store.MissingKeyError
	if _, err := s.Get(t.Context(), "job-7/node-0"); !errors.As(err, &missing) || missing.Key != "perfagent.job-7.node-0.json" {
		t.Errorf("Get of a removed object: %v, want a MissingKeyError with the key perfagent.job-7.node-0.json", err)
	}
}

// glob returns the names of the files in a directory, including hidden ones.
func glob(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for _, e := range check.Value(os.ReadDir(dir))(t) {
		names = append(names, e.Name())
	}

	return names
}
