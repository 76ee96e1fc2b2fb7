package reporter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/plainjson"
)

func TestEncode_IsTheSameJSON(t *testing.T) {
	s := newStream(9)
	rec := s.recording(10)
	for range 25 {
		s.next(rec)
	}
	r := New(Input{Run: Run{ID: "r", Command: []string{"a\n\"b\\", "", "<é>"}, Tags: map[string]string{}}, Recording: rec, Missing: []Missing{{"x", "y"}}})
	data, err := Encode(r)
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
