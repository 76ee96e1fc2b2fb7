//go:build ignore

// Style checks the Go files below the current directory. There must be no init function outside tests, doc comments at
// package level must begin with the declared name, and the words in style.txt must not occur in comments more often
// than the file allows. With -update, Style lowers the numbers in style.txt to the current numbers.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const list = "scripts/style.txt"

// A word is a line of style.txt: a regular expression, and the maximum number of matches in comments.
type word struct {
	allowed, found int
	text           string
	re             *regexp.Regexp
}

func main() {
	update := flag.Bool("update", false, "write the numbers of today into "+list)
	flag.Parse()
	words, err := readWords()
	if err == nil {
		var wrong []string
		if wrong, err = check(words); err == nil {
			os.Exit(judge(words, wrong, *update))
		}
	}
	fmt.Fprintln(os.Stderr, "style:", err)
	os.Exit(1)
}

func readWords() (words []*word, err error) {
	f, err := os.Open(list)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		number, text, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not NUMBER EXPRESSION", list, lines.Text())
		}
		words = append(words, &word{allowed: n, text: text, re: regexp.MustCompile(`(?i)\b(?:` + text + `)\b`)})
	}
	return words, nil
}

// check counts the words in all comments, and returns all other violations.
func check(words []*word) (wrong []string, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}

		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			for _, w := range words {
				w.found += len(w.re.FindAllStringIndex(text, -1))
			}
		}
		for _, decl := range file.Decls {
			for _, line := range declaration(decl, strings.HasSuffix(path, "_test.go")) {
				wrong = append(wrong, fmt.Sprintf("%s: %s", fset.Position(decl.Pos()), line))
			}
		}
		return nil
	})
	return wrong, err
}

// declaration returns the violations in decl. In a test, a comment need not begin with the name: it may be a sentence
// about the tested behavior.
func declaration(decl ast.Decl, test bool) (wrong []string) {
	named := func(name *ast.Ident, doc *ast.CommentGroup) {
		text := doc.Text() // Text omits directives
		for _, article := range []string{"A ", "An ", "The "} {
			text = strings.TrimPrefix(text, article)
		}
		rest, begins := strings.CutPrefix(text, name.Name)
		if !test && text != "" && (!begins || rest != "" && !strings.ContainsAny(rest[:1], " \n,.:;'([")) {
			wrong = append(wrong, fmt.Sprintf("the comment does not begin with %s", name.Name))
		}
	}

	switch d := decl.(type) {
	case *ast.FuncDecl:
		named(d.Name, d.Doc)
		if !test && d.Recv == nil && d.Name.Name == "init" {
			wrong = append(wrong, "an init function")
		}
	case *ast.GenDecl:
		if d.Tok != token.TYPE {
			break
		}
		for _, spec := range d.Specs {
			if t := spec.(*ast.TypeSpec); t.Doc != nil {
				named(t.Name, t.Doc)
			} else if !d.Lparen.IsValid() {
				named(t.Name, d.Doc)
			}
		}
	}
	return wrong
}

// judge prints the violations and returns the exit code.
func judge(words []*word, wrong []string, update bool) int {
	var lines strings.Builder
	for _, w := range words {
		if w.found > w.allowed {
			wrong = append(wrong, fmt.Sprintf("comments have %q %d times, and %d are allowed", w.text, w.found, w.allowed))
		}
		fmt.Fprintf(&lines, "%d %s\n", min(w.found, w.allowed), w.text)
	}
	for _, line := range wrong {
		fmt.Println(line)
	}
	if update {
		if err := os.WriteFile(list, []byte(lines.String()), 0o644); err != nil {
			wrong = append(wrong, err.Error())
			fmt.Println(err)
		}
	}
	return min(len(wrong), 1)
}
