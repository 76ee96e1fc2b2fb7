package perfagent_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw the picture of docs/dev/architecture.md")

// module is the path of the module. Packages are named relative to it; its root package is ".".
const module = "github.com/perfagent/perfagent"

// A sourceFile is a Go file that is not a test, with its package.
type sourceFile struct {
	pkg, path string
	ast       *ast.File
}

// sources parses all Go files except tests, for all systems.
func sources(t *testing.T) []sourceFile {
	t.Helper()

	var files []sourceFile
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasModule(name)):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}

		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if pkg := filepath.ToSlash(filepath.Dir(name)); pkg != "scripts" { // each file there is a separate program
			files = append(files, sourceFile{pkg, name, file})
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return files
}

// hasModule reports whether a directory is a separate module.
func hasModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// imports returns the packages of this module that each package imports.
func imports(files []sourceFile) map[string][]string {
	all := make(map[string][]string)
	for _, f := range files {
		list := all[f.pkg]
		for _, spec := range f.ast.Imports {
			name, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`)+"/", module+"/")
			name = path.Clean(name)
			if ours && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
		all[f.pkg] = list
	}

	return all
}

// A rule lists the packages of this module that a package may import.
type rule struct {
	pkg string
	may []string
}

// rules parses the table of docs/dev/architecture.md.
func rules(t *testing.T) []rule {
	t.Helper()

	data, err := os.ReadFile("docs/dev/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(data), "<!-- imports:begin -->\n")
	table, _, foundEnd := strings.Cut(table, "<!-- imports:end -->")
	if !found || !foundEnd {
		t.Fatal("docs/dev/architecture.md lacks the table of imports")
	}

	var list []rule
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		list = append(list, rule{pkg: codes(cells[1])[0], may: codes(cells[3])})
	}

	return list
}

// codes returns the words of a cell in backquotes.
func codes(cell string) []string {
	var words []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}

// Only package plotter uses templates, so that parsing them never delays the start of the program.
func TestImports_OnlyPlotterHasTemplates(t *testing.T) {
	for _, f := range sources(t) {
		for _, spec := range f.ast.Imports {
			if name := strings.Trim(spec.Path.Value, `"`); name == "text/template" || name == "html/template" && filepath.Dir(f.path) != "plotter" {
				t.Errorf("%s imports %s, want html/template only, and only in plotter", f.path, name)
			}
		}
	}
}

// violations returns the differences between imports and rules. A package must import exactly the packages in its row,
// and only packages below it in the table.
func violations(rules []rule, imports map[string][]string) []string {
	var wrong []string
	place := make(map[string]int)
	for i, r := range rules {
		place[r.pkg] = i + 1
	}

	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		if place[pkg] == 0 {
			wrong = append(wrong, fmt.Sprintf("%s has no row", pkg))
		}
	}
	for _, r := range rules {
		list, exists := imports[r.pkg]
		if !exists {
			wrong = append(wrong, fmt.Sprintf("%s is not a package", r.pkg))
		}
		for _, name := range list {
			switch {
			case !slices.Contains(r.may, name):
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which its row does not name", r.pkg, name))
			case place[name] <= place[r.pkg]:
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which does not stand below it", r.pkg, name))
			}
		}
		for _, name := range r.may {
			if !slices.Contains(list, name) {
				wrong = append(wrong, fmt.Sprintf("%s does not import %s, which its row names", r.pkg, name))
			}
		}
	}

	return wrong
}

// Packages import only packages below them in the table of docs/dev/architecture.md.
func TestImports_MatchArchitectureTable(t *testing.T) {
	files := sources(t)
	all, table := imports(files), rules(t)

	for _, wrong := range violations(table, all) {
		t.Error(wrong)
	}

	// The check must detect a violation.
	const pkg, upward = "collector/series", "mlflow"
	all[pkg] = append(all[pkg], upward)
	want := fmt.Sprintf("%s imports %s, which its row does not name", pkg, upward)
	if got := violations(table, all); !slices.Equal(got, []string{want}) {
		t.Errorf("violations with an import of %s in %s: %q, want [%q]", upward, pkg, got, want)
	}
}

