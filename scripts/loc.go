//go:build ignore

// Loc counts the lines of the product by capability, without blank lines and comments. The product consists of all Go
// files, including generated files, except tests, packages that only tests import, scripts/, e2e/ and testdata/.
//
// The table in scripts/sizes.md assigns files to capabilities, by folder or by a pattern of path.Match. If several
// match a file, the longest is used. Loc prints the updated table, the mean length of a line, the number of lines with
// more than 120 columns, and the number of functions with more than 60 lines.
//
// Usage: go run scripts/loc.go [-check | -update] [DIR]
//
// With -check, Loc prints the violations, and exits with code 1 if there are any. A violation is a row with fewer lines
// than there are, a sum of all rows that is more than 1 % too high, a long line, or a long function that is not
// generated. With -update, Loc writes the table. DIR is the root of the module, by default the working directory. If a
// version of the module lacks the table, Loc prints only the figures.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	module     = "github.com/perfagent/perfagent"
	document   = "scripts/sizes.md"
	begin, end = "<!-- size:begin -->\n", "<!-- size:end -->"
	maxColumns = 120 // maximum number of columns in a line; a tab counts as one
	maxLines   = 60  // maximum number of lines in a function
)

func main() {
	check := flag.Bool("check", false, "print what is wrong, and exit with code 1 if something is")
	update := flag.Bool("update", false, "write the table in "+document)
	flag.Parse()
	if flag.NArg() > 0 {
		exitOn(os.Chdir(flag.Arg(0)))
	}
	s, err := measure()
	exitOn(err)
	text, err := os.ReadFile(document)
	exitOn(err)
	before, table, after := cutTable(string(text))
	rows, err := parseTable(table)
	exitOn(err)
	wrong := s.assign(rows)

	switch {
	case *check:
		wrong = slices.Concat(wrong, tooLow(rows), s.wide, s.long)
		for _, line := range wrong {
			fmt.Println(line)
		}
		os.Exit(min(len(wrong), 1))
	case len(rows) > 0 && len(wrong) > 0:
		exitOn(errors.New(strings.Join(wrong, "\n")))
	case *update:
		exitOn(os.WriteFile(document, []byte(before+s.table(rows)+after), 0o644))
	default:
		fmt.Print(s.table(rows), s.figures())
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "loc:", err)
		os.Exit(1)
	}
}

// A size is the result of counting.
type size struct {
	product    map[string]int      // lines by file
	others     map[string]int      // lines by title
	bytes      int                 // characters in the product's lines
	functions  int                 // number of functions in the product
	wide, long []string            // lines and functions that are too long
	imports    map[string][]string // imports by package, without tests
	sources    []source
}

// A source is a Go file of the module that is not a test.
type source struct {
	path string
	text []byte
}

// Titles of other code in the table.
const (
	templates = "templates of pages"
	script    = "`plotter/page.js`"
	styles    = "style sheets"
	tests     = "tests"
	e2e       = "end-to-end tests"
	helpers   = "helpers of tests"
	scripts   = "scripts"
)

