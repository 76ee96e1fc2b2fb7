package plotter

import (
	"bufio"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"sync"
)

//go:embed *.tmpl
var templateFiles embed.FS

// templates returns the templates of the pages. They are parsed when the first page is made: a run without one pays
// nothing for them.
var templates = sync.OnceValue(func() *template.Template {
	functions := template.FuncMap{
		"local": local,
		"words": func(s string) []string { return strings.Split(s, " ") }, // no line is broken within one, as behind a hyphen
	}
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "*.tmpl"))
})

// writeTemplate writes what a template makes of data.
func writeTemplate(w io.Writer, name string, data any) error {
	out := bufio.NewWriterSize(w, 32<<10)
	if err := templates().ExecuteTemplate(out, name, data); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write page: %w", err)
	}

	return nil
}

// exact returns a number with as many digits as it has, and without an exponent.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// local returns the address of a file, relative to the page. One with a scheme, such as https:, leads nowhere.
func local(address string) string {
	if start, _, found := strings.Cut(address, ":"); found && !strings.Contains(start, "/") {
		return "#"
	}
	return address
}
