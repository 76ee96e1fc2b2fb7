package series

import (
	"encoding/json"
	"math"
	"testing"
)

func TestOptional_JSONIsNullIfUnknown(t *testing.T) {
	for _, tt := range []struct {
		value Optional
		text  string
	}{
		{0, "0"}, {-1.5, "-1.5"}, {1e21, "1e+21"}, {Unknown(), "null"},
		{Optional(math.Inf(1)), "null"}, {Optional(math.Inf(-1)), "null"},
	} {
		data, err := json.Marshal(tt.value)
		if err != nil || string(data) != tt.text {
			t.Errorf("Marshal(%v) = %s, error %v; want %s", float64(tt.value), data, err, tt.text)
		}
		read := Optional(7)
		if err := json.Unmarshal(data, &read); err != nil {
			t.Errorf("Unmarshal(%s): error %v, want nil", data, err)
		}
		if known := tt.text != "null"; read.Known() != known || known && read != tt.value {
			t.Errorf("Unmarshal(%s) = %v, want %v, or unknown for null", data, float64(read), float64(tt.value))
		}
	}

	read := Optional(7)
	if err := json.Unmarshal([]byte(`"many"`), &read); err == nil || read.Known() {
		t.Errorf("Unmarshal of a string = %v, error %v; want an unknown number and an error", float64(read), err)
	}
}
