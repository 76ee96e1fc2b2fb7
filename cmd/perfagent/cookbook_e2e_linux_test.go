//go:build e2e

package main

import (
	"slices"
	"strings"
	"testing"
)

// TestE2E_Docs_Cookbook cooks the recipes with the tools that they name. A recipe is marked as tested if a test runs it, and
// only then.
func TestE2E_Docs_Cookbook(t *testing.T) {
	t.Parallel()
	parts := strings.Split(readDocument(t, cookbookDoc), "\n## ")[1:]
	var titles []string
	for _, part := range parts {
		title, text, _ := strings.Cut(part, "\n")
		titles = append(titles, title)
		r := recipe{blocks: blocks(text + "\n")}
		cook := recipes[title]

		commands := slices.ContainsFunc(r.blocks, func(b block) bool { return b.language == "sh" })
		marked := strings.Contains(strings.ToLower(text), "*tested")
		if tested := cook != nil || commands || title == testedElsewhere; marked != tested {
			t.Errorf("%s: marked as tested: %v, and a test runs it: %v", title, marked, tested)
		}
		if cook != nil {
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				cook(t, r)
			})
		}
	}
	for title := range recipes {
		if !slices.Contains(titles, title) {
			t.Errorf("the cookbook has no recipe %q", title)
		}
	}
}
