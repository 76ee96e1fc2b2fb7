package wire

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The golden file lists hostile lines and their results, for the documentation.
func TestEvent_HostileInputMatchesGolden(t *testing.T) {
	var b strings.Builder
	for _, list := range [][]lineTest{hostile, hostileRecords} {
		for _, tt := range list {
			line := fmt.Sprintf("%q", tt.line)
			if len(line) > 80 {
				line = fmt.Sprintf("%.60s…  (%d bytes)", line, len(tt.line))
			}
			fmt.Fprintf(&b, "%-12s %s\n", got(tt.line, StatsD), line)
		}
	}
	for _, tt := range badBodies {
		_, err := samples(tt.body)
		fmt.Fprintf(&b, "%-12s %q: %v\n", "scrape fails", tt.body, err)
	}

	const name = "testdata/hostile.golden"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s differs (-file +now):\n%s", name, diff)
	}
}
