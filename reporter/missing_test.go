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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

// The baseline reads a job only if it is running: an unreadable one then has one failure more.
func TestNew_CountsTheReadingsOfAJob(t *testing.T) {
	for running, want := range map[bool]string{false: "hidden (1 of 1 readings)", true: "hidden (2 of 2 readings)"} {
		job := host.JobOptions{Source: host.JobFromTree, Running: running, TreeErr: errors.New("hidden")}
		reader := host.NewReader(host.Options{Job: job, DiskPaths: []string{t.TempDir()}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the last Reading is the only one after the baseline
		rec := collector.NewSampler(reader, collector.Options{Interval: time.Hour}).Run(ctx)

		var got []string
		for _, m := range reporter.New(reporter.Input{Recording: rec, Job: &reporter.Job{}}).Nodes["0"].Missing {
			if m.What == host.SourceJob {
				got = append(got, m.Why)
			}
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("running %v: missing %q, want %q", running, got, want)
		}
	}
}

func TestCodes_AreUniqueAndHaveATextOfTheirOwn(t *testing.T) {
	codes, texts := make(map[reporter.Code]bool), make(map[string]bool)
	for i, r := range reporter.Codes() {
		if r.Code == "" || r.Why == "" || codes[r.Code] || texts[r.Why] {
			t.Errorf("row %d: %+v has no code or text, or one that an earlier row has", i, r)
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

// The page about reports lists the codes that mean that there was nothing to measure.
func TestCodes_NormalOnesAreInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
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

func TestCodes_AreThoseOfTheSchema(t *testing.T) {
	data, err := os.ReadFile("../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Node struct {
				Properties struct {
					Missing struct {
						Items struct {
							Properties struct {
								Code struct{ Enum []reporter.Code }
							}
						}
					}
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}

	var want []reporter.Code
	for _, r := range reporter.Codes() {
		want = append(want, r.Code)
	}
	if got := schema.Defs.Node.Properties.Missing.Items.Properties.Code.Enum; !slices.Equal(got, want) {
		t.Errorf("docs/report.schema.json has\n%v\nwant\n%v", got, want)
	}
}

// Every Missing in the code has a Code.
func TestMissing_HasACodeWhereverItIsMade(t *testing.T) {
	made := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && len(name) > 2 && (strings.HasPrefix(name, ".") || name == "testdata" || name == "plotter" || strings.HasSuffix(name, "test")):
			return fs.SkipDir // the page has an entry for the omitted entries
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
			if _, isList := literal.Type.(*ast.ArrayType); isList {
				for _, entry := range literal.Elts {
					literal, _ := entry.(*ast.CompositeLit)
					made += hasCode(t, path, literal)
				}
				return true
			}
			made += hasCode(t, path, literal)
			return true
		})
		return nil
	})
	if err != nil || made < 15 {
		t.Errorf("%d places that make entries of missing were found, want at least 15; error %v", made, err)
	}
}

// ofMissing reports whether a type is Missing or a list of it.
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
		if !ok { // without field names, all fields are given
			return 1
		}
		if key, isName := pair.Key.(*ast.Ident); isName && key.Name == "Code" {
			return 1
		}
	}
	t.Errorf("%s makes an entry of missing without a code", path)
	return 0
}
