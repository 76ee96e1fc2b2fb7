package main

import (
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// --json is short for --format json in every command with formats, and a second format is an error.
func TestFormat_JSONFlagIsShortForFormatJSON(t *testing.T) {
	t.Parallel()
	path, _ := sampleReport(t)
	for command, args := range map[string][]string{
		"show": {path}, "ls": {"--out", filepath.Dir(filepath.Dir(path))}, "diff": {path, path}, "metrics": nil, "env": nil, "version": nil,
	} {
		long := call(append([]string{command, "--format", "json"}, args...)...)
		if short := call(append([]string{command, "--json"}, args...)...); short != long || short.Code != 0 || short.Out == "" {
			t.Errorf("%s --json gives %+v, --format json %+v, want the same and exit code 0", command, short, long)
		}
		for _, both := range []string{"text", "table"} {
			o := call(append([]string{command, "--json", "--format", both}, args...)...)
			if o.Code == 0 || o.Out != "" {
				t.Errorf("%s --json --format %s: exit code %d, stdout %q; want an error", command, both, o.Code, o.Out)
			}
			clitest.WantLines(t, o.Err, 1, 1)
		}
	}
}
