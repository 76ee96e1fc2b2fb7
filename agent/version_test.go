package agent

import (
	"runtime/debug"
	"testing"
)

func TestVersionIn_OfTheModuleThatWasBuilt(t *testing.T) {
	other := debug.Module{Path: "example.com/program", Version: "v9.9.9"}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3": {Main: debug.Module{Path: module, Version: "v1.2.3"}},
		"v1.2.4": {Main: other, Deps: []*debug.Module{{Path: module, Version: "v1.2.4"}}},
		"v1.2.5": {Main: other, Deps: []*debug.Module{{
			Path: module, Version: "v1.2.4", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.5"},
		}}},
	} {
		if got := versionIn(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}

	for name, info := range map[string]*debug.BuildInfo{
		"no stamp":      {Main: debug.Module{Path: module, Version: "(devel)"}},
		"not linked in": {Main: other},
		"a directory": {Main: other, Deps: []*debug.Module{{
			Path: module, Version: "v0.0.0", Replace: &debug.Module{Path: "../perfagent"},
		}}},
		"installed from a directory": {Main: debug.Module{
			Path: module, Version: "v0.0.0", Replace: &debug.Module{Path: "../perfagent", Version: "(devel)"},
		}},
	} {
		if got := versionIn(info); got != develVersion {
			t.Errorf("%s: %q", name, got)
		}
	}
}
