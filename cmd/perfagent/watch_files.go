package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/journal"
)

// findRun returns a launch of the run in a folder: the K-th or, for 0, the newest that is running, else the newest with
// a journal. Of a folder without recordings it has what is named as a journal and is none, so that errors can name it.
func findRun(dir string, k int) (*catalog.Launch, error) {
	run, err := catalog.At(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("watch: look for the run: %w", err)
	case run == nil:
		paths, _ := filepath.Glob(filepath.Join(dir, "node-*.jsonl")) // none if the name of the directory is a bad pattern
		return &catalog.Launch{Dir: dir, Nodes: catalog.NodesOf(paths)}, nil
	case k > 0 && k <= len(run.Launches):
		return &run.Launches[k-1], nil
	}

	for _, is := range []func(catalog.Node) bool{mayRun, hasJournal} {
		for i := range slices.Backward(run.Launches) {
			if l := &run.Launches[i]; slices.ContainsFunc(l.Nodes, is) {
				return l, nil
			}
		}
	}
	return run.Latest(), nil
}

// journalsOf returns the journals of a node: one, or one of each rank. A node that has ended has none.
func journalsOf(n catalog.Node) []string {
	var paths []string
	for _, piece := range n.Pieces {
		if piece.Journal != "" {
			paths = append(paths, piece.Journal)
		}
	}
	return paths
}

// hasJournal reports whether a node is running, or its perfagent was killed.
func hasJournal(n catalog.Node) bool { return len(journalsOf(n)) > 0 }

// mayRun reports whether a perfagent may still write a journal of a node.
func mayRun(n catalog.Node) bool {
	return slices.ContainsFunc(journalsOf(n), func(path string) bool { return journal.WriterOf(path) != journal.Gone })
}

// lowest returns the lowest node that is running, else the lowest with a journal, else the lowest; nil of no nodes.
func lowest(nodes []catalog.Node) *catalog.Node {
	for _, is := range []func(catalog.Node) bool{mayRun, hasJournal, func(catalog.Node) bool { return true }} {
		if i := slices.IndexFunc(nodes, is); i >= 0 {
			return &nodes[i]
		}
	}
	return nil
}

// namesOf lists nodes for an error message.
func namesOf(nodes []catalog.Node) string {
	var words []string
	for _, n := range nodes {
		word := "node " + strconv.Itoa(n.Index)
		if !hasJournal(n) {
			word += ", which has ended"
		}
		words = append(words, word)
	}

	switch {
	case len(words) == 0:
		return "none"
	case len(words) > 10:
		words = append(words[:10], fmt.Sprintf("%d more", len(words)-10))
	}

	return strings.Join(words, "; ")
}
