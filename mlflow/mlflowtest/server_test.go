package mlflowtest

import (
	"testing"
	"time"
)

func TestExperiment(t *testing.T) {
	for _, o := range []Options{{}, {Version: 2}, {BasicAuth: true}, {Version: 2, BasicAuth: true}, {FileStore: true}, {Version: 2, FileStore: true}, {NoServeArtifacts: true}, {Version: 2, NoServeArtifacts: true}, {Defaults: true}, {Version: 2, Defaults: true}} {
		begin := time.Now()
		s := Start(t, o)
		t.Logf("%+v started in %v", o, time.Since(begin))
		begin = time.Now()
		t.Log(s.Run(t, `
import mlflow
with mlflow.start_run() as r:
    mlflow.log_metric("a", 1, step=1)
    mlflow.log_metric("a", float("inf"), step=2)
    mlflow.log_dict({"a":1}, "x/y.json")
    print(r.info.run_id)
`))
		t.Logf("%v", time.Since(begin))
		begin = time.Now()
		t.Logf("%+v", s.Runs(t, ""))
		t.Logf("%v", time.Since(begin))
		begin = time.Now()
		s.Runs(t, "Default")
		t.Logf("%v", time.Since(begin))
		begin = time.Now()
		s.Restart(t)
		t.Logf("restart %v", time.Since(begin))
		s.Stop(t)
	}
}
