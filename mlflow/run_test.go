package mlflow

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/retry"
)

func TestEnsureExperiment_CreatesMissingExperiment(t *testing.T) {
	t.Parallel()
	const absent = `{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"No Experiment"}`
	const there = `{"experiment":{"experiment_id":"3","name":"a b","lifecycle_stage":"active",` +
		`"artifact_location":"s3://x"}}`
	for name, tt := range map[string]struct {
		exists  bool
		create  int // status of the response to create; 0 means no request
		deleted bool
	}{
		"there":                                {exists: true},
		"made":                                 {create: 200},
		"created by another process meanwhile": {create: 400},
		"deleted":                              {exists: true, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var exists atomic.Bool
			exists.Store(tt.exists)
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/create") {
					if m := bodyOf(t, r); m["name"] != "a b" || len(m) != 1 || tt.create == 0 {
						t.Errorf("request to create %v, want only the name a b, and only if it is missing", m)
					}
					exists.Store(true)
					w.WriteHeader(tt.create)
					io.WriteString(w, `{"experiment_id":"3","error_code":"RESOURCE_ALREADY_EXISTS"}`)
					return
				}
				if r.FormValue("experiment_name") != "a b" {
					t.Errorf("request %s, want experiment_name=a b", r.URL)
				}
				if !exists.Load() {
					w.WriteHeader(404)
					io.WriteString(w, absent)
					return
				}
				text := there
				if tt.deleted {
					text = strings.Replace(text, "active", "deleted", 1)
				}
				io.WriteString(w, text)
			})
			e, err := c.EnsureExperiment(context.Background(), "a b")
			if tt.deleted {
				wantText(t, err, "deleted", "mlflow experiments restore --experiment-id 3")
				return
			}
			want := Experiment{"3", "a b", "s3://x", "active"}
			if tt.create == 200 { // the response has no other fields, and a query would cost a request
				want.ArtifactLocation = ""
			}
			if err != nil || *e != want {
				t.Errorf("EnsureExperiment = %v, %v, want %v", e, err, want)
			}
		})
	}
	c := answering(t, 404, "<title>404 Not Found</title>")
	_, err := c.EnsureExperiment(context.Background(), "x")
	wantText(t, err, "is this an MLflow server") // no experiment is created on such a server
	if _, err := answering(t, 404, absent).Experiment(context.Background(), "9"); !NotFound(err) {
		t.Errorf("Experiment that does not exist: %v, want NotFound", err)
	}
}

func TestSearchExperiments_ReadsAllPages(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := bodyOf(t, r)
		if m["max_results"] != 1000.0 || m["view_type"] != "ACTIVE_ONLY" {
			t.Errorf("request for experiments: %v, want max_results 1000, view_type ACTIVE_ONLY", m)
		}
		switch m["page_token"] {
		case nil:
			io.WriteString(w,
				`{"experiments":[{"experiment_id":"0","name":"Default"},{"experiment_id":"1"}],"next_page_token":"p2"}`)
		case "p2":
			io.WriteString(w, `{"next_page_token":"p3"}`) // an empty page is not the end
		case "p3":
			io.WriteString(w, `{"experiments":[{"experiment_id":"2"}],"next_page_token":""}`)
		}
	})
	all, err := c.SearchExperiments(context.Background())
	if want := []Experiment{{ID: "0", Name: "Default"}, {ID: "1"}, {ID: "2"}}; err != nil ||
		!reflect.DeepEqual(all, want) {
		t.Errorf("SearchExperiments = %+v, %v, want %+v", all, err, want)
	}
	if all, err := answering(t, 500, "").SearchExperiments(context.Background()); err == nil || all != nil {
		t.Errorf("SearchExperiments with status 500 = %v, %v, want nil and an error", all, err)
	}
}

