//go:build ignore

// Testtimes reads the events of go test -json from stdin and replaces the tables between the marks "times" of a
// document: the time of each package, and the longest tests. The time for which a parallel test waits for its turn does
// not count.
//
// Usage: go run scripts/testtimes.go DOCUMENT <EVENTS
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	begin, end = "<!-- times:begin -->\n", "<!-- times:end -->"
	module     = "github.com/perfagent/perfagent/"
	slowest    = 20 // tests in the second table
)

// An event is a line of go test -json.
type event struct {
	Time                  time.Time
	Action, Package, Test string
	Elapsed               float64
}

// A span is a test or a package with its running time.
type span struct {
	name    string
	seconds float64
	tests   int // number of tests of a package
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "testtimes:", err)
		os.Exit(1)
	}
}

// run reads the events and rewrites the document.
func run(document string) error {
	packages, tests, err := read()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return fmt.Errorf("%s has no part between %q and %q", document, begin, end)
	}

	var out bytes.Buffer
	out.Write(before)
	out.WriteString(begin)
	write(&out, packages, tests)
	out.WriteString(end)
	out.Write(after)

	return os.WriteFile(document, out.Bytes(), 0o644)
}

// read returns the packages, and the tests without subtests, longest first.
func read() (packages, tests []span, err error) {
	perPackage, perTest := map[string]*span{}, map[string]*span{}
	running := map[string]time.Time{}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			return nil, nil, fmt.Errorf("%w in %.80q", err, in.Text())
		}
		pkg := strings.TrimPrefix(e.Package, module)
		if e.Test == "" {
			if e.Action == "pass" || e.Action == "fail" {
				at(perPackage, pkg).seconds = e.Elapsed
			}
			continue
		}

		name := pkg + " " + e.Test
		switch e.Action {
		case "run", "cont":
			running[name] = e.Time
		case "pause", "pass", "fail", "skip":
			if since, ok := running[name]; ok {
				at(perTest, name).seconds += e.Time.Sub(since).Seconds()
				delete(running, name)
			}
		}
		if e.Action == "run" {
			at(perPackage, pkg).tests++
		}
	}

	for _, t := range sorted(perTest) { // a test with subtests is only the sum of them
		for i, c := range t.name {
			if c == '/' {
				delete(perTest, t.name[:i])
			}
		}
	}
	return sorted(perPackage), sorted(perTest), in.Err()
}

// at returns the span called name, and adds it if necessary.
func at(spans map[string]*span, name string) *span {
	if spans[name] == nil {
		spans[name] = &span{name: name}
	}
	return spans[name]
}

// sorted returns the spans, longest first.
func sorted(spans map[string]*span) []span {
	var list []span
	for _, s := range spans {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b span) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name))
	})
	return list
}

// write writes the two tables.
func write(out *bytes.Buffer, packages, tests []span) {
	fmt.Fprint(out, "| package | seconds | tests and subtests |\n|---|---:|---:|\n")
	for _, p := range packages {
		if p.seconds >= 1 {
			fmt.Fprintf(out, "| `%s` | %.0f | %d |\n", p.name, p.seconds, p.tests)
		}
	}
	fmt.Fprint(out, "\n| test | seconds |\n|---|---:|\n")
	for _, t := range tests[:min(slowest, len(tests))] {
		pkg, name, _ := strings.Cut(t.name, " ")
		fmt.Fprintf(out, "| `%s` in `%s` | %.1f |\n", name, pkg, t.seconds)
	}
}
