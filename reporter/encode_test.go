package reporter_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/plainjson"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

func TestEncode_IsTheSameJSON(t *testing.T) {
	s := reportertest.NewStream(9)
	rec := s.Recording(10)
	for range 25 {
		s.Next(rec)
	}
	r := reporter.New(reporter.Input{Run: reporter.Run{ID: "r", Command: []string{"a\n\"b\\", "", "<é>"}, Tags: map[string]string{}}, Recording: rec, Missing: []reporter.Missing{{What: "x", Why: "y"}}})
	data, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := plainjson.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back bytes.Buffer
	if err := json.Compact(&back, data); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(compact), back.String()); d != "" {
		t.Error(d)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in a space", i+1)
		}
	}
}
