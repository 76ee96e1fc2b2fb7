package opstats

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// unix converts Unix seconds to a time, with a precision of a nanosecond.
func unix(seconds float64) time.Time {
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(part*1e9)))
}

// statsOf returns the statistics of times, all recorded at 100 Unix seconds.
func statsOf(t testing.TB, times ...float64) TimeStats {
	t.Helper()
	var s TimeStats
	for _, ms := range times {
		check.Must(t, s.Add(ms, unix(100)))
	}

	return s
}

// jsonOf returns the JSON of v.
func jsonOf(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	check.Must(t, err)

	return string(data)
}

// reread reads the JSON of v into another value, and returns it. Both must have the same JSON.
func reread[T any](t testing.TB, v, into *T) *T {
	t.Helper()
	data := jsonOf(t, v)
	check.Must(t, json.Unmarshal([]byte(data), into))
	if again := jsonOf(t, into); again != data {
		t.Fatalf("JSON after reading = %s, want %s as before", again, data)
	}

	return into
}

// same ends the test unless got and want are equal.
func same(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// heapOf returns the number of bytes that the result of make occupies on the heap.
func heapOf(t testing.TB, make func() any) int64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := make()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)

	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// The environments with the reference packages.
const (
	newest = "OPS"     // ProxyStore 1.1.0, numpy 2.4
	oldest = "OPS_OLD" // ProxyStore 0.4.1, numpy 1.26
)

// python returns the path of an environment's interpreter. If it is missing, python skips the test, or fails it in CI.
func python(t *testing.T, environment string) string {
	t.Helper()
	variable := "PERFAGENT_TEST_" + environment
	path := filepath.Join(os.Getenv(variable), "bin", "python")
	if _, err := os.Stat(path); err != nil || os.Getenv(variable) == "" {
		testenv.SkipOrFail(t, "needs ProxyStore and numpy: make test installs them; or name a venv that has them in "+variable)
	}

	return path
}

// runPython passes in as JSON to a script in testdata, and decodes the script's output into out.
func runPython(t *testing.T, python, script string, in, out any) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.json")
	check.Must(t, os.WriteFile(path, []byte(jsonOf(t, in)), 0o600))
	cmd := exec.Command(python, filepath.Join("testdata", script), path)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	check.Must(t, err)
	check.Must(t, json.Unmarshal(data, out))
}
