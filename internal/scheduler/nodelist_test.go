package scheduler

import (
	"slices"
	"strings"
	"testing"
)

func TestNodeNames(t *testing.T) {
	for list, want := range map[string]string{
		"":                        "",
		"login":                   "login",
		"node[1-3]":               "node1 node2 node3",
		"gpu[1-2,07],login,a[9]b": "gpu1 gpu2 gpu07 login a9b",
		"n[008-011]":              "n008 n009 n010 n011",
		"r[1-2]n[1-2]":            "r1n1 r1n2 r2n1 r2n2",
		"n[1-":                    "",
		"n1,n[3-2],n4":            "n1",
		"n[a]":                    "",
		"n1,,n2":                  "n1",
	} {
		if got := strings.Join(slices.Collect(nodeNames(list)), " "); got != want {
			t.Errorf("names of %q: %q, want %q", list, got, want)
		}
	}

	for _, huge := range []string{"n[0-4294967295]", "a[0-99999]b[0-99999]", strings.Repeat("n[0-9999],", 1000)} {
		if n := len(slices.Collect(nodeNames(huge))); n != maxNodes {
			t.Errorf("%.30q: %d names, want %d", huge, n, maxNodes)
		}
	}
}

func TestTasksAt(t *testing.T) {
	for _, test := range []struct {
		list string
		node int
		want int // -1 = unknown
	}{
		{"3,1", 0, 3},
		{"3,1", 1, 1},
		{"3,1", 2, -1},
		{"2(x2),1", 1, 2},
		{"2(x2),1", 2, 1},
		{"2(x0),1", 0, 1},
		{"", 0, -1},
		{"x", 0, -1},
		{"2(xx)", 0, -1},
		{"-1", 0, -1},
		{"2(x4294967296)", 0, -1},
	} {
		got, ok := tasksAt(test.list, test.node)
		if ok != (test.want >= 0) || ok && got != test.want {
			t.Errorf("tasksAt(%q, %d) = %d, %v; want %d (-1 = unknown)", test.list, test.node, got, ok, test.want)
		}
	}
}

func TestSameHost(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"node1", "node1", true},
		{"node1.site", "node1", true},
		{"node1", "node1.site", true},
		{"node1.site", "node1.site", true},
		{"node1.site", "node1.other", false},
		{"node1", "node10", false},
		{"", "", false},
	} {
		if sameHost(test.a, test.b) != test.want {
			t.Errorf("sameHost(%q, %q) is %v, want %v", test.a, test.b, !test.want, test.want)
		}
	}
}

// The expansion of any list ends without an error.
func FuzzNodeList(f *testing.F) {
	for _, list := range []string{"gpu[1-2,07],login", "2(x2),1", "n[", "]]", "n[1-2]m[3]", "[", ",", "-"} {
		f.Add(list, 3)
	}
	f.Fuzz(func(t *testing.T, list string, node int) {
		if n := len(slices.Collect(nodeNames(list))); n > maxNodes {
			t.Errorf("%q: %d names, want at most %d", list, n, maxNodes)
		}
		if tasks, ok := tasksAt(list, max(0, node)); ok && tasks < 0 {
			t.Errorf("%q: %d tasks, want 0 or more", list, tasks)
		}
	})
}
