package series

import (
	"encoding/json"
	"math"
	"testing"
)

func TestOptional_JSON(t *testing.T) {
	for _, tt := range []struct {
		value Optional
		text  string
	}{
		{0, "0"}, {-1.5, "-1.5"}, {1e21, "1e+21"}, {Unknown(), "null"},
		{Optional(math.Inf(1)), "null"}, {Optional(math.Inf(-1)), "null"},
	} {
		data, err := json.Marshal(tt.value)
		if err != nil || string(data) != tt.text {
			t.Errorf("%v is written %s, %v, want %s", float64(tt.value), data, err, tt.text)
		}
		read := Optional(7)
		if err := json.Unmarshal(data, &read); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if known := tt.text != "null"; read.Known() != known || known && read != tt.value {
			t.Errorf("%s is read as %v", data, float64(read))
		}
	}

	read := Optional(7)
	if err := json.Unmarshal([]byte(`"many"`), &read); err == nil || read.Known() {
		t.Errorf("a string is read as %v, %v", float64(read), err)
	}
}
