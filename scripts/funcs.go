//go:build ignore

// Funcs checks two house rules over the Go files below the current directory: no init function outside tests, and
// at least nine functions in ten shorter than 40 lines, outside tests. The figure for tests is only printed.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	tooLong   = 40   // lines, from "func" to the closing brace
	wantShare = 90.0 // percent of the functions that must be shorter
)

// tally counts functions; long holds the places of those that are too long.
type tally struct {
	funcs int
	long  []string
}

func (t tally) share() float64 {
	if t.funcs == 0 {
		return 100
	}
	return 100 * float64(t.funcs-len(t.long)) / float64(t.funcs)
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
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := fset.Position(fn.Pos()), fset.Position(fn.End())
		lines := last.Line - first.Line + 1
		t.funcs++
		if lines >= tooLong {
			t.long = append(t.long, fmt.Sprintf("%s:%d: %s has %d lines", path, first.Line, fn.Name.Name, lines))
		}
		if fn.Recv == nil && fn.Name.Name == "init" {
			inits = append(inits, fmt.Sprintf("%s:%d: init function", path, first.Line))
		}
	}
	return inits, nil
}

// judge prints the figures and what is wrong, and returns the exit status.
func judge(code, tests tally, inits []string) int {
	fmt.Printf("functions under %d lines: %.1f %% of %d (at least %.0f %%); in tests %.1f %% of %d\n",
		tooLong, code.share(), code.funcs, wantShare, tests.share(), tests.funcs)
	wrong := inits
	if code.share() < wantShare {
		wrong = append(wrong, code.long...)
	}
	for _, line := range wrong {
		fmt.Println(line)
	}
	return min(len(wrong), 1)
}
