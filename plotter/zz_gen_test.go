package plotter

import (
	"bytes"
	"os"
	"testing"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

func TestGen(t *testing.T) {
	evil, _ := plottertest.HostileReport(`<b x="'>`)
	for name, r := range map[string]*reporter.Report{
		"job": plottertest.Job(), "week": plottertest.Week(t), "gpus2": plottertest.Limited(0, 60, 2), "gpus8": plottertest.Limited(0, 60, 8),
		"ranks": plottertest.WithVerdict(t, reportertest.KilledRank()), "late": plottertest.WithVerdict(t, reportertest.LateRank()),
		"few": plottertest.Few(), "limited4": plottertest.LimitedNodes(), "hostile": evil, "ops": reportertest.AddOperations(plottertest.Minute(0)),
		"procs": reportertest.AddProcesses(reportertest.NodeReport(0, 60, 0, nil)), "perfpy": plottertest.PerfPy(t), "absent": plottertest.Absent(), "short": plottertest.Short(), "gaps": plottertest.Gaps(),
	} {
		var out bytes.Buffer
		if err := WritePage(&out, r, PageOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Log(name, out.Len())
		os.WriteFile("/tmp/step13/Pgen/"+name+".html", out.Bytes(), 0o644)
		var png bytes.Buffer
		if err := WritePNG(&png, r, PictureOptions{Width: 800}); err != nil {
			t.Fatal(err)
		}
		os.WriteFile("/tmp/step13/Pgen/"+name+".png", png.Bytes(), 0o644)
	}
}