func TestCreateRun_ReturnsTheRun(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		want := map[string]any{"experiment_id": "7", "run_name": "n", "start_time": 1700000000123.0,
			"tags": []any{map[string]any{"key": "k", "value": "v"}}}
		if got := bodyOf(t, r); r.URL.Path != "/api/2.0/mlflow/runs/create" || !reflect.DeepEqual(got, want) {
			t.Errorf("request %s with %v, want /api/2.0/mlflow/runs/create with %v", r.URL, got, want)
		}
		io.WriteString(w, `{"run":{"info":{"run_id":"r1","run_uuid":"r1","experiment_id":"7","run_name":"n",
			"status":"RUNNING","start_time":"1700000000123",
			"artifact_uri":"mlflow-artifacts:/7/r1/artifacts","lifecycle_stage":"active","new_field":[1]},
			"data":{"tags":[{"key":"k","value":"v"}],"metrics":[{"key":"m","value":1.5,"timestamp":"12","step":-1},
			{"key":"n","value":"NaN","timestamp":13,"step":"2"}],"params":[]},"inputs":{}}}`)
	})
	r := check.Value(c.CreateRun(context.Background(), NewRun{"7", "n", time.UnixMilli(1700000000123), []Tag{{"k", "v"}}}))(t)
	if nan := r.Metrics["n"]; !math.IsNaN(nan.Value) || nan.Timestamp != 13 || nan.Step != 2 {
		t.Errorf("metric n is %+v, want NaN at 13 and step 2", nan)
	}
	delete(r.Metrics, "n")
	want := &Run{ID: "r1", Name: "n", ExperimentID: "7", Status: Running,
		ArtifactURI: "mlflow-artifacts:/7/r1/artifacts", LifecycleStage: "active",
		StartTime: time.UnixMilli(1700000000123), Tags: map[string]string{"k": "v"},
		Metrics: map[string]Metric{"m": {"m", 1.5, 12, -1}}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("run %+v\nwant %+v", r, want)
	}
	if got, want := c.RunURL(r), c.URI()+"/#/experiments/7/runs/r1"; got != want {
		t.Errorf("RunURL = %s, want %s", got, want)
	}
}

func TestClient_SendsRequestsAsMLflowExpects(t *testing.T) {
	t.Parallel()
	var got string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = fmt.Sprint(r.URL.Path[len("/api/2.0/mlflow/"):], bodyOf(t, r))
		io.WriteString(w, "{}")
	})
	ctx := context.Background()
	for want, call := range map[string]func() error{
		"runs/update map[end_time:5 run_id:r status:FINISHED]": func() error {
			return c.UpdateRun(ctx, "r", Finished, time.UnixMilli(5))
		},
		"runs/update map[run_id:r status:RUNNING]": func() error { return c.UpdateRun(ctx, "r", Running, time.Time{}) },
		"runs/delete map[run_id:r]":                func() error { return c.DeleteRun(ctx, "r") },
		"runs/set-tag map[key:k run_id:r value:]":  func() error { return c.SetTag(ctx, "r", Tag{"k", ""}) },
		"runs/create map[experiment_id:0]": func() error {
			_, err := c.CreateRun(ctx, NewRun{ExperimentID: "0"})
			_ = err
			return nil
		},
		"runs/search map[experiment_ids:[] max_results:1000 run_view_type:ACTIVE_ONLY]": func() error {
			_, err := c.SearchRuns(ctx, RunQuery{})
			return err
		},
	} {
		if err := call(); err != nil || got != strings.Replace(want, " ", "", 1) && got != want {
			t.Errorf("request %q, error %v; want %q", got, err, want)
		}
	}
}

func TestSearchRuns_ReadsPagesUpToTheLimit(t *testing.T) {
	t.Parallel()
	const total = 2500
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		m := bodyOf(t, r)
		if m["filter"] != "f" || !reflect.DeepEqual(m["order_by"], []any{"o"}) ||
			!reflect.DeepEqual(m["experiment_ids"], []any{"1"}) {
			t.Errorf("request for runs: %v, want the filter f, the order o, the experiment 1", m)
		}
		from := 0
		if token, ok := m["page_token"].(string); ok {
			fmt.Sscan(token, &from)
		}
		to := min(from+int(m["max_results"].(float64)), total)
		var runs []string
		for i := from; i < to; i++ {
			runs = append(runs, fmt.Sprintf(`{"info":{"run_id":"%d"}}`, i))
		}
		token := ""
		if to < total {
			token = fmt.Sprint(to)
		}
		fmt.Fprintf(w, `{"runs":[%s],"next_page_token":%q}`, strings.Join(runs, ","), token)
	})
	for limit, want := range map[int]int{0: total, 1: 1, 999: 999, 1000: 1000, 1001: 1001, 2500: 2500, 9999: 2500} {
		runs, err := c.SearchRuns(context.Background(), RunQuery{[]string{"1"}, "f", []string{"o"}, limit})
		if err != nil || len(runs) != want || runs[want-1].ID != fmt.Sprint(want-1) {
			t.Errorf("limit %d: %d runs, error %v; want %d, in order", limit, len(runs), err, want)
		}
	}
}

