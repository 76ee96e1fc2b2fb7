package mlflow

import (
	"bufio"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzStream holds what is walked against encoding/json: an object that is one has the same fields, passed over or not.
func FuzzStream(f *testing.F) {
	for _, text := range []string{`{}`, ` { "a" : [ 1 , "\"]}" , {"b\\":null} ] , "c":-1.5e3}`, `{"\u00e4":"\\\\","x":"\\\""}`, `{"a":"` + strings.Repeat(`\\`, 3000) + `"}`, `{"a":tru}`, `[]`, `{"a"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal([]byte(text), &want) == nil && want != nil
		got := map[string]json.RawMessage{}
		keep := &stream{in: bufio.NewReaderSize(strings.NewReader(text), 16)}
		err1 := keep.object(func(key string) error {
			var v json.RawMessage
			err := keep.value(&v)
			got[key] = v
			return err
		})
		pass := &stream{in: bufio.NewReader(iotest.OneByteReader(strings.NewReader(text)))}
		err2 := pass.object(func(string) error { return pass.skip() })
		if !valid {
			return
		}
		if err1 != nil || err2 != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q %v %v", text, got, err1, err2)
		}
	})
}