// measure counts the files below the working directory.
func measure() (*size, error) {
	s := &size{product: map[string]int{}, others: map[string]int{}, imports: map[string][]string{}}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		return s.add(filepath.ToSlash(name))
	})
	if err != nil {
		return nil, err
	}

	product := s.reached()
	for _, f := range s.sources {
		if !product[path.Dir(f.path)] {
			s.others[helpers] += len(codeLines(f.text))
		} else if err := s.addProduct(f); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add counts the named file. It only collects files that may belong to the product, which are counted later.
func (s *size) add(name string) error {
	kind := ""
	switch ext := path.Ext(name); {
	case ext == ".tmpl" || ext == ".html" && strings.HasPrefix(name, "plotter/"):
		kind = templates
	case name == strings.Trim(script, "`"):
		kind = script
	case ext == ".css":
		kind = styles
	case ext != ".go":
		return nil
	case strings.HasPrefix(name, "scripts/"):
		kind = scripts
	case strings.HasPrefix(name, "e2e/") || strings.HasSuffix(name, "_e2e_test.go") || strings.HasSuffix(name, "_e2e_linux_test.go"):
		kind = e2e
	case strings.HasSuffix(name, "_test.go"):
		kind = tests
	}
	text, err := os.ReadFile(name)
	switch {
	case err != nil:
		return err
	case kind == "":
		s.sources = append(s.sources, source{name, text})
		return s.addImports(name, text)
	case path.Ext(name) == ".go":
		s.others[kind] += len(codeLines(text))
	default:
		s.others[kind] += markupLines(string(text))
	}
	return nil
}

// addImports adds the packages of this module that the named file imports.
func (s *size) addImports(name string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	pkg := path.Dir(name)
	for _, spec := range file.Imports {
		imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`)+"/", module+"/")
		if ours {
			s.imports[pkg] = append(s.imports[pkg], path.Clean(imported))
		}
	}
	return nil
}

// reached returns the packages of the product: all packages outside internal/, and all packages of the module that they
// import, directly or indirectly.
func (s *size) reached() map[string]bool {
	reached := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if !reached[pkg] {
			reached[pkg] = true
			for _, imported := range s.imports[pkg] {
				visit(imported)
			}
		}
	}
	for _, f := range s.sources {
		if !strings.HasPrefix(f.path, "internal/") {
			visit(path.Dir(f.path))
		}
	}
	return reached
}

// addProduct counts a file of the product and records its long lines and functions.
func (s *size) addProduct(f source) error {
	lines := strings.Split(string(f.text), "\n")
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxColumns {
			s.wide = append(s.wide, fmt.Sprintf("%s:%d: %d columns, more than %d", f.path, i+1, n, maxColumns))
		}
	}
	code := codeLines(f.text)
	s.product[f.path] = len(code)
	for _, n := range code {
		s.bytes += utf8.RuneCountInString(strings.TrimSpace(lines[n-1]))
	}

	files := token.NewFileSet()
	file, err := parser.ParseFile(files, f.path, f.text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	written := !ast.IsGenerated(file)
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			first, last := files.Position(fn.Pos()).Line, files.Position(fn.End()).Line
			s.functions++
			if n := last - first + 1; n > maxLines && written {
				s.long = append(s.long, fmt.Sprintf("%s:%d: %s has %d lines, more than %d", f.path, first, fn.Name.Name, n, maxLines))
			}
		}
	}
	return nil
}

// codeLines returns the numbers of the lines with code in text, a Go file. It omits blank lines in raw strings.
func codeLines(text []byte) []int {
	var s scanner.Scanner
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	var lines []int
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return slices.Compact(lines)
		}
		if tok == token.SEMICOLON && lit != ";" { // the scanner inserted the semicolon
			continue
		}
		first := file.Line(pos)
		for i, part := range strings.Split(cmp.Or(lit, tok.String()), "\n") {
			if strings.TrimSpace(part) != "" {
				lines = append(lines, first+i)
			}
		}
	}
}

// markupLines returns the number of lines of a script, a style sheet or a template without blank lines and comments.
func markupLines(text string) int {
	n, comment := 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		comment = comment || strings.HasPrefix(line, "/*")
		if line != "" && !comment && !strings.HasPrefix(line, "//") {
			n++
		}
		comment = comment && !strings.HasSuffix(line, "*/")
	}
	return n
}

// A row is a capability in the table: its files, the number of its lines in the document, and the current number.
type row struct {
	title    string
	patterns []string
	said     int
	lines    int
}

// cutTable splits a document into the text before the table, the table, and the text after it.
func cutTable(text string) (before, table, after string) {
	before, rest, found := strings.Cut(text, begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", "", ""
	}
	return before + begin, table, end + after
}

// parseTable returns the rows of the table that contain file patterns.
func parseTable(table string) ([]row, error) {
	var rows []row
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[1], "`") {
			continue
		}
		said, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(cells[2]), ",", ""))
		if err != nil {
			return nil, fmt.Errorf("%s: %w in %q", document, err, line)
		}
		r := row{title: strings.TrimSpace(cells[0]), said: said}
		for i, part := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				r.patterns = append(r.patterns, part)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// assign adds the lines of each file to its row. It returns violations: files without a row, and patterns without a
// file.
func (s *size) assign(rows []row) (wrong []string) {
	used := map[string]bool{}
	for name, lines := range s.product {
		best, longest := -1, ""
		for i, r := range rows {
			for _, pattern := range r.patterns {
				match, _ := path.Match(pattern, name) // an invalid pattern matches nothing, which is reported below
				if (match || strings.HasPrefix(name, pattern+"/")) && len(pattern) > len(longest) {
					best, longest = i, pattern
				}
			}
		}
		if best < 0 {
			wrong = append(wrong, fmt.Sprintf("%s: in no row of the table of %s", name, document))
			continue
		}
		rows[best].lines += lines
		used[longest] = true
	}
	for _, r := range rows {
		for _, pattern := range r.patterns {
			if !used[pattern] {
				wrong = append(wrong, fmt.Sprintf("%s: %q has no file of its own", document, pattern))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// tooLow returns violations: rows with more lines than in the document, and a sum of lines that is much lower than in
// the document.
func tooLow(rows []row) (wrong []string) {
	said, lines := 0, 0
	for _, r := range rows {
		said, lines = said+r.said, lines+r.lines
		if r.lines > r.said {
			wrong = append(wrong, fmt.Sprintf("%s: %q says %d lines and has %d: scripts/loc.sh -update", document, r.title, r.said, r.lines))
		}
	}
	if said > lines+lines/100 {
		wrong = append(wrong, fmt.Sprintf("%s: the rows say %d lines, and there are %d: scripts/loc.sh -update", document, said, lines))
	}
	return wrong
}

// table returns the updated table.
func (s *size) table(rows []row) string {
	var out bytes.Buffer
	total := 0
	for _, n := range s.product {
		total += n
	}
	fmt.Fprint(&out, "| capability | files | lines |\n|---|---|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&out, "| %s | `%s` | %s |\n", r.title, strings.Join(r.patterns, "` `"), count(r.lines))
	}
	fmt.Fprintf(&out, "| **product** | | **%s** |\n", count(total))
	for _, title := range []string{templates, script, styles, tests, e2e, helpers, scripts} {
		fmt.Fprintf(&out, "| %s | | %s |\n", title, count(s.others[title]))
	}
	return out.String()
}

// figures returns the figures that are not in the table.
func (s *size) figures() string {
	var out bytes.Buffer
	lines := 0
	for _, n := range s.product {
		lines += n
	}
	fmt.Fprintf(&out, "\nmean length of a line: %.2f; lines of more than %d columns: %d; functions of more than %d lines: %d of %d\n",
		float64(s.bytes)/float64(lines), maxColumns, len(s.wide), maxLines, len(s.long), s.functions)
	for _, line := range slices.Concat(s.wide, s.long) {
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

// count formats n with commas between groups of three digits.
func count(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", count(n/1000), n%1000)
}
