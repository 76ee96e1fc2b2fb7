//go:build ignore

// Funcs checks three house rules over the Go files below the current directory, tests apart: there is no init
// function, no function has more than 40 statements, and at least nine functions in ten have fewer than 20. It counts
// statements, not lines, so that a blank line between the steps of a function costs nothing. The figure for tests is
// only printed. Generated code is left out.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	most      = 40   // statements that a function may have
	many      = 20   // statements that few functions have
	wantShare = 90.0 // percent of the functions that must have fewer
)

// A tally counts functions.
type tally struct {
	funcs   int
	long    int      // those with many statements
	tooLong []string // the places of those with more than most
}

func (t tally) share() float64 {
	if t.funcs == 0 {
		return 100
	}
	return 100 * float64(t.funcs-t.long) / float64(t.funcs)
}

func main() {
	var code, tests tally
	var inits []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		case strings.HasSuffix(path, "_test.go"):
			_, err := count(path, &tests)
			return err
		}
		found, err := count(path, &code)
		inits = append(inits, found...)
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "funcs:", err)
		os.Exit(1)
	}

	os.Exit(judge(code, tests, inits))
}

// count adds one file's functions to t and returns the places of its init functions.
func count(path string, t *tally) (inits []string, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}

		line, n := fset.Position(fn.Pos()).Line, statements(fn.Body)
		t.funcs++
		if n >= many {
			t.long++
		}
		if n > most {
			t.tooLong = append(t.tooLong, fmt.Sprintf("%s:%d: %s has %d statements", path, line, fn.Name.Name, n))
		}
		if fn.Recv == nil && fn.Name.Name == "init" {
			inits = append(inits, fmt.Sprintf("%s:%d: init function", path, line))
		}
	}

	return inits, nil
}

// statements counts the statements of a function, including nested ones and the ones in its literals. A block does not
// count as a statement, and neither does a case.
func statements(body *ast.BlockStmt) int {
	n := 0
	if body == nil { // a function in assembly
		return n
	}
	ast.Inspect(body, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, *ast.LabeledStmt:
		case ast.Stmt:
			n++
		}
		return true
	})

	return n
}

// judge prints the figures and what is wrong, and returns the exit status.
func judge(code, tests tally, inits []string) int {
	fmt.Printf("functions with fewer than %d statements: %.1f %% of %d (at least %.0f %%); in tests %.1f %% of %d\n",
		many, code.share(), code.funcs, wantShare, tests.share(), tests.funcs)

	wrong := slices.Concat(inits, code.tooLong)
	if code.share() < wantShare {
		wrong = append(wrong, fmt.Sprintf("too many functions have %d statements or more", many))
	}
	for _, line := range wrong {
		fmt.Println(line)
	}
	return min(len(wrong), 1)
}
