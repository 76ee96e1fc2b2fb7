package mlflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"
)

// The types in this file decode values that different servers encode in different ways. Unknown fields are always
// ignored.

// A flexString is a JSON string, or a number, which some servers send as an error code.
type flexString string

func (t *flexString) UnmarshalJSON(b []byte) error {
	s, err := unquote(bytes.TrimSpace(b))
	*t = flexString(s)
	return err
}

// A flexInt is a whole number. Python servers write it as a number, and servers that use protojson write it as a
// string.
type flexInt int64

func (n *flexInt) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil || s == "" {
		return err
	}

	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64) // 1.7e12, 5.0
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
			return errors.New("want a whole number")
		}
		v = int64(f)
	}
	*n = flexInt(v)
	return nil
}

// A flexFloat is a metric's value: a number, or one of "NaN", "Infinity" and "-Infinity".
type flexFloat float64

func (n *flexFloat) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil || s == "" {
		return err
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return errors.New("want a number")
	}
	*n = flexFloat(v)
	return nil
}

// unquote returns the contents if b is a JSON string, "" if b is null, and any other JSON value unchanged.
func unquote(b []byte) (string, error) {
	if string(b) == "null" {
		return "", nil
	}
	if len(b) == 0 || b[0] != '"' {
		return string(b), nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	return s, err
}

// millis returns t in MLflow's format, milliseconds since 1970. The zero time becomes 0, which is left out of requests.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timeOf is the inverse of millis.
func timeOf(ms flexInt) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}

// A metricJSON decodes a point.
type metricJSON struct {
	Key       string    `json:"key"`
	Value     flexFloat `json:"value"`
	Timestamp flexInt   `json:"timestamp"`
	Step      flexInt   `json:"step"`
}

func (a *metricJSON) metric() Metric {
	return Metric{Key: a.Key, Value: float64(a.Value), Timestamp: int64(a.Timestamp), Step: int64(a.Step)}
}

// A runJSON decodes a run.
type runJSON struct {
	Info struct {
		ID             string  `json:"run_id"`
		UUID           string  `json:"run_uuid"` // the field's name before MLflow 1.0
		Name           string  `json:"run_name"`
		ExperimentID   string  `json:"experiment_id"`
		Status         string  `json:"status"`
		ArtifactURI    string  `json:"artifact_uri"`
		LifecycleStage string  `json:"lifecycle_stage"`
		StartTime      flexInt `json:"start_time"`
		EndTime        flexInt `json:"end_time"`
	} `json:"info"`
	Data struct {
		Metrics array[metricJSON] `json:"metrics"`
		Tags    array[Tag]        `json:"tags"`
	} `json:"data"`
}

func (a *runJSON) run() Run {
	i := &a.Info
	r := Run{
		ID: cmp.Or(i.ID, i.UUID), Name: i.Name, ExperimentID: i.ExperimentID, Status: i.Status,
		ArtifactURI: i.ArtifactURI, LifecycleStage: i.LifecycleStage,
		StartTime: timeOf(i.StartTime), EndTime: timeOf(i.EndTime),
		Tags: make(map[string]string), Metrics: make(map[string]Metric),
	}
	for _, m := range a.Data.Metrics {
		r.Metrics[m.Key] = m.metric()
	}
	for _, t := range a.Data.Tags {
		r.Tags[t.Key] = t.Value
	}
	return r
}
