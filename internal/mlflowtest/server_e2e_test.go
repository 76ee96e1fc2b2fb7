//go:build e2e

package mlflowtest

import (
	"net/http"
	"strings"
	"testing"
)

func TestE2E_Server_KeepsStoreAcrossRestart(t *testing.T) {
	s := pool.Get(t, Options{Version: 2, BasicAuth: true}) // not used by other tests in the meantime
	id, _, _ := strings.Cut(s.Run(t, logSome, "named"), "\n")
	s.close()
	if _, err := http.Get(s.URL + "/health"); err == nil {
		t.Error("GET from a stopped server succeeded, want an error")
	}
	s.start(t)
	r := s.ReadBack(t, id)
	if r.Info.RunName != "named" || r.Info.Status != "FINISHED" || r.Info.ExperimentName != "some" ||
		r.Params["p"] != "v" || r.Info.EndTime == 0 {
		t.Errorf("read back %+v, want the run named of the experiment some, FINISHED, with an end time and p = v", r)
	}
	points := r.Metrics["a/b"]
	if len(points) != 2 || points[0] != (Point{1000, 3, 1.5}) || points[1].Value < 1e308 || r.Latest["a/b"] < 1e308 {
		t.Errorf("history %v, latest %v; want 2 points, the latest infinite or close to it", points, r.Latest)
	}
	if len(r.Artifacts) != 1 || r.Artifacts[0].Path != "folder/x.json" || r.Artifacts[0].Size == 0 ||
		len(r.Artifacts[0].SHA256) != 64 {
		t.Errorf("artifacts %+v, want folder/x.json with size and hash", r.Artifacts)
	}
	if all, none := s.Runs(t, "some"), s.Runs(t, "none"); len(all) != 1 || all[0].Info.RunID != id || len(none) != 0 {
		t.Errorf("runs of the experiment some: %+v, of none: %+v; want one run, %s, and no runs", all, none, id)
	}
}

func TestE2E_Pool_ReturnsTheSameServer(t *testing.T) {
	var first *Server
	for range 2 {
		t.Run("get", func(t *testing.T) {
			s := pool.Get(t, Options{Version: 2, BasicAuth: true})
			if first != nil && s != first {
				t.Errorf("the second Get returned a server at %s, want the first server at %s", s.URL, first.URL)
			}
			first = s
			path := "/api/2.0/mlflow/experiments/get?experiment_id=0"
			if code := status(t, http.DefaultClient, s.URL+path); code != http.StatusUnauthorized {
				t.Errorf("without a password: status %d, want %d", code, http.StatusUnauthorized)
			}
			with := strings.Replace(s.URL, "://", "://"+s.User+":"+s.Password+"@", 1)
			if code := status(t, http.DefaultClient, with+path); code != http.StatusOK {
				t.Errorf("with the password: status %d, want %d", code, http.StatusOK)
			}
		})
	}
}
