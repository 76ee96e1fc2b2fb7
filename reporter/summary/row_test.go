package summary

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The rows of all kinds of reports match the golden file.
func TestRows_Golden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	reports := reportertest.Golden()
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		r := reports[name]
		r.Run.Tags = map[string]string{"a": name}
		for _, row := range Rows(r, "/runs/"+name+".json") {
			line, err := text.JSON(row)
			if err != nil {
				t.Fatal(name, err)
			}
			var flat map[string]any
			if err := json.Unmarshal(line, &flat); err != nil || flat["tag.a"] != name {
				t.Errorf("%s: row %s, want JSON with the tag a = %s (error %v)", name, line, name, err)
			}
			for key, v := range flat {
				switch v.(type) {
				case string, float64:
				default:
					t.Errorf("%s: value of %s is %v, want a text or a number", name, key, v)
				}
			}
			out.Write(append(line, '\n'))
		}
	}
	reportertest.CompareGolden(t, filepath.Join("testdata", "rows.jsonl"), out.Bytes(), *update)
}

// A bound on the memory is not a peak, and an unknown number of GPUs is not 0.
func TestRows_UnknownValuesAreAbsent(t *testing.T) {
	t.Parallel()
	r := reportertest.Golden()["short"]
	n := r.Nodes["0"]
	delete(n.Metrics, reporter.MetricJobMemoryPeak)
	n.Job.MaxRSSMB, n.Job.MaxRSSAtMost = 13.7, true
	if row := Rows(r, "")[0]; row.PeakMemoryMB != nil || row.GPUs == nil || *row.GPUs != 0 {
		t.Errorf("row %+v, want no peak memory and 0 GPUs", row)
	}

	n.Job.MaxRSSAtMost = false
	n.Missing = append(n.Missing, reporter.Missing{What: host.SourceGPU, Code: gpu.Silent, Why: "no driver"})
	if row := Rows(r, "")[0]; row.PeakMemoryMB == nil || *row.PeakMemoryMB != 13.7 || row.GPUs != nil {
		t.Errorf("row %+v, want a peak of 13.7 MiB and no number of GPUs", row)
	}
}

// The docs list every key of a row.
func TestRows_KeysAreInTheDocs(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/show.md")
	check.Must(t, err)
	for field := range reflect.TypeFor[Row]().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key != "" && !bytes.Contains(docs, []byte("`"+key+"`")) {
			t.Errorf("docs/show.md lacks the key %s", key)
		}
	}
}
