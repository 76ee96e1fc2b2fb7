package plotter

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/plottertest"
)

// Each way of writing a text escapes it for where it stands.
func TestHTMLWriter_Escapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		write func(w *htmlWriter, s string) *htmlWriter
		text  string
		want  string
	}{
		{(*htmlWriter).text, `a <b> & "c" 'd' ` + "`e`\x00\xff\u2028", "a &lt;b&gt; &amp; &#34;c&#34; &#39;d&#39; `e`\ufffd\xff\u2028"},
		{(*htmlWriter).text, "", ""},
		{(*htmlWriter).quoted, `</script> & "\` + "\x00\xff\u2028", `"\u003c/script\u003e \u0026 \"\\\u0000\ufffd\u2028"`},
		{(*htmlWriter).quoted, "µ", `"µ"`},
		{(*htmlWriter).link, "a/b c.html?x=1&y=<2>#é", "a/b%20c.html?x=1&amp;y=%3c2%3e#%c3%a9"},
		{(*htmlWriter).link, "%41%zz%", "%41%25zz%25"},
		{(*htmlWriter).link, "javascript:alert(1)", "#"},
		{(*htmlWriter).link, "HTTPS://example.org/", "#"},
		{(*htmlWriter).link, "./javascript:alert(1)", "./javascript:alert%281%29"},
		{(*htmlWriter).link, `"onclick='x'`, "%22onclick=%27x%27"},
	} {
		var out strings.Builder
		w := newHTMLWriter(&out)
		if err := c.write(w, c.text).flush(); err != nil || out.String() != c.want {
			t.Errorf("%q is %q, want %q (%v)", c.text, out.String(), c.want, err)
		}
	}
}

// What goes out does so in pieces; a large one of ours is not copied.
func TestHTMLWriter_Pieces(t *testing.T) {
	t.Parallel()
	const large, small = 3 * largeBytes, 3 * pieceBytes
	to := &piecesOf{}
	w := newHTMLWriter(to)
	w.ours("<p>").ours(markup(strings.Repeat("a", large)))
	for range small {
		w.text("b")
	}
	if err := w.ours("</p>").flush(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(to.all, ""); got != "<p>"+strings.Repeat("a", large)+strings.Repeat("b", small)+"</p>" {
		t.Errorf("%d bytes are others", len(got))
	}
	if len(to.all) != 6 || to.strings != 1 || len(to.all[1]) != large || len(to.all[2]) != pieceBytes {
		t.Errorf("%d pieces, %d of them strings", len(to.all), to.strings)
	}

	var plain bytes.Buffer // has no WriteString to be seen
	w = newHTMLWriter(struct{ io.Writer }{&plain})
	if err := w.ours(markup(strings.Repeat("a", large))).flush(); err != nil || plain.Len() != large {
		t.Errorf("%d bytes, %v", plain.Len(), err)
	}
}

// A piecesOf keeps what is written.
type piecesOf struct {
	all     []string
	strings int
}

func (p *piecesOf) Write(data []byte) (int, error) {
	p.all = append(p.all, string(data))
	return len(data), nil
}

func (p *piecesOf) WriteString(s string) (int, error) {
	p.strings++
	return p.Write([]byte(s))
}

// After an error nothing is written any more.
func TestHTMLWriter_Fails(t *testing.T) {
	t.Parallel()
	to := &failing{}
	err := WritePage(to, plottertest.Minute(0), PageOptions{})
	if !errors.Is(err, io.ErrClosedPipe) || to.calls != 2 {
		t.Errorf("%v after %d calls", err, to.calls)
	}
}

// A failing writer takes one piece.
type failing struct{ calls int }

func (f *failing) Write(data []byte) (int, error) {
	if f.calls++; f.calls > 1 {
		return 0, io.ErrClosedPipe
	}
	return len(data), nil
}

// Markup is ours: no code of the package makes it of a string, and none but the writers themselves goes around them.
func TestMarkup_IsLiteral(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if fn, ok := n.Fun.(*ast.Ident); ok && fn.Name == "markup" {
					t.Errorf("%v: a markup that is not a literal", set.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "out" && name != "html.go" && name != "svg.go" {
					t.Errorf("%v: it goes around the writer", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}