// No exported name outside internal/ has a type from a package under internal/.
func TestExportedNames_HaveNoInternalType(t *testing.T) {
	checked := 0
	for _, f := range sources(t) {
		if strings.HasPrefix(f.pkg, "internal/") || f.ast.Name.Name == "main" {
			continue
		}
		hidden := internalNames(f.ast)
		for _, d := range f.ast.Decls {
			for _, part := range exportedParts(d) {
				checked++
				ast.Inspect(part, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						x, ok := s.X.(*ast.Ident)
						isError := strings.HasPrefix(s.Sel.Name, "Err") // a variable of type error
						if ok && hidden[x.Name] != "" && !isError {
							t.Errorf("%s: an exported name has the type %s.%s from %s", f.path, x.Name, s.Sel.Name, hidden[x.Name])
						}
					}
					return true
				})
			}
		}
	}
	if checked < 100 {
		t.Errorf("checked %d exported names, want at least 100", checked)
	}
}

// internalNames returns the packages under internal/ that a file imports, by local name.
func internalNames(f *ast.File) map[string]string {
	hidden := make(map[string]string)
	for _, spec := range f.Imports {
		name, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/internal/")
		switch {
		case !ours:
		case spec.Name != nil:
			hidden[spec.Name.Name] = "internal/" + name
		default:
			hidden[path.Base(name)] = "internal/" + name
		}
	}

	return hidden
}

// exportedParts returns the parts of a declaration that are visible to other packages: signatures of functions and
// methods, types and values of names, and exported fields of structs.
func exportedParts(d ast.Decl) []ast.Node {
	var parts []ast.Node
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			parts = append(parts, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					parts = append(parts, exportedType(s.Type)...)
				}
			case *ast.ValueSpec:
				if slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
					if s.Type != nil {
						parts = append(parts, s.Type)
					}
					for _, v := range s.Values {
						parts = append(parts, v)
					}
				}
			}
		}
	}

	return parts
}

func exportedReceiver(recv *ast.FieldList) bool {
	exported := false
	ast.Inspect(recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported || id.IsExported()
		}
		return true
	})

	return exported
}

// exportedType returns the visible parts of a type: for a struct, the exported fields, and otherwise the whole type.
func exportedType(t ast.Expr) []ast.Node {
	s, ok := t.(*ast.StructType)
	if !ok {
		return []ast.Node{t}
	}

	var parts []ast.Node
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
			parts = append(parts, field.Type)
		}
	}

	return parts
}

// Where docs/dev/architecture.md mentions a function with a file, that file declares the function.
func TestArchitectureDoc_NamesFiles(t *testing.T) {
	doc, err := os.ReadFile("docs/dev/architecture.md")
	if err != nil {
		t.Fatal(err)
	}

	stations := regexp.MustCompile("`(\\w+)`\\s+in\\s+\\[`([^`]+)`\\]").FindAllStringSubmatch(string(doc), -1)
	if len(stations) < 12 {
		t.Errorf("document mentions %d functions with their files, want at least 12", len(stations))
	}
	for _, s := range stations {
		source, err := os.ReadFile(s[2])
		if err != nil {
			t.Error(err)
		}
		if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|var |\t)` + s[1] + `\b`).Match(source) {
			t.Errorf("%s does not declare %s", s[2], s[1])
		}
	}
}

// The picture in docs/dev/architecture.md shows the imports between packages of the program. It omits packages in
// internal/ and arrows that longer paths imply.
func TestPackages_PictureShowsImports(t *testing.T) {
	const begin, end = "<!-- packages:begin -->\n", "<!-- packages:end -->"
	data, err := os.ReadFile("docs/dev/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	got, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatal("docs/dev/architecture.md lacks the picture of packages")
	}

	want := mermaid(imports(sources(t)))
	if *update {
		if err := os.WriteFile("docs/dev/architecture.md", []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Error(err)
		}
	} else if got != want {
		t.Errorf("picture is not current (go test . -run Packages -update):\n%s\nwant:\n%s", got, want)
	}
}

// mermaid returns the packages of the program as a Mermaid flowchart.
func mermaid(all map[string][]string) string {
	isDrawn := func(pkg string) bool {
		return pkg != "." && !strings.HasPrefix(pkg, "internal/") && !strings.HasPrefix(pkg, "e2e")
	}
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return slices.ContainsFunc(all[from], func(next string) bool { return next == to || reaches(next, to) })
	}

	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, from := range slices.Sorted(maps.Keys(all)) {
		for _, to := range slices.Sorted(slices.Values(all[from])) {
			isImplied := slices.ContainsFunc(all[from], func(via string) bool { return via != to && reaches(via, to) })
			if isDrawn(from) && isDrawn(to) && !isImplied {
				fmt.Fprintf(&b, "    %s --> %s\n", from, to)
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}
