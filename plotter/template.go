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

	"github.com/perfagent/perfagent/internal/text"
)

//go:embed *.tmpl
var templateFiles embed.FS

// templates returns the templates of the pages. They are parsed when the first page needs them, so a run without a page
// does not pay for them.
var templates = sync.OnceValue(func() *template.Template {
	functions := template.FuncMap{"local": local, "node": nodeOf, "seconds": text.Seconds}
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "*.tmpl"))
})

// writeTemplate writes a template with data.
func writeTemplate(w io.Writer, name string, data any) error {
	out := bufio.NewWriterSize(w, 32<<10)
	err := templates().ExecuteTemplate(out, name, data)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}

	return nil
}

// nodeOf returns the name of the node with the given page: NAME for node-NAME.html.
func nodeOf(page string) string {
	return text.Printable(strings.TrimSuffix(strings.TrimPrefix(page, "node-"), ".html"))
}

// exact returns v with all its digits, and without an exponent.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// local returns address if it is relative to the page. If it has a scheme, such as https:, local returns "#".
func local(address string) string {
	if start, _, found := strings.Cut(address, ":"); found && !strings.Contains(start, "/") {
		return "#"
	}
	return address
}
