package reporter_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// The baseline reads a job only if the job is already running. An unreadable job then has one more failure.
func TestNew_CountsReadingsOfJob(t *testing.T) {
	for running, want := range map[bool]string{false: "hidden (1 of 1 readings)", true: "hidden (2 of 2 readings)"} {
		job := host.JobOptions{Source: host.JobFromTree, Running: running, TreeErr: errors.New("hidden")}
		reader := host.NewReader(host.Options{Job: job, DiskPaths: []string{t.TempDir()}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the last Reading is the only one after the baseline
		rec := collector.NewSampler(reader, collector.Options{Interval: time.Hour}).Run(ctx)

		n := reporter.New(reporter.Input{Recording: rec, Job: &reporter.Job{}}).Nodes["0"]
		check.Equal(t, reportertest.Reasons(n, host.SourceJob), want, "running %v: reasons", running)
	}
}

func TestCodes_AreUniqueAndHaveUniqueTexts(t *testing.T) {
	codes, texts := make(map[reporter.Code]bool), make(map[string]bool)
	for i, r := range reporter.Codes() {
		if r.Code == "" || r.Why == "" || codes[r.Code] || texts[r.Why] {
			t.Errorf("row %d: %+v lacks a code or a text, or repeats one of an earlier row", i, r)
		}
		codes[r.Code], texts[r.Why] = true, true
		if m := (reporter.Missing{Code: r.Code}); reporter.NothingToMeasure(m) != r.Normal {
			t.Errorf("%s: NothingToMeasure is %v, want %v", r.Code, !r.Normal, r.Normal)
		}
	}
	if reporter.NothingToMeasure(reporter.Missing{Why: reporter.Codes()[0].Why}) {
		t.Error("NothingToMeasure is true for a text without a code, want false")
	}
}

// The page about reports lists the codes for cases in which there was nothing to measure.
func TestCodes_NormalCodesAreInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/report.md")
	check.Must(t, err)
	var codes []string
	for _, r := range reporter.Codes() {
		if r.Normal {
			codes = append(codes, "`"+string(r.Code)+"`")
		}
	}
	want := strings.Join(codes, ", ") + "."
	if got := strings.Join(strings.Fields(string(page)), " "); !strings.Contains(got, "nothing to measure: "+want) {
		t.Errorf("docs/report.md lacks the normal codes %s", want)
	}
}

func TestCodes_MatchTheSchema(t *testing.T) {
	data, err := os.ReadFile("../docs/report.schema.json")
	check.Must(t, err)
	type properties map[string]struct {
		Items struct {
			Properties struct {
				Code struct{ Enum []reporter.Code }
			}
		}
	}
	var schema struct {
		Defs struct {
			Node struct{ Properties properties }
		} `json:"$defs"`
	}
	check.Must(t, json.Unmarshal(data, &schema))
	var want []reporter.Code
	for _, r := range reporter.Codes() {
		want = append(want, r.Code)
	}
	check.Equal(t, schema.Defs.Node.Properties["missing"].Items.Properties.Code.Enum, want,
		"codes in docs/report.schema.json")
}

// Every Missing literal in the product's code has a Code.
func TestMissing_AlwaysHasCode(t *testing.T) {
	made := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && len(name) > 2 && (strings.HasPrefix(name, ".") || name == "testdata" || name == "plotter" || strings.HasSuffix(name, "test")):
			return fs.SkipDir // the page adds an entry without a code for omitted entries
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || !ofMissing(literal.Type) {
				return true
			}
			entries := []ast.Expr{literal}
			if _, isList := literal.Type.(*ast.ArrayType); isList {
				entries = literal.Elts
			}
			for _, entry := range entries {
				literal, _ := entry.(*ast.CompositeLit)
				made += hasCode(t, path, literal)
			}
			return true
		})
		return nil
	})
	if err != nil || made < 15 {
		t.Errorf("found %d Missing literals, want at least 15; error %v", made, err)
	}
}

// ofMissing reports whether a type is Missing or a list of Missing.
func ofMissing(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ArrayType:
		return ofMissing(e.Elt)
	case *ast.SelectorExpr:
		return ofMissing(e.Sel)
	case *ast.Ident:
		return e.Name == "Missing"
	}
	return false
}

func hasCode(t *testing.T, path string, literal *ast.CompositeLit) int {
	if literal == nil {
		return 0
	}
	for _, e := range literal.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok { // a literal without field names has all fields
			return 1
		}
		if key, isName := pair.Key.(*ast.Ident); isName && key.Name == "Code" {
			return 1
		}
	}
	t.Errorf("%s has a Missing literal without a code", path)
	return 0
}