func TestMetricHistory_ReadsAllPages(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("max_results") != "25000" || r.FormValue("metric_key") != "a/b c" || r.FormValue("run_id") != "r1" {
			t.Errorf("request %s, want max_results=25000, metric_key=a/b c, run_id=r1", r.URL)
		}
		if r.FormValue("page_token") == "" {
			io.WriteString(w, `{"metrics":[{"key":"a/b c","value":1,"timestamp":10,"step":0}],"next_page_token":"t=+"}`)
			return
		}
		if r.FormValue("page_token") != "t=+" {
			t.Errorf("page_token is %q, want t=+", r.FormValue("page_token"))
		}
		io.WriteString(w, `{"metrics":[{"key":"a/b c","value":"-Infinity","timestamp":"9223372036854775807",`+
			`"step":"-9223372036854775808"}]}`)
	})
	got, err := c.MetricHistory(context.Background(), "r1", "a/b c")
	want := []Metric{{"a/b c", 1, 10, 0}, {"a/b c", math.Inf(-1), math.MaxInt64, math.MinInt64}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("MetricHistory = %v, %v, want %v", got, err, want)
	}
	endless := answering(t, 200, `{"metrics":[],"next_page_token":"again"}`)
	_, err = endless.MetricHistory(context.Background(), "r1", "k")
	wantFinal(t, err, "list of pages does not end")
}

// FuzzAnswer sends any response to every method. No method may panic, hang, or return an error with a control
// character.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{goodRun, "", "{", "null", "<title>x</title>", "<", "<script",
		`{"run":{"info":{"start_time":"1e400"}}}`, `{"experiment":{"experiment_id":[]}}`,
		`{"metrics":[{"key":"k","value":"Infinity","timestamp":1.5e3,"step":null}],"next_page_token":"x"}`,
		`{"error_code":{},"message":"\u0000"}`,
		`{"files":[{"path":"p","file_size":"x"}]}`, `{"runs":[null],"experiments":[{}]}`} {
		f.Add(200, body, "1")
		f.Add(404, body, "Sat, 01 Jan 2000 00:00:09 GMT")
	}
	f.Add(307, "", "http://h/")
	f.Fuzz(func(t *testing.T, status int, body, header string) {
		if status < 200 || status > 599 {
			status = 200
		}
		c := check.Value(New(Config{URI: "http://h", Username: "alice", Password: "hunter22", Token: "to<ken"}))(t)
		c.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			return response(status, body, "Retry-After", header, "Location", header), nil
		})
		ctx := context.Background()
		_, err1 := c.Run(ctx, "r")
		_, err2 := c.EnsureExperiment(ctx, "e")
		_, err3 := c.MetricHistory(ctx, "r", "k")
		_, err4 := c.SearchRuns(ctx, RunQuery{Limit: 3})
		_, err5 := c.SearchExperiments(ctx)
		err6 := c.UploadArtifact(ctx, &Run{ArtifactURI: body}, "a", "", []byte("x"))
		err7 := c.SetTag(ctx, "r", Tag{"k", "v"})
		for _, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
			if err == nil {
				continue
			}
			text := err.Error()
			if strings.ContainsAny(text, "\x00\n\r\x1b") || len(text) > 4000 {
				t.Errorf("error of %d bytes %q, want one line of at most 4000", len(text), text)
			}
			if strings.Contains(text, "hunter22") || strings.Contains(text, "to<ken") {
				t.Errorf("error %q contains a secret", text)
			}
			if RetryAfter(err) < 0 || RetryAfter(err) > retry.MaxAfter {
				t.Errorf("RetryAfter = %v, want 0 to %v", RetryAfter(err), retry.MaxAfter)
			}
		}
	})
}
