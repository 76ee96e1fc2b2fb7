//go:build ignore

// Testtimes reads the events of go test -json from stdin, and prints the time of each package and the slowest tests. It
// does not count the time that a parallel test waits for its turn.
//
// Usage: go run scripts/testtimes.go <EVENTS
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	module  = "github.com/perfagent/perfagent/"
	slowest = 20 // number of tests in the second table
)

// An event is a line of go test -json.
type event struct {
	Time                  time.Time
	Action, Package, Test string
	Elapsed               float64
}

// A span is a test or a package, with its running time.
type span struct {
	name    string
	seconds float64
	tests   int // number of tests of a package
}

func main() {
	packages, tests, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testtimes:", err)
		os.Exit(1)
	}
	write(packages, tests)
}

// read returns the packages, and the tests that have no subtests, longest first.
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

	for _, t := range sorted(perTest) { // remove tests with subtests, because their times are only sums
		for i, c := range t.name {
			if c == '/' {
				delete(perTest, t.name[:i])
			}
		}
	}
	return sorted(perPackage), sorted(perTest), in.Err()
}

// at returns the span with the given name, and adds it if necessary.
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

// write prints the two tables.
func write(packages, tests []span) {
	fmt.Println("seconds  tests  package")
	for _, p := range packages {
		if p.seconds >= 1 {
			fmt.Printf("%7.0f  %5d  %s\n", p.seconds, p.tests, p.name)
		}
	}
	fmt.Println("\nseconds  test")
	for _, t := range tests[:min(slowest, len(tests))] {
		pkg, name, _ := strings.Cut(t.name, " ")
		fmt.Printf("%7.1f  %s in %s\n", t.seconds, name, pkg)
	}
}
