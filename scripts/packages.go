//go:build ignore

// Packages draws which package imports which, into docs/architecture.md. It leaves out the packages of internal/ and of
// tests, and an arrow if a longer way leads to the same package. With -check it only reports whether the picture is
// right.
package main

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	doc    = "docs/architecture.md"
	begin  = "<!-- packages:begin -->\n"
	end    = "<!-- packages:end -->"
	module = "github.com/perfagent/perfagent/"
)

func main() {
	check := flag.Bool("check", false, "only report whether the picture is right")
	flag.Parse()
	if err := draw(*check); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func draw(check bool) error {
	imports, err := readImports()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no %s and %s", doc, strings.TrimSpace(begin), end)
	}
	picture := before + begin + mermaid(imports) + end + after
	switch {
	case picture == string(text):
		return nil
	case check:
		return fmt.Errorf("the picture in %s is old: go run scripts/packages.go", doc)
	}
	return os.WriteFile(doc, []byte(picture), 0o644)
}

// readImports returns the imports of each package of the program, without those of its tests.
func readImports() (map[string]map[string]bool, error) {
	imports := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || slices.Contains([]string{"internal", "testdata", "scripts", "e2e"}, d.Name())):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || !strings.Contains(name, "/"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(name))
		if imports[pkg] == nil {
			imports[pkg] = map[string]bool{}
		}
		for _, i := range file.Imports {
			to, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
			if ours && !strings.HasPrefix(to, "internal/") {
				imports[pkg][to] = true
			}
		}
		return nil
	})
	return imports, err
}

// mermaid returns the packages as a Mermaid flowchart.
func mermaid(imports map[string]map[string]bool) string {
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		for next := range imports[from] {
			if next == to || reaches(next, to) {
				return true
			}
		}
		return false
	}

	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		for _, to := range slices.Sorted(maps.Keys(imports[from])) {
			longer := false
			for via := range imports[from] {
				longer = longer || via != to && reaches(via, to)
			}
			if !longer {
				fmt.Fprintf(&b, "    %s --> %s\n", from, to)
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}
