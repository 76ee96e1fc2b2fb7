package reportertest

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/reporter"
)

// Fill puts random values into all that JSON shows of what v points to: empty and nil ones, and those that are hard to
// write. NaN and infinities are only where a type has a word for them.
func Fill(r *rand.Rand, v any) { fill(r, reflect.ValueOf(v).Elem()) }

func fill(r *rand.Rand, v reflect.Value) {
	if fillSpecial(r, v) {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(pick[int64](r, 0, 0, 1, -1, 1234567, math.MaxInt64, math.MinInt64))
	case reflect.Float64:
		v.SetFloat(finite(r))
	case reflect.String:
		v.SetString(hardText(r))
	case reflect.Interface:
		if value := hardValue(r); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() || v.Type().Field(i).Anonymous {
				fill(r, v.Field(i))
			}
		}
	default:
		fillMany(r, v)
	}
}

// fillMany fills what holds other values, or is nil.
func fillMany(r *rand.Rand, v reflect.Value) {
	n := r.IntN(4)
	switch v.Kind() {
	case reflect.Pointer:
		if n > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Slice:
		if n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n))
		}
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		if n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for range n - 1 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key)
			fill(r, value)
			v.SetMapIndex(key, value)
		}
	}
}

// fillSpecial fills a value of a type that takes not every value, or more values than its kind says.
func fillSpecial(r *rand.Rand, v reflect.Value) bool {
	if !v.CanInterface() { // an embedded struct
		return false
	}
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		if r.IntN(3) > 0 {
			*at = time.Unix(r.Int64N(4e9), r.Int64N(1e9)).In(pick(r, time.UTC, time.FixedZone("", 5400)))
		}
	case *series.Optional:
		*at = series.Optional(anyNumber(r))
	case *reporter.Numbers:
		for range r.IntN(4) {
			*at = append(*at, anyNumber(r))
		}
	case *reporter.Values:
		if r.IntN(3) > 0 {
			*at = reporter.Values{"wall_seconds": anyNumber(r), hardText(r): anyNumber(r), hardText(r): anyNumber(r)}
		}
	case *reporter.Samples:
		at.Keys, at.Columns = []string{"timestamp", hardText(r)}, [][]float64{{1, 2, 3}, {anyNumber(r), anyNumber(r), 0}}
	case *json.RawMessage:
		*at, _ = json.Marshal(map[string]any{hardText(r): []any{1, "a:b,c", nil}, "b": map[string]int{}})
	default:
		return false
	}
	return true
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func finite(r *rand.Rand) float64 {
	return pick(r, 0, 0, 1, -1.5, 0.1, 1e-6, 9.999e-7, 1e-9, -3e-10, 1e20, 1e21, -1e22, 1e-300, 1e300, math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Copysign(0, -1), r.NormFloat64(), r.ExpFloat64()*1e9)
}

func anyNumber(r *rand.Rand) float64 {
	return pick(r, finite(r), finite(r), math.NaN(), math.Inf(1), math.Inf(-1))
}

// hardText returns a text of which JSON, HTML or UTF-8 may make something else.
func hardText(r *rand.Rand) string {
	text := ""
	for range r.IntN(4) {
		text += pick(r, "", "a", "b_1", "é", "🂡", "\"", "\\", "/", "{},:[]", "<b>&", "\n\t\r\b\f", "\x00\x1b\x1f", "\x7f",
			"\u2028\u2029", "\ufffd", "\xff", "\xe2\x80", "\xed\xa0\x80")
	}
	return text
}

// hardValue returns evidence.
func hardValue(r *rand.Rand) any {
	return pick[any](r, nil, true, 7, int64(-8), uint8(9), finite(r), float32(0.1), hardText(r), []string(nil), []string{},
		[]string{"a", hardText(r)}, []int{1, 2}, []float64{1, finite(r)}, []any{nil, "x", 1.5, map[string]any{}},
		map[string]any{"b": []any{}, hardText(r): map[string]any{"c": finite(r), "a": nil}}, json.Number("1e5"))
}
