package mlflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"
)

// The types of this file read what servers write in more than one way. Unknown fields are ignored everywhere.

// text is a JSON string, or a number where there are servers that write one (ids).
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	*t = ""
	if b = bytes.TrimSpace(b); string(b) != "null" {
		*t = text(b)
	}
	return nil
}

// integer is a whole number: Python servers write it as a number, those of protojson as a string.
type integer int64

func (n *integer) UnmarshalJSON(b []byte) error {
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
	*n = integer(v)
	return nil
}

// number is a metric's value: a number, or one of "NaN", "Infinity" and "-Infinity".
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil || s == "" {
		return err
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return errors.New("want a number")
	}
	*n = number(v)
	return nil
}

// unquote returns what is in a JSON string, or a JSON number as it is; "" for null.
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

type experimentAnswer struct {
	ID               text   `json:"experiment_id"`
	Name             string `json:"name"`
	ArtifactLocation string `json:"artifact_location"`
	LifecycleStage   string `json:"lifecycle_stage"`
}

func (a *experimentAnswer) experiment() Experiment {
	return Experiment{ID: string(a.ID), Name: a.Name, ArtifactLocation: a.ArtifactLocation, LifecycleStage: a.LifecycleStage}
}

type metricAnswer struct {
	Key       string  `json:"key"`
	Value     number  `json:"value"`
	Timestamp integer `json:"timestamp"`
	Step      integer `json:"step"`
}

func (a *metricAnswer) metric() Metric {
	return Metric{Key: a.Key, Value: float64(a.Value), Timestamp: int64(a.Timestamp), Step: int64(a.Step)}
}

type infoAnswer struct {
	ID             text    `json:"run_id"`
	UUID           text    `json:"run_uuid"` // its name before MLflow 1.0
	Name           string  `json:"run_name"`
	ExperimentID   text    `json:"experiment_id"`
	Status         string  `json:"status"`
	ArtifactURI    string  `json:"artifact_uri"`
	LifecycleStage string  `json:"lifecycle_stage"`
	StartTime      integer `json:"start_time"`
	EndTime        integer `json:"end_time"`
}

func (i *infoAnswer) run() Run {
	r := Run{ID: string(i.ID), Name: i.Name, ExperimentID: string(i.ExperimentID), Status: i.Status,
		ArtifactURI: i.ArtifactURI, LifecycleStage: i.LifecycleStage,
		StartTime: moment(i.StartTime), EndTime: moment(i.EndTime)}
	if r.ID == "" {
		r.ID = string(i.UUID)
	}
	return r
}

// moment is a time in milliseconds since 1970; 0 means that there is none.
func moment(ms integer) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}
