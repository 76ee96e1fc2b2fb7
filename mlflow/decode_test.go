package mlflow

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzDecoder compares what is walked with encoding/json: a valid object has the same members,
// whether they are read or skipped.
func FuzzDecoder(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : [ 1 , "\"]}" , {"b\\":null} ] , "c":-1.5e3}`, `{"\u00e4":"\\\\","x":"\\\""}`,
		`{"a":"` + strings.Repeat(`\\`, 3000) + `"}`, `{"a":tru}`, `[]`, `{"a"`, `{"a":1,"a":2}`, "{\"\xff\":0}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal([]byte(text), &want) == nil && want != nil
		got := map[string]json.RawMessage{}
		read := newDecoder(iotest.OneByteReader(strings.NewReader(text)), memory{})
		err1 := read.object(func(name string) error {
			var v json.RawMessage
			err := read.value(&v)
			got[name] = v
			return err
		})
		pass := newDecoder(iotest.HalfReader(strings.NewReader(text)), memory{})
		err2 := pass.object(func(string) error { return pass.skip() })
		if !valid {
			return
		}
		if err1 != nil || err2 != nil || pass.end() != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q %v %v", text, got, err1, err2)
		}
	})
}
